"""Does the judge read the criterion? Opposed criteria must part on one reply, and other criteria must cost accuracy.

`opposed` are sentences written for this bench alone. `opposed_bank` sets a criterion of the bank against its opposite
on replies of author D, whom the judge never read. `shuffled` grades D's pairs under another conversation's criteria.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from rubric import LEVELS, Rubric, bootstrap_interval, load_bank, pair_credit
from rubric.corpus.opposites import read_opposites
from rubric.corpus.pairs import CorpusPair
from rubric.corpus.rubrics import levels_of, rubric_of
from training.bench.judge_asking import Instruments, Question, faults_of, levels_of_reading, reward_of_levels
from training.bench.judge_pairs import SIDES, is_of_examiner, judged, load_pairs, text_of
from training.bench.judge_rows import Row, row
from training.data.judge_probes import read_opposed

SHUFFLES: Final = 3  # other conversations' criteria per pair
BANK_ITEMS: Final = 600
CLEAR: Final = (LEVELS[0], LEVELS[-1])  # only of these levels the opposite's is beyond doubt


@dataclass(frozen=True, kw_only=True, slots=True)
class Opposed:
    """A question with two criteria, the true one first."""

    question: Question
    group: str


async def measure(tools: Instruments) -> list[Row]:
    """The rows of the part `sense`, over all pairs of author D."""
    return await measure_over([pair for pair in load_pairs().kept if is_of_examiner(pair)], tools)


async def measure_over(pairs: Sequence[CorpusPair], tools: Instruments) -> list[Row]:
    """The same over these pairs."""
    written = [
        Opposed(
            question=Question(context=one.transcript, reply=one.reply, criteria=one.true_and_false), group=one.reply
        )
        for one in read_opposed()
    ]
    return [
        await _opposed_row("sense.opposed", written, tools),
        await _opposed_row("sense.opposed_bank", bank_items(pairs, seed=tools.seed), tools),
        await _shuffled_row(pairs, tools),
    ]


def bank_items(pairs: Sequence[CorpusPair], *, seed: int) -> list[Opposed]:
    """Criteria whose author gave 0 or 1 with their opposites, drawn from both replies of the pairs."""
    bank, opposites = load_bank().by_id, read_opposites()
    found = []
    for pair in pairs:
        for side in SIDES:
            for identifier, level in zip(pair.turn.criteria, levels_of(pair.turn, side), strict=False):
                if level in CLEAR and identifier in opposites:
                    texts = (bank[identifier].text, opposites[identifier])
                    criteria = texts if level == LEVELS[-1] else texts[::-1]
                    question = Question(context=pair.context, reply=text_of(pair, side), criteria=criteria)
                    found.append(Opposed(question=question, group=pair.conversation.id))
    return random.Random(seed).sample(found, min(BANK_ITEMS, len(found)))


def shuffled_rubrics(pairs: Sequence[CorpusPair], *, seed: int) -> list[tuple[Rubric, ...]]:
    """Per pair its own weights with the criteria of turns of other conversations."""
    dice = random.Random(seed)
    found = []
    for pair in pairs:
        others = [other for other in pairs if other.conversation.id != pair.conversation.id]
        drawn = dice.sample(others, min(SHUFFLES, len(others)))
        found.append(tuple(replace(rubric_of(other.turn), weights=pair.turn.weights) for other in drawn))
    return found


async def _opposed_row(key: str, items: Sequence[Opposed], tools: Instruments) -> Row:
    readings = await tools.judge([item.question for item in items])
    credits: list[float] = []
    for reading in readings:
        true, false = levels_of_reading(reading)
        # A tie does not part them, and neither does a missing level.
        credits.append(float(true is not None and false is not None and pair_credit(true, false) == 1.0))
    return row(key, bootstrap_interval(credits, groups=[item.group for item in items], seed=tools.seed), n=len(credits))


async def _shuffled_row(pairs: Sequence[CorpusPair], tools: Instruments) -> Row:
    own = [(rubric_of(pair.turn),) for pair in pairs]
    with_own = await _credits(pairs, own, tools)
    with_others = await _credits(pairs, shuffled_rubrics(pairs, seed=tools.seed), tools)
    lost: list[float] = []
    groups: list[str] = []
    for pair, one, other in zip(pairs, with_own, with_others, strict=True):
        if one is not None and other is not None:
            lost.append(100 * (one - other))
            groups.append(pair.conversation.id)
    return row("sense.shuffled", bootstrap_interval(lost, groups=groups, seed=tools.seed), n=len(lost))


async def _credits(
    pairs: Sequence[CorpusPair], rubrics: Sequence[tuple[Rubric, ...]], tools: Instruments
) -> list[float | None]:
    """Per pair the mean credit under its rubrics; None where one of them grades nothing."""
    asked = [
        (pair, rubric, side) for pair, under in zip(pairs, rubrics, strict=True) for rubric in under for side in SIDES
    ]
    readings = await tools.judge(
        [Question.under(rubric, context=pair.context, reply=text_of(pair, side)) for pair, rubric, side in asked]
    )
    rewards = iter(
        [
            reward_of_levels(levels_of_reading(reading, faults_of(rubric)), rubric)
            for (_, rubric, _), reading in zip(asked, readings, strict=True)
        ]
    )
    means: list[float | None] = []
    for pair, under in zip(pairs, rubrics, strict=True):
        credits = [judged(pair, {(pair.id, side): next(rewards) for side in SIDES}).credit for _ in under]
        known = [credit for credit in credits if credit is not None]
        means.append(sum(known) / len(known) if known and len(known) == len(credits) else None)
    return means
