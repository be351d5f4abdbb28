"""A judge and an examiner for the bench's tests: levels by a function of the question, predictions in a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rubric import LEVELS, CriterionReading, JudgeReading, Transcript
from rubric.examiner import Examined
from training.bench.judge_asking import Instruments, Question

EVEN = ((1 / 3, 1 / 3, 1 / 3),) * 3
Level = Callable[[Question, str], float | None]
Quality = Callable[[Transcript, str], float | None]


def shares_of(level: float) -> tuple[float, ...]:
    """All on one of the five levels."""
    return tuple(float(one == level) for one in LEVELS)


def reading_of(question: Question, level: Level) -> JudgeReading:
    """What the encoder process would answer."""
    found = []
    for criterion in question.criteria:
        value = level(question, criterion)
        reading = (
            CriterionReading(expected=None, none_reason="empty_reply")
            if value is None
            else CriterionReading(expected=value, probabilities=shares_of(value))
        )
        found.append(reading)
    return JudgeReading(version="judge-fake", criteria=tuple(found), mechanisms=EVEN, genuine=1.0)


def instruments(
    *,
    level: Level = lambda _question, _criterion: 0.5,
    quality: Quality = lambda _context, _reply: 0.0,
    predictions: Path = Path("nowhere"),
    public_data: Path | None = None,
) -> Instruments:
    """Everything a part of the bench needs, without a process."""

    async def judge(questions: Sequence[Question]) -> list[JudgeReading]:
        return [reading_of(question, level) for question in questions]

    async def examine(replies: Sequence[tuple[Transcript, str]]) -> list[Examined]:
        return [
            Examined(
                quality=quality(context, reply), genuine=1.0, mechanisms=EVEN, none_reason=None, version="examiner-fake"
            )
            for context, reply in replies
        ]

    return Instruments(judge=judge, ask_afresh=judge, examine=examine, predictions=predictions, public_data=public_data)


def write_lines(path: Path, lines: Iterable[object]) -> None:
    """A file of JSON lines, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(line) for line in lines))
