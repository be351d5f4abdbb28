"""What a judge found: one judgement per criterion, together the score of one reply.

A level that could not be had is None with a reason, is counted, and is never zero. `reward` makes a number of a score;
`to_json` is what is stored with the reply.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rubric.criteria import Dimension, Rubric
from rubric.errors import ScoreInvalid
from rubric.json_types import JsonObject, JsonValue

LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)

NONE_ABSTAINED = "abstained"  # the judge said that it cannot be told
NONE_MISSING = "missing"  # the judge left the criterion out
NONE_INVALID_LEVEL = "invalid_level"  # the judge gave something that is no level
NONE_UNREADABLE = "unreadable"  # nothing of the judge's answer could be read
NONE_LENGTH = "length"  # the judge's answer was cut off
NONE_EMPTY_REPLY = "empty_reply"  # nothing in the reply can be read
NONE_EMPTY_CRITERION = "empty_criterion"  # nothing in the criterion can be read
NONE_TOO_LONG = "too_long"  # the reply is longer than the judge takes


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """How far a reply does what one criterion says: `level` in [0, 1], or None with a reason.

    The level is as judged: for `avoid` criteria a high one is bad, `reward` turns it round. `evidence` is the span
    (start, end) of the judge's quote in the reply, in code points; a level whose quote stands nowhere in it keeps the
    level and says so (`is_quote_unfound`). Raises ScoreInvalid for a level outside [0, 1] or
    not finite, and where not exactly one of level and reason is given.
    """

    criterion_id: str
    level: float | None
    none_reason: str | None = None
    evidence: tuple[int, int] | None = None
    is_quote_unfound: bool = False

    def __post_init__(self) -> None:
        if (self.level is None) is (self.none_reason is None):
            raise ScoreInvalid(reason="a judgement needs either a level or a reason for none")
        if self.level is not None and not (math.isfinite(self.level) and 0 <= self.level <= 1):
            raise ScoreInvalid(reason="a level is not in [0, 1]")
        if self.evidence is not None and not 0 <= self.evidence[0] < self.evidence[1]:
            raise ScoreInvalid(reason="evidence is no span")
        if self.is_quote_unfound and (self.evidence is not None or self.level is None):
            raise ScoreInvalid(reason="only a level without evidence can have a quote that was not found")

    def to_json(self) -> JsonObject:
        return {
            "criterion_id": self.criterion_id,
            "level": self.level,
            "none_reason": self.none_reason,
            "evidence": list(self.evidence) if self.evidence else None,
            "quote_unfound": self.is_quote_unfound,
        }

    @classmethod
    def from_json(cls, stored: JsonObject) -> Judgement:
        """Read what `to_json` wrote. Raises ScoreInvalid for any other shape."""
        name, level, reason = stored.get("criterion_id"), stored.get("level"), stored.get("none_reason")
        if not isinstance(name, str) or not (reason is None or isinstance(reason, str)):
            raise ScoreInvalid(reason="a stored judgement lacks its id or reason")
        if level is not None and (isinstance(level, bool) or not isinstance(level, int | float)):
            raise ScoreInvalid(reason="a stored judgement's level is no number")
        evidence = _read_span(stored.get("evidence"))
        number = None if level is None else _finite(level)
        is_unfound = stored.get("quote_unfound", False) is True  # older rows do not say
        return cls(criterion_id=name, level=number, none_reason=reason, evidence=evidence, is_quote_unfound=is_unfound)


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """The judgements of one reply under one rubric, and who gave them how.

    `prompt_sha256` covers the judge's prompt file, `attempts` counts requests. Raises ScoreInvalid where one is judged
    twice.
    """

    judgements: tuple[Judgement, ...]
    judge: str
    prompt_sha256: str
    attempts: int
    latency_ms: float

    def __post_init__(self) -> None:
        if len(self.levels) != len(self.judgements):
            raise ScoreInvalid(reason="a criterion is judged twice")

    @property
    def levels(self) -> Mapping[str, float | None]:
        """Criterion id to level."""
        return {judgement.criterion_id: judgement.level for judgement in self.judgements}

    @property
    def none_reasons(self) -> Mapping[str, int]:
        """How many criteria have no level, by reason."""
        return dict(Counter(one.none_reason for one in self.judgements if one.none_reason is not None))

    @property
    def unfound_quotes(self) -> int:
        """How many levels came with a quote that stands nowhere in the reply."""
        return sum(one.is_quote_unfound for one in self.judgements)

    @property
    def unborne_levels(self) -> int:
        """How many levels over 0 no quote of the reply bears out: none was given, or it stands nowhere in the reply.

        Says something of a judge that was asked for quotes (`ModelJudge`), nothing of one that gives them on demand.
        """
        return sum(bool(one.level) and one.evidence is None for one in self.judgements)

    def missing_dimensions(self, rubric: Rubric) -> tuple[Dimension, ...]:
        """The dimensions of the rubric in which no criterion has a level."""
        levels = self.levels
        return tuple(
            dimension
            for dimension in Dimension
            if all(levels.get(criterion.id) is None for criterion in rubric.criteria_of(dimension))
        )

    def partial(self, rubric: Rubric) -> bool:
        """True where a whole dimension is ungraded: such a score gives no reward and trains nobody."""
        return bool(self.missing_dimensions(rubric))

    def to_json(self) -> JsonObject:
        return {
            "judgements": [judgement.to_json() for judgement in self.judgements],
            "judge": self.judge,
            "prompt_sha256": self.prompt_sha256,
            "attempts": self.attempts,
            "latency_ms": self.latency_ms,
        }

    @classmethod
    def from_json(cls, stored: JsonObject) -> Score:
        """Read what `to_json` wrote. Raises ScoreInvalid for any other shape."""
        rows, judge, prompt = stored.get("judgements"), stored.get("judge"), stored.get("prompt_sha256")
        attempts, latency = stored.get("attempts"), stored.get("latency_ms")
        if not isinstance(rows, list) or not isinstance(judge, str) or not isinstance(prompt, str):
            raise ScoreInvalid(reason="a stored score lacks judgements, judge or prompt hash")
        if type(attempts) is not int:
            raise ScoreInvalid(reason="a stored score's attempts are no whole number")
        if isinstance(latency, bool) or not isinstance(latency, int | float):
            raise ScoreInvalid(reason="a stored score's latency is no number")
        return cls(
            judgements=tuple(Judgement.from_json(_object(row)) for row in rows),
            judge=judge,
            prompt_sha256=prompt,
            attempts=attempts,
            latency_ms=_finite(latency),
        )


def _object(value: JsonValue) -> JsonObject:
    if not isinstance(value, dict):
        raise ScoreInvalid(reason="a stored judgement is no object")
    return value


def _finite(value: int | float) -> float:
    try:
        number = float(value)
    except OverflowError as error:
        raise ScoreInvalid(reason="a stored number is too large") from error
    if not math.isfinite(number):
        raise ScoreInvalid(reason="a stored number is not finite")
    return number


def _read_span(value: JsonValue) -> tuple[int, int] | None:
    match value:
        case None:
            return None
        case [int() as start, int() as end]:
            return start, end
        case _:
            raise ScoreInvalid(reason="stored evidence is no span")
