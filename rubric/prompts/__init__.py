"""The texts that the generator and the judge send: one Markdown file each, written as a talk with the model.

A heading `# system`, `# user` or `# assistant` begins each part; `$name` marks a slot. The hash of a file travels with
every rubric and score that came of it, so that an old number stays explainable.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Template

from rubric.dialogue import Role, Transcript, Utterance

_HEADING = re.compile(r"^# (system|user|assistant)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """One prompt file as a transcript whose texts have slots. `sha256` covers the file as it is."""

    name: str
    parts: Transcript
    sha256: str

    def fill(self, slots: Mapping[str, str]) -> Transcript:
        """Put values into all slots in one pass: a value that looks like a slot stays text. Raises KeyError."""
        return Transcript(tuple(Utterance(part.role, Template(part.text).substitute(slots)) for part in self.parts))


@cache
def load_prompt(name: str) -> Prompt:
    """Read `rubric/prompts/<name>.md`. Raises FileNotFoundError, or ValueError for a file without headings."""
    text = resources.files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8")
    before, *pieces = _HEADING.split(text)
    if before.strip() or not pieces:
        raise ValueError(f"prompt {name!r} must begin with a heading")
    parts = tuple(Utterance(Role(role), said.strip()) for role, said in zip(pieces[::2], pieces[1::2], strict=True))
    return Prompt(name=name, parts=Transcript(parts), sha256=hashlib.sha256(text.encode()).hexdigest())


def prompts_sha256() -> str:
    """One hash over all prompt files: a version that asks a served model is named by it, among other facts."""
    files = sorted(entry.name for entry in resources.files(__name__).iterdir() if entry.name.endswith(".md"))
    joined = "".join(load_prompt(name.removesuffix(".md")).sha256 for name in files)
    return hashlib.sha256(joined.encode()).hexdigest()
