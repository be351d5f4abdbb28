"""A judge against people who chose between two replies: accuracy with its interval, and what bends it.

Benchmarks read corpus pairs and public votes through here, the console reads what staff labelled. Intervals draw whole
conversations. A pair that the judge did not grade is counted and never guessed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rubric.agreement import Interval, bootstrap_interval, pair_credit, wilson_interval

Place = Literal["first", "second"]
LENGTH_RATIO: Final = 1.2  # up to here two replies are as good as equally long
HUMAN_PAIRS_NEEDED: Final = 200  # labelled by staff, before anything is said about people


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedPair:
    """Two replies to one context of which people chose one, with what a judge gave each (None: nothing)."""

    group: Hashable  # the conversation, question or visitor that it belongs to
    chosen: float | None
    rejected: float | None
    chosen_chars: int
    rejected_chars: int

    @property
    def credit(self) -> float | None:
        """1 where the judge chooses as people did, 1/2 on a tie, else 0; None where a reply is ungraded."""
        if self.chosen is None or self.rejected is None:
            return None
        return pair_credit(self.chosen, self.rejected) if math.isfinite(self.chosen - self.rejected) else None

    @property
    def length_ratio(self) -> float:
        """Characters of the longer reply by those of the shorter, at least 1; infinite where one is empty."""
        shorter, longer = sorted((self.chosen_chars, self.rejected_chars))
        if shorter == longer:
            return 1.0
        return longer / shorter if shorter else math.inf


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthBias:
    """How often each side takes the longer reply, where one is longer; ties of the judge count one half."""

    judge: float
    people: float
    difference: Interval  # judge less people; over 0: the judge leans to length more than people do


@dataclass(frozen=True, kw_only=True, slots=True)
class PositionBias:
    """How often the reply that was shown first is taken; without bias and with a drawn order, one half."""

    first: int
    second: int
    undecided: int

    @property
    def share(self) -> Interval | None:
        """first / (first + second) with Wilson's interval; None where nothing was decided."""
        decided = self.first + self.second
        return wilson_interval(self.first, decided) if decided else None


@dataclass(frozen=True, kw_only=True, slots=True)
class AgreementWithPeople:
    """What is known of a judge's agreement with people over some pairs; None where nothing was graded."""

    graded: int
    ungraded: int
    accuracy: Interval | None
    length_matched: Interval | None
    length_bias: LengthBias | None

    @property
    def is_evidence(self) -> bool:
        """Whether the pairs are enough to say anything; a page that shows the judge says so where they are not."""
        return self.graded >= HUMAN_PAIRS_NEEDED


def agreement_with_people(pairs: Sequence[JudgedPair], *, seed: int) -> AgreementWithPeople:
    """Everything above over these pairs."""
    graded = sum(pair.credit is not None for pair in pairs)
    return AgreementWithPeople(
        graded=graded,
        ungraded=len(pairs) - graded,
        accuracy=accuracy_interval(pairs, seed=seed),
        length_matched=accuracy_interval(length_matched(pairs), seed=seed),
        length_bias=length_bias(pairs, seed=seed),
    )


def accuracy_interval(pairs: Sequence[JudgedPair], *, seed: int) -> Interval | None:
    """The mean credit of the graded pairs, its interval by group; None without one."""
    graded = [(pair.credit, pair.group) for pair in pairs if pair.credit is not None]
    return bootstrap_interval([credit for credit, _ in graded], groups=[group for _, group in graded], seed=seed)


def length_matched(pairs: Iterable[JudgedPair], *, most_ratio: float = LENGTH_RATIO) -> list[JudgedPair]:
    """The pairs in which the longer reply has at most `most_ratio` times the characters of the shorter."""
    return [pair for pair in pairs if pair.length_ratio <= most_ratio]


def length_bias(pairs: Iterable[JudgedPair], *, seed: int) -> LengthBias | None:
    """How much more often the judge takes the longer reply than people do; None where no graded pair differs."""
    judge: list[float] = []
    people: list[float] = []
    groups: list[Hashable] = []
    for pair in pairs:
        if (credit := pair.credit) is not None and pair.chosen_chars != pair.rejected_chars:
            is_longer = pair.chosen_chars > pair.rejected_chars
            judge.append(credit if is_longer else 1 - credit)
            people.append(float(is_longer))
            groups.append(pair.group)
    differences = [one - other for one, other in zip(judge, people, strict=True)]
    difference = bootstrap_interval(differences, groups=groups, seed=seed)
    if difference is None:
        return None
    return LengthBias(
        judge=math.fsum(judge) / len(judge), people=math.fsum(people) / len(people), difference=difference
    )


def position_bias(choices: Iterable[Place | None]) -> PositionBias:
    """Count by place what was chosen; None is undecided. A judge asked in both orders gives both of its choices."""
    counts = Counter(choices)
    return PositionBias(first=counts["first"], second=counts["second"], undecided=counts[None])


def order_consistency(both_orders: Iterable[tuple[Place | None, Place | None]]) -> Interval | None:
    """The share of pairs in which the same reply is taken in either order, of those decided both times; else None.

    The second choice is by place in the swapped order, so that ("first", "second") is one reply chosen twice.
    """
    decided = [one != other for one, other in both_orders if one is not None and other is not None]
    return wilson_interval(sum(decided), len(decided)) if decided else None
