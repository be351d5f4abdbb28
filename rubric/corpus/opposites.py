"""What says the opposite of each criterion, the bank's and the authors' own: the judge learns what a criterion asks.

A reply's level under the opposite is 1 less its level under the criterion.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from rubric.corpus.records import FOLDER, CorpusInvalid, Record, read_lines

OPPOSITES = FOLDER / "opposites.jsonl"
OWN_OPPOSITES = FOLDER / "own_opposites.jsonl"  # of authors A to C's own sentences, by turn and number: "a-001.3.own-1"


class Opposite(Record):
    """A sentence that is met just as far as the criterion with that id is not."""

    criterion: str
    text: Annotated[str, Field(min_length=8, max_length=240)]


def read_opposites(path: Path = OPPOSITES) -> Mapping[str, str]:
    """The sentences by criterion. Raises CorpusInvalid, also for a criterion given twice."""
    found: dict[str, str] = {}
    for number, opposite in enumerate(read_lines(path, kind=Opposite), start=1):
        if opposite.criterion in found:
            raise CorpusInvalid(path=path, line=number, reason=f"{opposite.criterion} stands further up already")
        found[opposite.criterion] = opposite.text
    return found
