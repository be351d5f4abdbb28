"""Are the judge's probabilities right, are its answers the same whatever the batch, and how often has it none?

Calibration is measured on the corpus authors' own levels of replies that the weights never saw: out of fold for authors
A to C, and by the encoder process for author D, whose way of giving levels the judge does not know either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rubric import LEVELS, Interval, Transcript, weighted_kappa, wilson_interval
from rubric.corpus.records import Conversation, CorpusTurn, read_corpus
from rubric.corpus.rubrics import Side, levels_of, rubric_of
from training.bench.judge_asking import Instruments, Question
from training.bench.judge_pairs import AUTHOR_OF_EXAMINER, SIDES
from training.bench.judge_predictions import missing_note, read_folds
from training.bench.judge_rows import Row, exactly, not_measured, row
from training.bench.judge_statistics import (
    Floats,
    Whole,
    calibration_error,
    interval_over_rows,
    top_calibration_error,
)

REPEATED: Final = 60  # replies that are asked about in different company
KAPPA_RESAMPLES: Final = 200  # each walks through every judgement in Python
_LEVELS: Final = np.asarray(LEVELS, dtype=np.float64)


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenReply:
    """A corpus reply with its author's levels, in the order of its turn's criteria."""

    id: str  # "a-001.3/reply"
    group: str
    context: Transcript
    text: str
    turn: CorpusTurn
    levels: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecasts:
    """Level probabilities [judgements, 5], the author's level by place [judgements], the conversation of each."""

    shares: Floats
    labels: Whole
    groups: Sequence[str]


def replies_of(conversations: Sequence[Conversation]) -> list[GivenReply]:
    """Every reply and every worse one, with what it answers."""
    found = []
    for conversation in conversations:
        for index, turn in enumerate(conversation.turns):
            for side in SIDES:
                text = _text(turn, side)
                levels = tuple(level for level in levels_of(turn, side) if level is not None)
                if text is not None:
                    found.append(
                        GivenReply(
                            id=f"{conversation.id}.{index + 1}/{side}",
                            group=conversation.id,
                            context=conversation.context_of(index),
                            text=text,
                            turn=turn,
                            levels=levels,
                        )
                    )
    return found


async def measure(tools: Instruments) -> list[Row]:
    """The rows of the part `calibration`, over the whole corpus."""
    return await measure_over(read_corpus(), tools)


async def measure_over(conversations: Sequence[Conversation], tools: Instruments) -> list[Row]:
    """The same over these conversations."""
    new = replies_of([one for one in conversations if one.author == AUTHOR_OF_EXAMINER])
    learned = replies_of([one for one in conversations if one.author != AUTHOR_OF_EXAMINER])
    questions = [_question(reply) for reply in new]
    readings = await tools.judge(questions)
    given = [
        (reply, at, one.probabilities)
        for reply, reading in zip(new, readings, strict=True)
        for at, one in enumerate(reading.criteria)
    ]
    asked = forecasts([(reply, at, shares) for reply, at, shares in given if shares])
    missing = sum(not shares for *_, shares in given)
    return [
        *_fold_rows(learned, tools),
        _error_row("calibration.new_author", asked, seed=tools.seed),
        _kappa_row(asked, seed=tools.seed),
        await _batches_row(questions[:: max(1, len(questions) // REPEATED)][:REPEATED], tools),
        row("calibration.none", _percent(missing, len(given)), n=len(given)),
    ]


def forecasts(given: Sequence[tuple[GivenReply, int, Sequence[float]]]) -> Forecasts:
    """From (reply, place of the criterion, five probabilities)."""
    return Forecasts(
        shares=np.array([shares for *_, shares in given], dtype=np.float64).reshape(-1, len(LEVELS)),
        labels=np.array([LEVELS.index(reply.levels[at]) for reply, at, _ in given], dtype=np.int64),
        groups=[reply.group for reply, *_ in given],
    )


def _fold_rows(learned: Sequence[GivenReply], tools: Instruments) -> list[Row]:
    folds = read_folds(tools.predictions, "judge")
    if folds is None:
        return [not_measured(key, missing_note("judge")) for key in ("calibration.levels", "calibration.top")]
    found = forecasts(
        [
            (reply, at, shares)
            for reply in learned
            if reply.id in folds
            for at, shares in enumerate(folds[reply.id].levels)
        ]
    )
    top = interval_over_rows(
        lambda rows: top_calibration_error(found.shares[rows], found.labels[rows]),
        groups=found.groups,
        seed=tools.seed,
    )
    return [
        _error_row("calibration.levels", found, seed=tools.seed),
        row("calibration.top", top, n=len(found.labels)),
    ]


def _error_row(key: str, found: Forecasts, *, seed: int) -> Row:
    is_true = np.eye(len(LEVELS))[found.labels]
    error = interval_over_rows(
        lambda rows: calibration_error(found.shares[rows].ravel(), is_true[rows].ravel()),
        groups=found.groups,
        seed=seed,
    )
    return row(key, error, n=len(found.labels))


def _kappa_row(found: Forecasts, *, seed: int) -> Row:
    """The judge's mean level, rounded to the nearest of the five, against the author's."""
    places: Whole = np.abs((found.shares @ _LEVELS)[:, None] - _LEVELS).argmin(axis=1)

    def kappa(rows: Whole) -> float | None:
        return weighted_kappa(
            [LEVELS[place] for place in places[rows]],
            [LEVELS[place] for place in found.labels[rows]],
            categories=LEVELS,
        )

    agreed = interval_over_rows(kappa, groups=found.groups, seed=seed, resamples=KAPPA_RESAMPLES)
    return row("calibration.kappa", agreed, n=len(places))


async def _batches_row(questions: Sequence[Question], tools: Instruments) -> Row:
    """Each reply alone, all at once and backwards, and each with its criteria one by one: every number must stay."""
    alone = [(await tools.ask_afresh([question]))[0] for question in questions]
    together = await tools.ask_afresh([*questions[::-1], *questions])
    differing = 0
    for at, question in enumerate(questions):
        singly = await tools.ask_afresh(
            [Question(context=question.context, reply=question.reply, criteria=(text,)) for text in question.criteria]
        )
        others = (together[len(questions) - 1 - at].criteria, together[len(questions) + at].criteria)
        differing += any(other != alone[at].criteria for other in (*others, tuple(one.criteria[0] for one in singly)))
    return row("calibration.batches", exactly(differing), n=len(questions))


def _question(reply: GivenReply) -> Question:
    return Question.under(rubric_of(reply.turn), context=reply.context, reply=reply.text)


def _text(turn: CorpusTurn, side: Side) -> str | None:
    if side == "reply":
        return turn.reply
    return turn.worse.text if turn.worse else None


def _percent(part: int, whole: int) -> Interval | None:
    if not whole:
        return None
    share = wilson_interval(part, whole)
    return Interval(estimate=100 * share.estimate, low=100 * share.low, high=100 * share.high)
