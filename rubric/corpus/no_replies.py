"""Texts that are no reply to anybody: judge and examiner learn what they must not grade like one, each from its own."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from rubric.corpus.records import FOLDER, IdentifiedRecord, Text, read_folder

JUDGE_NO_REPLIES: Final = FOLDER / "no_replies" / "judge"
EXAMINER_NO_REPLIES: Final = FOLDER / "no_replies" / "examiner"


class NoReply(IdentifiedRecord):
    """A text and the kind of thing it is ("advert", "recipe"); none of the kinds that the judges' probes measure."""

    family: str
    text: Text


@cache
def read_no_replies(folder: Path) -> tuple[NoReply, ...]:
    """Every line of every file, in order of names. Raises CorpusInvalid, also for an id given twice."""
    return read_folder(folder, kind=NoReply)
