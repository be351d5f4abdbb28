"""How the judge bench asks judge and examiner, a few replies at a time, and the rewards of what comes back.

Every part of the bench gets `Instruments`; tests hand in others. An answer that does not come is an error of the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from rubric import LEVELS, EncoderClient, Judgement, JudgeReading, Polarity, Rubric, Score, Transcript, reward_of
from rubric.encoder_values import level_of
from rubric.examiner import WIDTH, Examined, Reply, reply_of, texts_to_embed
from rubric.serve.readings import context_text

AT_ONCE: Final = 2  # keeps the process busy while an answer is on its way
TIMEOUT_S: Final = 15.0  # a busy machine is slow, not away; the process allows 30 with what long texts add
EMBEDDED_AT_ONCE: Final = 8
NOT_JUDGED: Final = "not_judged"  # stands for any reason where only the reward counts


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One reply to judge; `context` ends with the message that it answers."""

    context: Transcript
    reply: str
    criteria: tuple[str, ...]
    faults: tuple[bool, ...] = ()  # which criteria say what a reply should leave; (): none

    @classmethod
    def under(cls, rubric: Rubric, *, context: Transcript, reply: str) -> Question:
        """The question that a rubric asks."""
        return cls(
            context=context,
            reply=reply,
            criteria=tuple(criterion.text for criterion in rubric),
            faults=faults_of(rubric),
        )


class Examines(Protocol):
    """What is asked of an examiner."""

    def examine(self, reply: Reply) -> Examined: ...


AskJudge = Callable[[Sequence[Question]], Awaitable[list[JudgeReading]]]
AskExaminer = Callable[[Sequence[tuple[Transcript, str]]], Awaitable[list[Examined]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Instruments:
    """What a part of the bench measures with."""

    judge: AskJudge  # may answer from what was asked before
    ask_afresh: AskJudge  # asks the process every time
    examine: AskExaminer
    predictions: Path  # folder of the recipes' out-of-fold predictions
    public_data: Path | None
    seed: int = 5


async def ask_judge(client: EncoderClient, questions: Sequence[Question]) -> list[JudgeReading]:
    """The readings, in order. Raises EncoderUnavailable and EncoderTimeout."""
    free = asyncio.Semaphore(AT_ONCE)

    async def one(question: Question) -> JudgeReading:
        async with free:
            return await client.judge(context_text(question.context), question.reply, criteria=question.criteria)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(question)) for question in questions]
    return [task.result() for task in tasks]


async def ask_examiner(
    client: EncoderClient, examiner: Examines, replies: Sequence[tuple[Transcript, str]]
) -> list[Examined]:
    """What the examiner finds, in order; the encoder process embeds each text once.

    Raises EncoderUnavailable and EncoderTimeout.
    """
    asked = [texts_to_embed(context, reply) for context, reply in replies]
    texts = sorted({text for both in asked for text in both if text.strip()}, key=len)
    vectors: dict[str, tuple[float, ...]] = {}
    for at in range(0, len(texts), EMBEDDED_AT_ONCE):
        part = texts[at : at + EMBEDDED_AT_ONCE]
        vectors.update(zip(part, await client.embed(part), strict=True))
    blank = (0.0,) * WIDTH  # of a blank reply, which gets no quality whatever its vector
    return [
        examiner.examine(reply_of(context, reply, [vectors.get(text, blank) for text in both]))
        for (context, reply), both in zip(replies, asked, strict=True)
    ]


def faults_of(rubric: Rubric) -> tuple[bool, ...]:
    """Which criteria say what a reply should leave."""
    return tuple(criterion.polarity is Polarity.AVOID for criterion in rubric)


def levels_of_reading(reading: JudgeReading, faults: Sequence[bool] = ()) -> tuple[float | None, ...]:
    """The level per criterion as the product's judge gives it; None where there is none. `faults`: () for none."""
    return tuple(
        level_of(one, genuine=reading.genuine, names_fault=names_fault)
        for one, names_fault in zip(reading.criteria, faults or (False,) * len(reading.criteria), strict=True)
    )


def expected_level(probabilities: Sequence[float]) -> float:
    """The mean level under five probabilities, in [0, 1]."""
    return min(1.0, sum(share * level for share, level in zip(probabilities, LEVELS, strict=True)))


def score_of_levels(levels: Sequence[float | None], rubric: Rubric) -> Score:
    """A score of levels that stand in the order of the rubric's criteria."""
    return Score(
        judgements=tuple(
            Judgement(criterion_id=criterion.id, level=level, none_reason=NOT_JUDGED if level is None else None)
            for criterion, level in zip(rubric, levels, strict=True)
        ),
        judge="bench",
        prompt_sha256="",
        attempts=1,
        latency_ms=0.0,
    )


def reward_of_levels(levels: Sequence[float | None], rubric: Rubric) -> float | None:
    """The reward of such a score; None where a dimension has no level."""
    reward = reward_of(score_of_levels(levels, rubric), rubric)
    return None if reward is None else reward.value
