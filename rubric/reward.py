"""From a score to one number: R = sum over dimensions of w_d * S_d, in [0, 1], or None.

S_d is the mean of the criterion levels of a dimension, weighted by the criterion weights q; `avoid` criteria count
1 - level; a criterion without a level is left out of its dimension's mean. A dimension without any level gives None: no
reward, no gradient. docs/rubric.md has the formula with its golden vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from rubric.criteria import Criterion, Dimension, Polarity, Rubric, Weights
from rubric.errors import ScoreMismatch
from rubric.fallback import GENERIC_CRITERIA
from rubric.score import Score


class Ablation(StrEnum):
    """Which half of a rubric is replaced by a uniform one, to measure what that half is worth."""

    NONE = "none"
    WEIGHTS = "weights"  # a third each, the turn's own criteria
    CRITERIA = "criteria"  # the turn's own weights, generic criteria
    BOTH = "both"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reward:
    """A reply's reward under a rubric: `value` and each part of `by_dimension` in [0, 1].

    `rubric_sha256` is that of the rubric really used (after ablation), so that an old reward stays explainable.
    """

    value: float
    by_dimension: Mapping[Dimension, float]
    rubric_sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardSummary:
    """Mean over the rewards that exist; None and NaN are counted, never averaged. `mean` is None where none exists."""

    mean: float | None
    graded: int
    ungraded: int


def ablated(rubric: Rubric, ablation: Ablation) -> Rubric:
    """The rubric with its weights, its criteria or both made uniform.

    With generic criteria the reply has to be judged again under this rubric: its ids differ from every other rubric's.
    """
    weights = Weights.uniform() if ablation in {Ablation.WEIGHTS, Ablation.BOTH} else rubric.weights
    criteria = GENERIC_CRITERIA if ablation in {Ablation.CRITERIA, Ablation.BOTH} else rubric.criteria
    return replace(rubric, weights=weights, criteria=criteria)


def reward_of(score: Score, rubric: Rubric, *, ablation: Ablation = Ablation.NONE) -> Reward | None:
    """Weigh a score by its rubric; None where a whole dimension is ungraded.

    `score` must have been judged under `ablated(rubric, ablation)`. Raises ScoreMismatch where it holds a criterion
    that is not in there.
    """
    used = ablated(rubric, ablation)
    _check_ids(score, used)
    by_dimension: dict[Dimension, float] = {}
    for dimension in Dimension:
        mean = _dimension_mean(used.criteria_of(dimension), score.levels)
        if mean is None:
            return None
        by_dimension[dimension] = mean
    value = math.fsum(used.weights.of(dimension) * by_dimension[dimension] for dimension in Dimension)
    return Reward(value=_clip(value), by_dimension=by_dimension, rubric_sha256=used.sha256)


def summarise_rewards(values: Iterable[float | None]) -> RewardSummary:
    """Average what was graded: (None, -1, -1, None) has mean -1 and two ungraded; (None, None) has mean None."""
    given = list(values)
    graded = [value for value in given if value is not None and math.isfinite(value)]
    mean = math.fsum(graded) / len(graded) if graded else None
    return RewardSummary(mean=mean, graded=len(graded), ungraded=len(given) - len(graded))


def _dimension_mean(criteria: tuple[Criterion, ...], levels: Mapping[str, float | None]) -> float | None:
    graded = [
        (criterion.weight, 1 - level if criterion.polarity is Polarity.AVOID else level)
        for criterion in criteria
        if (level := levels.get(criterion.id)) is not None
    ]
    if not graded:
        return None
    total = math.fsum(weight for weight, _ in graded)
    return _clip(math.fsum(weight * level for weight, level in graded) / total)


def _check_ids(score: Score, rubric: Rubric) -> None:
    known = {criterion.id for criterion in rubric}
    unknown = tuple(name for name in score.levels if name not in known)
    if unknown:
        raise ScoreMismatch(unknown_ids=unknown, rubric_sha256=rubric.sha256)


def _clip(value: float) -> float:
    # Rounding may carry a mean of ones a hair over 1.
    return min(1.0, max(0.0, value))
