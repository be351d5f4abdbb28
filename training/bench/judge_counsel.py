"""CounselChat: readers' votes between counsellors' answers. Votes follow exposure, so this is reported and no bar.

Pairs whose votes differ by 2 or more; every question counts once, however many pairs it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from rubric import Role, Transcript, fallback_rubric, pair_credit
from training.bench.judge_asking import Instruments, Question, faults_of, levels_of_reading, reward_of_levels
from training.bench.judge_mechanisms import NO_PUBLIC_DATA
from training.bench.judge_rows import GOALS, Row, not_measured, row
from training.bench.judge_statistics import Floats, Whole, interval_over_rows
from training.data.counsel_chat import COUNSEL_CHAT, CounselAnswer, CounselPair, preference_pairs
from training.data.reading import load_file
from training.data.sources import source_named

VOTES_APART: Final = 2
MOST_LENGTH_RATIO: Final = 1.5
MOST_VIEWS_RATIO: Final = 3.0  # narrower, and no pair is left: answers of a question lie far apart

Values = Mapping[str, float | None]  # by answer


def read_pairs(folder: Path) -> list[CounselPair]:
    """The pairs with so many votes between them. Raises DataFileInvalid."""
    answers = load_file(source_named("counsel_chat").paths(folder)[0], COUNSEL_CHAT)
    return [pair for pair in preference_pairs(answers) if pair.better.upvotes - pair.worse.upvotes >= VOTES_APART]


def is_matched(pair: CounselPair) -> bool:
    """Whether the answers are about equally long and were viewed about equally often."""
    return _ratio(pair, _length) <= MOST_LENGTH_RATIO and _ratio(pair, _views) <= MOST_VIEWS_RATIO


async def measure(tools: Instruments) -> list[Row]:
    """The rows of the part `counsel`."""
    if tools.public_data is None:
        return [not_measured(goal.key, NO_PUBLIC_DATA) for goal in GOALS.values() if goal.part == "counsel"]
    pairs = read_pairs(tools.public_data)
    answers = list({answer.id: answer for pair in pairs for answer in (pair.better, pair.worse)}.values())
    by_who = {"judge": await _judge(answers, tools), "examiner": await _examiner(answers, tools)}
    matched = [pair for pair in pairs if is_matched(pair)]
    return [
        *(_row(f"counsel.{who}", pairs, values, seed=tools.seed) for who, values in by_who.items()),
        *(_row(f"counsel.{who}_matched", matched, values, seed=tools.seed) for who, values in by_who.items()),
        _row("counsel.longer", pairs, {answer.id: _length(answer) for answer in answers}, seed=tools.seed),
        _row("counsel.more_viewed", pairs, {answer.id: _views(answer) for answer in answers}, seed=tools.seed),
    ]


def question_weighted(pairs: Sequence[CounselPair], credits: Floats) -> Callable[[Whole], float | None]:
    """The statistic of rows: the mean over questions of their pairs' mean credit."""
    numbers = {question: number for number, question in enumerate({pair.question: None for pair in pairs})}
    questions: Whole = np.array([numbers[pair.question] for pair in pairs], dtype=np.int64)

    def mean_of_means(rows: Whole) -> float | None:
        # A question drawn twice weighs twice: its rows come in copies, its mean stays, so weigh rows by 1 / its pairs.
        weights = 1.0 / sizes[questions[rows]]
        return float((weights * credits[rows]).sum() / weights.sum()) if len(rows) else None

    sizes: Floats = np.bincount(questions, minlength=len(numbers)).astype(np.float64)
    return mean_of_means


async def _judge(answers: Sequence[CounselAnswer], tools: Instruments) -> Values:
    rubric = fallback_rubric("bench")
    readings = await tools.judge(
        [Question.under(rubric, context=_asked(answer), reply=answer.answer) for answer in answers]
    )
    return {
        answer.id: reward_of_levels(levels_of_reading(reading, faults_of(rubric)), rubric)
        for answer, reading in zip(answers, readings, strict=True)
    }


async def _examiner(answers: Sequence[CounselAnswer], tools: Instruments) -> Values:
    examined = await tools.examine([(_asked(answer), answer.answer) for answer in answers])
    return {answer.id: one.quality for answer, one in zip(answers, examined, strict=True)}


def _asked(answer: CounselAnswer) -> Transcript:
    return Transcript.of((Role.USER, f"{answer.title}\n{answer.question}"))


def _row(key: str, pairs: Sequence[CounselPair], values: Values, *, seed: int) -> Row:
    graded: list[CounselPair] = []
    given: list[float] = []
    for pair in pairs:
        better, worse = values.get(pair.better.id), values.get(pair.worse.id)
        if better is not None and worse is not None:
            graded.append(pair)
            given.append(pair_credit(better, worse))
    statistic = question_weighted(graded, np.array(given, dtype=np.float64))
    found = interval_over_rows(statistic, groups=[pair.question for pair in graded], seed=seed)
    questions = len(Counter(pair.question for pair in graded))
    ungraded = len(pairs) - len(graded)
    note = f"{questions} questions" + (f", {ungraded} pairs ungraded" if ungraded else "")
    return row(key, found, n=len(graded), note=note)


def _ratio(pair: CounselPair, of: Callable[[CounselAnswer], float]) -> float:
    smaller, larger = sorted((of(pair.better), of(pair.worse)))
    return larger / max(smaller, 1.0)


def _length(answer: CounselAnswer) -> float:
    return float(len(answer.answer))


def _views(answer: CounselAnswer) -> float:
    return float(answer.views)
