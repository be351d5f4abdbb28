"""Texts of the public data that may train what ships, by ids that our label files use. The loaders read the files.

The data lie beside the repository where they lie at all (`--public-data DIR`); nothing of them is copied into it. A
file that is not there gives nothing; one that is damaged raises DataFileInvalid.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, TypeVar

from training.data.counsel_chat import COUNSEL_CHAT
from training.data.reactions import EMPATHIC_REACTIONS, GOEMOTIONS
from training.data.reading import Keyed, Loader, load_file

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
_MASK: Final = re.compile(r"\[(NAME|RELIGION)\]")
_Record = TypeVar("_Record", bound=Keyed)


def _load(path: Path, loader: Loader[_Record]) -> tuple[_Record, ...]:
    return load_file(path, loader) if path.is_file() else ()


def goemotions_by_id(folder: Path, part: str) -> dict[str, str]:
    """Comment id -> text of one part ("train", "dev", "test"), masks replaced by a name."""
    comments = _load(folder / "goemotions" / f"{part}.tsv.gz", GOEMOTIONS)
    return {comment.id: _MASK.sub("Sam", comment.text) for comment in comments}


def goemotions(folder: Path, part: str) -> tuple[str, ...]:
    """The texts of one part."""
    return tuple(goemotions_by_id(folder, part).values())


def counsel_questions(folder: Path) -> dict[str, str]:
    """Question id -> its title and its text, in one line."""
    answers = _load(folder / "counsel_chat" / "counsel_chat.csv.gz", COUNSEL_CHAT)
    return {answer.group: " ".join(f"{answer.title} {answer.question}".split()) for answer in answers}


def counsel_sentences(folder: Path) -> dict[str, str]:
    """`<row from 0>.<number from 0>` -> one sentence of a counsellor's answer."""
    answers = _load(folder / "counsel_chat" / "counsel_chat.csv.gz", COUNSEL_CHAT)
    return {
        f"{row}.{number}": sentence
        for row, answer in enumerate(answers)
        for number, sentence in enumerate(_SENTENCE_END.split(" ".join(answer.answer.split())))
    }


def news_reactions(folder: Path) -> dict[str, str]:
    """Row number from 0 -> what somebody wrote after reading a piece of news."""
    reactions = _load(folder / "empathic_reactions" / "messages.csv.gz", EMPATHIC_REACTIONS)
    return {str(row): " ".join(reaction.text.split()) for row, reaction in enumerate(reactions)}
