"""Texts in English and in other languages, from which the coverage model learns to tell them apart.

Other languages: our own chat lines (`rubric/corpus/coverage`) and the short interface texts that the installed Django
ships in some 60 languages of Latin script (BSD-3-Clause). English: the screen's own lines, Django's source strings
and, where the public data folder is there, GoEmotions. The recipe `coverage` calls this.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ENTRY: Final = re.compile(r'^msg(id|str)(?:_plural|\[\d\])? ((?:".*"\n?)+)', re.MULTILINE)
_FORMATTING: Final = re.compile(r"%\([a-z_]+\)[a-z]|%[a-z]|\{[^}]*\}|<[^>]+>|&\w+;|[A-Z_]{3,}")
_ENGLISH: Final = ("en", "en_GB", "en_AU")


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageText:
    """A text and the language it is in ("en", "es", "hi-latin", ...)."""

    language: str
    text: str

    @property
    def is_english(self) -> bool:
        """Whether the screen covers it."""
        return self.language == "en"


def own_lines(folder: Path) -> tuple[LanguageText, ...]:
    """Our chat lines in other languages."""
    rows = [json.loads(raw) for path in sorted(folder.glob("*.jsonl")) for raw in path.read_text("utf-8").splitlines()]
    return tuple(LanguageText(language=row["language"], text=row["text"]) for row in rows)


def interface_texts() -> tuple[LanguageText, ...]:
    """Django's translations, and its source strings as English; read as files, nothing is imported."""
    spec = importlib.util.find_spec("django")
    if spec is None or spec.origin is None:
        return ()
    root = Path(spec.origin).parent
    found: set[tuple[str, str]] = set()
    for path in sorted(root.glob("**/locale/*/LC_MESSAGES/*.po")):
        code = path.parents[1].name
        if code in _ENGLISH:
            continue
        for kind, text in _entries(path.read_text("utf-8")):
            found.add(("en" if kind == "id" else code, text))
    translated_less = {text for code, text in found if code == "en"}
    return tuple(
        LanguageText(language=code, text=text)
        for code, text in sorted(found)
        if code == "en" or text not in translated_less
    )


def _entries(source: str) -> Iterable[tuple[str, str]]:
    """(id or str, text) of a .po file, formatting marks removed; texts of fewer than 12 letters are left out."""
    for found in _ENTRY.finditer(source):
        raw = "".join(ast.literal_eval(line) for line in found.group(2).strip().splitlines())
        text = " ".join(_FORMATTING.sub(" ", raw).split())
        if sum(letter.isalpha() for letter in text) >= 12:
            yield found.group(1), text
