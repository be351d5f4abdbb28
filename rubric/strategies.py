"""Support strategies, the dimension each belongs to, and whether a rubric's weights agree with those that were used.

Annotators tag a preferred reply with strategies; priority alignment is the small extra term of the generator's training
objective and a figure of its own in reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from rubric.criteria import Dimension, Weights


class Strategy(StrEnum):
    """What a supporter does in a reply; the values are what preference files hold."""

    QUESTION = "question"
    RESTATEMENT = "restatement"
    PERSPECTIVE = "perspective"  # explains how something may look from another side
    ANALYSIS = "analysis"  # takes the problem apart
    REFLECTION = "reflection"  # gives a feeling back in words
    VENTING_SPACE = "venting_space"
    VALIDATION = "validation"
    PRAISE = "praise"
    SELF_DISCLOSURE = "self_disclosure"
    SUGGESTION = "suggestion"
    INFORMATION = "information"
    PLANNING = "planning"
    GUIDED_SELF_REFLECTION = "guided_self_reflection"

    @property
    def dimension(self) -> Dimension:
        """The dimension that the strategy serves."""
        return DIMENSION_OF[self]


DIMENSION_OF: Mapping[Strategy, Dimension] = {
    Strategy.QUESTION: Dimension.COGNITIVE,
    Strategy.RESTATEMENT: Dimension.COGNITIVE,
    Strategy.PERSPECTIVE: Dimension.COGNITIVE,
    Strategy.ANALYSIS: Dimension.COGNITIVE,
    Strategy.REFLECTION: Dimension.AFFECTIVE,
    Strategy.VENTING_SPACE: Dimension.AFFECTIVE,
    Strategy.VALIDATION: Dimension.AFFECTIVE,
    Strategy.PRAISE: Dimension.AFFECTIVE,
    Strategy.SELF_DISCLOSURE: Dimension.AFFECTIVE,
    Strategy.SUGGESTION: Dimension.PROACTIVE,
    Strategy.INFORMATION: Dimension.PROACTIVE,
    Strategy.PLANNING: Dimension.PROACTIVE,
    Strategy.GUIDED_SELF_REFLECTION: Dimension.PROACTIVE,
}

# Longer names in use elsewhere for the same things.
_ALIASES: Mapping[str, Strategy] = {
    "perspective_explanation": Strategy.PERSPECTIVE,
    "problem_analysis": Strategy.ANALYSIS,
    "reflection_of_feeling": Strategy.REFLECTION,
    "reflection_of_feelings": Strategy.REFLECTION,
    "sincere_praise": Strategy.PRAISE,
}


def parse_strategy(name: str) -> Strategy:
    """Read a strategy's name; case, blanks and hyphens do not matter. Raises ValueError for an unknown one."""
    key = "_".join(name.casefold().replace("-", " ").replace("_", " ").split())
    return _ALIASES.get(key) or Strategy(key)


def count_by_dimension(strategies: Iterable[Strategy]) -> Mapping[Dimension, int]:
    """n_d: how many of the strategies, repetitions included, serve each dimension."""
    used = [strategy.dimension for strategy in strategies]
    return {dimension: used.count(dimension) for dimension in Dimension}


def priority_alignment(weights: Weights, counts: Mapping[Dimension, int]) -> float | None:
    """1 where the heaviest dimension is one of those that most strategies serve, else 0; None without any strategy.

    Ties among the counts are all accepted. Ties among the weights must lie wholly within them: otherwise equal weights
    would align with everything.
    """
    largest = max(counts.values(), default=0)
    if largest <= 0:
        return None
    most_used = {dimension for dimension, count in counts.items() if count == largest}
    return 1.0 if weights.leaders <= most_used else 0.0
