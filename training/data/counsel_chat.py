"""CounselChat (MIT): counsellors' answers to people's questions, readers' upvotes, pairs of answers to one question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Literal

from pydantic import Field

from training.data.reading import DataText, Loader, Record, Row, csv_rows


class CounselAnswer(Record):
    """One answer. The split is by question."""

    id: str
    group: DataText = Field(validation_alias="questionID")
    title: DataText = Field(validation_alias="questionTitle")
    question: DataText = Field(validation_alias="questionText")
    topic: DataText
    answer: DataText = Field(validation_alias="answerText")
    upvotes: Annotated[int, Field(ge=0)]
    views: Annotated[int, Field(ge=0)]
    split: Literal["train", "val", "test"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CounselPair:
    """Two answers to one question; readers voted the better one up more often."""

    question: str
    better: CounselAnswer
    worse: CounselAnswer


def preference_pairs(answers: Iterable[CounselAnswer]) -> Iterator[CounselPair]:
    """Every two answers of a question whose upvotes differ."""
    by_question: dict[str, list[CounselAnswer]] = defaultdict(list)
    for answer in answers:
        by_question[answer.group].append(answer)
    for question, given in by_question.items():
        for one, other in combinations(given, 2):
            if one.upvotes != other.upvotes:
                better, worse = (one, other) if one.upvotes > other.upvotes else (other, one)
                yield CounselPair(question=question, better=better, worse=worse)


def _record(row: Row, number: int) -> CounselAnswer:
    return CounselAnswer.model_validate({**row, "id": f"counsel-{number}"})


COUNSEL_CHAT = Loader(rows=csv_rows, record=_record)
