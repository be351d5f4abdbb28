"""The few statistics of the benchmarks: percentiles, medians of rounds, and how far the rounds lie apart. Pure.

A *round* is one measurement of everything that is compared; rounds alternate between the arms, so that a machine that
is busy for a while slows both. What is reported is the median of the rounds with the lowest and the highest of them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with the lowest and the highest round; `n` counts the rounds, or the samples where there is one."""

    value: float
    low: float
    high: float
    n: int


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie, interpolated between neighbours: .5 is the median.

    Raises ValueError for no values and for a share outside [0, 1].
    """
    if not values or not 0.0 <= share <= 1.0:
        raise ValueError(f"A percentile needs values and a share from 0 to 1 ({len(values)} values, share {share}).")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def of_rounds(values: Sequence[float]) -> Figure:
    """The median of the rounds. Raises ValueError where none could be measured."""
    if not values:
        raise ValueError("No round was measured.")
    return Figure(value=statistics.median(values), low=min(values), high=max(values), n=len(values))


def of_samples(values: Sequence[float], share: float) -> Figure:
    """A percentile of one run with its 95 % interval by order statistics (the binomial's normal approximation)."""
    width = 1.96 * math.sqrt(share * (1.0 - share) / max(len(values), 1))
    low, high = max(0.0, share - width), min(1.0, share + width)
    return Figure(
        value=percentile(values, share), low=percentile(values, low), high=percentile(values, high), n=len(values)
    )


def ratios(ours: Sequence[float], others: Sequence[float]) -> Figure:
    """Ours by theirs, round by round. Raises ValueError where the rounds do not pair or one of theirs is 0."""
    if len(ours) != len(others) or not all(others):
        raise ValueError(f"{len(ours)} rounds of ours do not pair with {len(others)} of theirs, or one of them is 0.")
    return of_rounds([one / other for one, other in zip(ours, others, strict=True)])


def gaps(stamps_s: Sequence[float]) -> list[float]:
    """The pauses between neighbouring moments, in seconds."""
    return [later - earlier for earlier, later in pairwise(stamps_s)]


def rate_between(stamps_s: Sequence[Sequence[float]], *, begin_s: float, end_s: float) -> float:
    """Events a second of all streams together between two moments."""
    return sum(begin_s <= stamp < end_s for stream in stamps_s for stamp in stream) / (end_s - begin_s)
