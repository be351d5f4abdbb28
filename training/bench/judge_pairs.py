"""Own pairs: does the judge, does the examiner find the better reply better? And against length and blind readers.

Each reply is read by weights that never saw its conversation: out of fold where the recipe learned from its author, by
the shipped weights where it did not (author D for the judge, A to C for the examiner).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rubric import (
    JudgedPair,
    PairAccuracy,
    accuracy_interval,
    length_bias,
    length_matched,
    pair_accuracy,
    wilson_interval,
)
from rubric.corpus.pairs import CorpusPair, Relabel, agrees, all_pairs, kept_pairs, read_relabels
from rubric.corpus.records import read_corpus
from rubric.corpus.rubrics import Side, rubric_of
from training.bench.judge_asking import Instruments, Question, faults_of, levels_of_reading, reward_of_levels
from training.bench.judge_predictions import ReplyPrediction, Who, missing_note, read_folds
from training.bench.judge_rows import Row, not_measured, row

AUTHOR_OF_EXAMINER: Final = "D"  # the judge learns from the others, the examiner from this one
SIDES: Final[tuple[Side, ...]] = ("reply", "worse")

Rewards = Mapping[tuple[str, Side], float | None]  # by pair and side; what nobody read is not in it


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairs:
    """The corpus' pairs: those that train and measure, those that somebody read, and the readers' choices."""

    kept: Sequence[CorpusPair]
    read: Sequence[CorpusPair]
    relabels: Mapping[str, Relabel]


def load_pairs() -> Pairs:
    """From the committed corpus. Raises CorpusInvalid."""
    conversations, relabels = read_corpus(), read_relabels()
    read = [pair for pair in all_pairs(conversations) if agrees(pair, relabels) is not None]
    return Pairs(kept=kept_pairs(conversations, relabels=relabels), read=read, relabels=relabels)


async def measure(tools: Instruments) -> list[Row]:
    """The rows of the part `pairs`, over the whole corpus."""
    return await measure_over(load_pairs(), tools)


async def measure_over(pairs: Pairs, tools: Instruments) -> list[Row]:
    """The same over these pairs."""
    return [
        *_judge_rows(pairs, await judge_rewards(pairs.read, tools), tools),
        *_if_folds(
            rows_of("examiner", pairs, await examiner_rewards(pairs.read, tools), seed=tools.seed), "examiner", tools
        ),
        _longer_row(pairs.kept, tools),
    ]


async def judge_rewards(pairs: Sequence[CorpusPair], tools: Instruments) -> Rewards:
    """By the recipe's folds for authors A to C, where they are there; by the encoder process for D."""
    new = [(pair, side) for pair in pairs if is_of_examiner(pair) for side in SIDES]
    rubrics = [rubric_of(pair.turn) for pair, _ in new]
    readings = await tools.judge(
        [
            Question.under(rubric, context=pair.context, reply=text_of(pair, side))
            for (pair, side), rubric in zip(new, rubrics, strict=True)
        ]
    )
    asked = {
        (pair.id, side): reward_of_levels(levels_of_reading(reading, faults_of(rubric)), rubric)
        for (pair, side), rubric, reading in zip(new, rubrics, readings, strict=True)
    }
    folds = read_folds(tools.predictions, "judge") or {}
    learned = [(pair, side) for pair in pairs if not is_of_examiner(pair) for side in SIDES]
    return asked | {
        (pair.id, side): _reward_of_fold(pair, found)
        for pair, side in learned
        if (found := folds.get(f"{pair.id}/{side}")) is not None
    }


async def examiner_rewards(pairs: Sequence[CorpusPair], tools: Instruments) -> Rewards:
    """By the recipe's folds for author D, where they are there; by the shipped examiner for A to C."""
    new = [(pair, side) for pair in pairs if not is_of_examiner(pair) for side in SIDES]
    examined = await tools.examine([(pair.context, text_of(pair, side)) for pair, side in new])
    folds = read_folds(tools.predictions, "examiner") or {}
    learned = [(pair, side) for pair in pairs if is_of_examiner(pair) for side in SIDES]
    return {(pair.id, side): one.quality for (pair, side), one in zip(new, examined, strict=True)} | {
        (pair.id, side): found.quality
        for pair, side in learned
        if (found := folds.get(f"{pair.id}/{side}")) is not None
    }


def is_of_examiner(pair: CorpusPair) -> bool:
    """Whether the examiner learned from its author, and the judge did not."""
    return pair.conversation.author == AUTHOR_OF_EXAMINER


def text_of(pair: CorpusPair, side: Side) -> str:
    """The reply on that side."""
    return pair.turn.reply if side == "reply" else pair.worse.text


def judged(pair: CorpusPair, rewards: Rewards) -> JudgedPair:
    """The pair as its author decided it."""
    return JudgedPair(
        group=pair.conversation.id,
        chosen=rewards.get((pair.id, "reply")),
        rejected=rewards.get((pair.id, "worse")),
        chosen_chars=len(pair.turn.reply),
        rejected_chars=len(pair.worse.text),
    )


def judged_by_reader(pair: CorpusPair, rewards: Rewards, relabels: Mapping[str, Relabel]) -> JudgedPair:
    """The pair as its blind reader decided it."""
    found = judged(pair, rewards)
    if agrees(pair, relabels):
        return found
    return replace(
        found,
        chosen=found.rejected,
        rejected=found.chosen,
        chosen_chars=found.rejected_chars,
        rejected_chars=found.chosen_chars,
    )


def counts(pairs: Iterable[JudgedPair]) -> PairAccuracy:
    """Wins, ties, losses and what is ungraded."""
    return pair_accuracy((pair.chosen, pair.rejected) for pair in pairs)


def _reward_of_fold(pair: CorpusPair, found: ReplyPrediction) -> float | None:
    return reward_of_levels(found.expected, rubric_of(pair.turn))


def rows_of(who: Who, pairs: Pairs, rewards: Rewards, *, seed: int) -> list[Row]:
    """The rows that judge and examiner share."""
    kept = [judged(pair, rewards) for pair in pairs.kept]
    readers = [judged_by_reader(pair, rewards, pairs.relabels) for pair in pairs.read]
    bias = length_bias(kept, seed=seed)
    unequal = sum(pair.credit is not None and pair.chosen_chars != pair.rejected_chars for pair in kept)
    return [
        accuracy_row(f"pairs.{who}", kept, seed=seed),
        accuracy_row(f"pairs.{who}_matched", length_matched(kept), seed=seed),
        row(f"pairs.{who}_length_bias", bias.difference if bias else None, n=unequal),
        accuracy_row(f"pairs.{who}_readers", readers, seed=seed),
    ]


def accuracy_row(key: str, pairs: Sequence[JudgedPair], *, seed: int) -> Row:
    """Accuracy with its interval by conversation; what is ungraded is said."""
    found = counts(pairs)
    note = f"{found.ungraded} ungraded" if found.ungraded else ""
    return row(key, accuracy_interval(pairs, seed=seed), n=found.graded, note=note)


def _judge_rows(pairs: Pairs, rewards: Rewards, tools: Instruments) -> list[Row]:
    new = [judged(pair, rewards) for pair in pairs.kept if is_of_examiner(pair)]
    whole = counts(judged(pair, rewards) for pair in pairs.kept)
    ties = wilson_interval(whole.ties, whole.graded) if whole.graded else None
    rows = [*rows_of("judge", pairs, rewards, seed=tools.seed), row("pairs.judge_ties", ties, n=whole.graded)]
    return [
        *_if_folds(rows, "judge", tools),
        accuracy_row("pairs.judge_new_author", new, seed=tools.seed),
    ]


def _if_folds(rows: Iterable[Row], who: Who, tools: Instruments) -> list[Row]:
    """The rows, or that they cannot be measured: without the folds they would be over a part of the pairs only."""
    if read_folds(tools.predictions, who) is not None:
        return list(rows)
    return [not_measured(one.goal.key, missing_note(who)) for one in rows]


def _longer_row(pairs: Sequence[CorpusPair], tools: Instruments) -> Row:
    lengths = {(pair.id, side): float(len(text_of(pair, side))) for pair in pairs for side in SIDES}
    return accuracy_row("pairs.longer", [judged(pair, lengths) for pair in pairs], seed=tools.seed)
