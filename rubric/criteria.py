"""What a rubric is: three weighted dimensions of empathy, each with criteria that a judge can check in one reply.

Values only. `parsing` makes them from text and holds the rules, `fallback` holds the generic ones, `reward` turns a
rubric and a score into a number. The constructors refuse what would make that number wrong (weights that do not sum to
1, ids given twice); rules of content are applied where text comes in, so that a stored rubric stays readable after a
rule has been sharpened.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from rubric.errors import RubricInvalid
from rubric.json_types import JsonObject

RUBRIC_SCHEMA = "care-rubric/1"
SHARES_TOLERANCE = 0.02  # how far written shares may miss 1 and still be normalised
SUM_TOLERANCE = 1e-9  # how far normalised weights may miss 1
MAX_POINTS = 1_000
MAX_CRITERION_WEIGHT = 10.0


class Dimension(StrEnum):
    """The three kinds of empathy, always in this order."""

    COGNITIVE = "cognitive"  # grasp the situation, the view, the meaning
    AFFECTIVE = "affective"  # notice the feeling, name it, stay with it
    PROACTIVE = "proactive"  # enable a next step, agency, hope

    @property
    def letter(self) -> str:
        """The first letter of criterion ids: C, A or P."""
        return self.value[0].upper()


class Polarity(StrEnum):
    """Whether a criterion describes what a reply should do, or what it should leave."""

    WANT = "want"
    AVOID = "avoid"


class Stage(StrEnum):
    """How far a conversation has come."""

    OPENING = "opening"
    EXPLORATION = "exploration"
    WORKING = "working"
    CLOSING = "closing"


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """How much each dimension matters now; each in [0, 1], sum 1. Raises RubricInvalid otherwise."""

    cognitive: float
    affective: float
    proactive: float

    def __post_init__(self) -> None:
        shares = (self.cognitive, self.affective, self.proactive)
        if not all(math.isfinite(share) and 0 <= share <= 1 for share in shares):
            raise RubricInvalid(problems=("weights: each must lie between 0 and 1",))
        if abs(math.fsum(shares) - 1) > SUM_TOLERANCE:
            raise RubricInvalid(problems=(f"weights: they sum to {math.fsum(shares):.4g} instead of 1",))

    @classmethod
    def uniform(cls) -> Self:
        """A third each."""
        return cls(cognitive=1 / 3, affective=1 / 3, proactive=1 / 3)

    @classmethod
    def from_points(cls, points: Mapping[Dimension, int]) -> Self:
        """Normalise whole points: (30, 50, 20) and (3, 5, 2) both become (.3, .5, .2).

        Raises RubricInvalid where a dimension is missing, a number is no int in 0..1000, or all are zero.
        """
        _require_dimensions(points, name="points")
        if not all(type(given) is int and 0 <= given <= MAX_POINTS for given in points.values()):
            raise RubricInvalid(problems=(f"points: each must be a whole number from 0 to {MAX_POINTS}",))
        total = sum(points.values())
        if total == 0:
            raise RubricInvalid(problems=("points: all are zero",))
        return cls(**{dimension.value: points[dimension] / total for dimension in Dimension})

    @classmethod
    def from_shares(cls, shares: Mapping[Dimension, float]) -> Self:
        """Take written shares, each in [0, 1]; a sum that misses 1 by at most .02 is normalised.

        Raises RubricInvalid where a dimension is missing, a number is not finite, or the sum is further off.
        """
        _require_dimensions(shares, name="weights")
        if not all(math.isfinite(share) and 0 <= share <= 1 for share in shares.values()):
            raise RubricInvalid(problems=("weights: each must lie between 0 and 1",))
        total = math.fsum(shares.values())
        # The tiny addend lets .98 and 1.02 in, which no binary fraction hits exactly.
        if abs(total - 1) > SHARES_TOLERANCE + SUM_TOLERANCE:
            raise RubricInvalid(problems=(f"weights: they sum to {total:.4g} instead of 1",))
        if abs(total - 1) <= SUM_TOLERANCE:
            total = 1.0  # kept bit for bit, so that a stored rubric keeps its hash
        return cls(**{dimension.value: shares[dimension] / total for dimension in Dimension})

    def of(self, dimension: Dimension) -> float:
        """The weight of one dimension, in [0, 1]."""
        return {
            Dimension.COGNITIVE: self.cognitive,
            Dimension.AFFECTIVE: self.affective,
            Dimension.PROACTIVE: self.proactive,
        }[dimension]

    @property
    def leaders(self) -> frozenset[Dimension]:
        """The dimensions that share the largest weight; more than one on a tie."""
        largest = max(self.cognitive, self.affective, self.proactive)
        return frozenset(dimension for dimension in Dimension if self.of(dimension) == largest)

    @property
    def dominant(self) -> Dimension:
        """The dimension with the largest weight; on a tie the first in the order of `Dimension`."""
        return next(dimension for dimension in Dimension if dimension in self.leaders)


@dataclass(frozen=True, kw_only=True, slots=True)
class Criterion:
    """One thing that a judge looks for in a reply; `weight` (over 0, at most 10) counts inside its dimension only."""

    id: str
    text: str
    dimension: Dimension
    weight: float = 1.0
    polarity: Polarity = Polarity.WANT

    def __post_init__(self) -> None:
        if not (math.isfinite(self.weight) and 0 < self.weight <= MAX_CRITERION_WEIGHT):
            raise RubricInvalid(problems=(f"criterion weight: must be over 0 and at most {MAX_CRITERION_WEIGHT:g}",))

    def to_json(self) -> JsonObject:
        return {
            "id": self.id,
            "dimension": self.dimension.value,
            "text": self.text,
            "weight": float(self.weight),
            "polarity": self.polarity.value,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class DialogueState:
    """The generator's reading of the moment; any part may be missing. `emotion_intensity` lies in [0, 1]."""

    stage: Stage | None = None
    emotion_label: str | None = None
    emotion_intensity: float | None = None
    need_summary: str | None = None

    def to_json(self) -> JsonObject:
        return {
            "stage": self.stage.value if self.stage else None,
            "emotion_label": self.emotion_label,
            "emotion_intensity": self.emotion_intensity,
            "need_summary": self.need_summary,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Rubric:
    """What matters in the next reply, made from the context alone; one rubric serves all sibling replies of a turn.

    `repairs` counts repair attempts behind it (0 or 1). Where `is_fallback`, criteria are the generic ones and
    `fallback_reason` says why; such rubrics are counted. Raises RubricInvalid where two criteria share an id.
    """

    weights: Weights
    criteria: tuple[Criterion, ...]
    state: DialogueState | None = None
    is_fallback: bool = False
    fallback_reason: str | None = None
    repairs: int = 0

    def __post_init__(self) -> None:
        if len({criterion.id for criterion in self.criteria}) != len(self.criteria):
            raise RubricInvalid(problems=("criteria: an id is given twice",))
        if self.is_fallback != (self.fallback_reason is not None):
            raise RubricInvalid(problems=("fallback: a reason is given exactly where the rubric is the fallback",))

    def __iter__(self) -> Iterator[Criterion]:
        return iter(self.criteria)

    def criteria_of(self, dimension: Dimension) -> tuple[Criterion, ...]:
        """The criteria of one dimension, in their order."""
        return tuple(criterion for criterion in self.criteria if criterion.dimension is dimension)

    def with_repairs(self, repairs: int) -> Rubric:
        """The same rubric, marked as having cost that many repair attempts."""
        return replace(self, repairs=repairs)

    @property
    def sha256(self) -> str:
        """Hash of weights and criteria: all that a reward depends on. State and flags are left out."""
        graded: JsonObject = {
            "schema": RUBRIC_SCHEMA,
            "weights": _weights_json(self.weights),
            "criteria": [criterion.to_json() for criterion in self.criteria],
        }
        canonical = json.dumps(graded, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()

    def to_json(self) -> JsonObject:
        """The stored form (`care-rubric/1`); `rubric.rubric_from_json` reads it back equal."""
        return {
            "schema": RUBRIC_SCHEMA,
            "state": self.state.to_json() if self.state else None,
            "weights": _weights_json(self.weights),
            "criteria": [criterion.to_json() for criterion in self.criteria],
            "fallback": self.is_fallback,
            "fallback_reason": self.fallback_reason,
            "repairs": self.repairs,
        }

    @classmethod
    def from_json(cls, stored: JsonObject) -> Rubric:
        """Read what `to_json` wrote. Raises RubricInvalid for any other shape; content rules are not applied again."""
        from rubric.parsing import rubric_from_json  # parsing builds rubrics, so it imports this file

        return rubric_from_json(stored)


def _weights_json(weights: Weights) -> JsonObject:
    # Floats whatever was given, and no -0.0: the hash must survive a database that stores numbers its own way.
    return {dimension.value: float(weights.of(dimension)) + 0.0 for dimension in Dimension}


def _require_dimensions(given: Mapping[Dimension, object], *, name: str) -> None:
    if set(given) != set(Dimension):
        raise RubricInvalid(problems=(f"{name}: exactly cognitive, affective and proactive must be given",))
