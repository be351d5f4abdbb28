"""Better and worse replies by authors of whom the training judge has read nothing: they train the examiner alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from rubric.corpus.records import FOLDER, Fault, IdentifiedRecord, Text, read_folder

EXAMINER_PAIRS: Final = FOLDER / "examiner_pairs"


class ExaminerPair(IdentifiedRecord):
    """Two replies to one talk; whoever wrote them says which is worse, and by what fault."""

    context: Annotated[tuple[Text, ...], Field(min_length=1)]  # in turn, the visitor first and last
    better: Text
    worse: Text
    fault: Fault

    @model_validator(mode="after")
    def _visitor_is_last(self) -> Self:
        if len(self.context) % 2 == 0:
            raise ValueError("the visitor does not speak last")
        return self


def read_examiner_pairs(folder: Path = EXAMINER_PAIRS) -> tuple[ExaminerPair, ...]:
    """Every line of every file, in order of names. Raises CorpusInvalid, also for an id given twice."""
    return read_folder(folder, kind=ExaminerPair)
