"""How well grades agree: with preferences, between raters, and how sure one may be of it.

Benchmarks, gates and the console's agreement figures come through here. Whatever cannot be computed is None, and what
was left out is counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
PREFERENCE_MARGIN = 0.02  # reward differences up to this count as a tie
_ROUNDING = 1e-12  # .52 - .50 is a hair over .02 in binary


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """A confidence interval with its point estimate."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PairAccuracy:
    """How often the preferred reply has the higher reward; a tie counts one half, ungraded pairs do not count."""

    wins: int
    ties: int
    losses: int
    ungraded: int

    @property
    def graded(self) -> int:
        return self.wins + self.ties + self.losses

    @property
    def accuracy(self) -> float | None:
        """(wins + ties / 2) / graded, in [0, 1]; None without a graded pair."""
        return (self.wins + self.ties / 2) / self.graded if self.graded else None

    @property
    def win_share(self) -> float | None:
        """wins / (wins + losses), in [0, 1]; None where all pairs tie."""
        decided = self.wins + self.losses
        return self.wins / decided if decided else None


def pair_credit(chosen: float, rejected: float, *, margin: float = PREFERENCE_MARGIN) -> float:
    """1 where chosen - rejected > margin, 1/2 where they differ by at most margin, else 0."""
    difference = chosen - rejected
    if abs(difference) <= margin + _ROUNDING:
        return 0.5
    return 1.0 if difference > 0 else 0.0


def pair_accuracy(
    rewards: Iterable[tuple[float | None, float | None]], *, margin: float = PREFERENCE_MARGIN
) -> PairAccuracy:
    """Count (reward of the chosen, reward of the rejected) pairs; a None or NaN on either side is ungraded."""
    outcomes: Counter[float] = Counter()
    ungraded = 0
    for chosen, rejected in rewards:
        if chosen is None or rejected is None or not (math.isfinite(chosen) and math.isfinite(rejected)):
            ungraded += 1
        else:
            outcomes[pair_credit(chosen, rejected, margin=margin)] += 1
    return PairAccuracy(wins=outcomes[1.0], ties=outcomes[0.5], losses=outcomes[0.0], ungraded=ungraded)


def weighted_kappa(
    first: Sequence[float | None],
    second: Sequence[float | None],
    *,
    categories: Sequence[float],
    weighting: Literal["linear", "quadratic"] = "quadratic",
) -> float | None:
    """Cohen's weighted kappa of two raters over ordered categories, 1 - observed / expected disagreement.

    Distances are between places in `categories`, not between values. Items that either left out are dropped; None where
    nothing is left or both always chose one and the same category. Raises ValueError for different lengths or a value
    that is no category.
    """
    if len(first) != len(second):
        raise ValueError(f"two raters gave {len(first)} and {len(second)} ratings")
    place = {category: at for at, category in enumerate(categories)}
    pairs = [
        (_place_of(one, place), _place_of(other, place))
        for one, other in zip(first, second, strict=True)
        if one is not None and other is not None
    ]
    if not pairs:
        return None
    table = np.zeros((len(categories), len(categories)))
    for one, other in pairs:
        table[one, other] += 1
    steps = np.abs(np.subtract.outer(np.arange(len(categories)), np.arange(len(categories)))).astype(float)
    distance = steps**2 if weighting == "quadratic" else steps
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / len(pairs)
    expected_disagreement = float((distance * expected).sum())
    if expected_disagreement == 0:
        return None
    return 1 - float((distance * table).sum()) / expected_disagreement


def krippendorff_alpha(units: Sequence[Sequence[float | None]]) -> float | None:
    """Krippendorff's alpha with the ordinal metric; each unit holds the ratings of one item, None for a missing one.

    Any number of raters per item; items with fewer than two ratings do not count. None where no pair of ratings is left
    or all ratings are equal.
    """
    rated = [[value for value in unit if value is not None] for unit in units]
    paired = [unit for unit in rated if len(unit) >= 2]
    values = sorted({value for unit in paired for value in unit})
    if len(values) < 2:
        return None
    coincidences = _coincidences(paired, values)
    totals = coincidences.sum(axis=1)
    distance = _ordinal_distance(totals)
    pairs = totals.sum()
    observed = float((coincidences * distance).sum())
    expected = float((np.outer(totals, totals) * distance).sum()) / float(pairs - 1)
    return 1 - observed / expected


def wilson_interval(successes: int, trials: int, *, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a share; it always holds the estimate. Raises ValueError for 0 trials."""
    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"{successes} of {trials} is no share")
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / trials
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / (1 + z * z / trials)
    # At 0 and at all the bound is exact; rounding must not leave the estimate outside.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(estimate=share, low=low, high=high)


def mean_of(values: FloatArray) -> float:
    """The plain mean, as a statistic for `bootstrap_interval`."""
    return float(values.mean())


def bootstrap_interval(
    values: Sequence[float],
    *,
    groups: Sequence[Hashable],
    seed: int,
    statistic: Callable[[FloatArray], float] = mean_of,
    resamples: int = 2_000,
    confidence: float = 0.95,
) -> Interval | None:
    """Percentile interval of a statistic, drawing whole groups (conversations, profiles) with replacement.

    Values of one group move together, as they are not independent. None without values. Raises ValueError for different
    lengths or a value that is not finite.
    """
    if len(values) != len(groups):
        raise ValueError(f"{len(values)} values have {len(groups)} groups")
    data = np.asarray(values, dtype=np.float64)
    if not np.isfinite(data).all():
        raise ValueError("a value is not finite; leave ungraded ones out and count them")
    if not len(data):
        return None
    by_group = _members(data, groups)
    dice = np.random.default_rng(seed)
    drawn = np.empty(resamples)
    for at in range(resamples):
        picks = dice.integers(len(by_group), size=len(by_group))
        drawn[at] = statistic(np.concatenate([by_group[pick] for pick in picks]))
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(estimate=statistic(data), low=float(low), high=float(high))


def _place_of(value: float, place: dict[float, int]) -> int:
    """The place of a category. Raises ValueError for a value that is none."""
    if value not in place:
        raise ValueError("a rating is none of the categories")
    return place[value]


def _members(data: FloatArray, groups: Sequence[Hashable]) -> list[FloatArray]:
    rows: dict[Hashable, list[int]] = {}
    for at, group in enumerate(groups):
        rows.setdefault(group, []).append(at)
    return [data[members] for members in rows.values()]


def _coincidences(units: Sequence[Sequence[float]], values: Sequence[float]) -> FloatArray:
    place = {value: at for at, value in enumerate(values)}
    table: FloatArray = np.zeros((len(values), len(values)))
    for unit in units:
        for one, other in permutations(unit, 2):
            table[place[one], place[other]] += 1 / (len(unit) - 1)
    return table


def _ordinal_distance(totals: FloatArray) -> FloatArray:
    """delta(c, k) = (sum of totals from c to k, minus half of both ends) squared."""
    size = len(totals)
    distance: FloatArray = np.zeros((size, size))
    for one in range(size):
        for other in range(one + 1, size):
            between = totals[one : other + 1].sum() - (totals[one] + totals[other]) / 2
            distance[one, other] = distance[other, one] = between**2
    return distance
