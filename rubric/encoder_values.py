"""What the encoder process answers, as values: readings of the screen, of the judge, its health; read strictly.

`encoder` asks and reads the answers with the functions below, `rubric.serve` shares the types. Whatever is not exactly
what the process promises is a TypeError, ValueError or KeyError here and leaves the client as `EncoderUnavailable`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from rubric.json_types import JsonObject, JsonValue

Direction = Literal["visitor", "reply"]

MECHANISMS: Final = ("emotional_reaction", "interpretation", "exploration")
MECHANISM_LEVELS: Final = 3  # none, weak, strong
DEADLINE_S_MAX: Final = 30.0  # that the process accepts
LEVEL_COUNT: Final = 5  # the levels 0, .25, .5, .75, 1
_SUM_SLACK: Final = 1e-3  # numbers travel rounded


class Level(StrEnum):
    """What a text calls for: nothing; a card and then a screened reply; a card, no model call and an alert."""

    NONE = "none"
    WATCH = "watch"
    HIGH = "high"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenReading:
    """The screen's answer for one text: over all its windows, the worst one counts."""

    probability: float  # of any crisis, watch or high together, in [0, 1]
    level: Level
    is_covered: bool  # the text is in a language the screen was trained for (English)
    version: str  # "screen-<hash12>"


@dataclass(frozen=True, kw_only=True, slots=True)
class CriterionReading:
    """How far the reply does what one criterion says: the calibrated `expected` level in [0, 1], or why there is none.

    `probabilities` are those of the five levels, lowest first, `expected` is their mean level. `evidence` is the span
    (code points) of the reply's sentence without which the level falls most, None where it was not asked for or no
    sentence's removal lowers it.
    """

    expected: float | None
    probabilities: tuple[float, ...] = ()
    evidence: tuple[int, int] | None = None
    none_reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeReading:
    """The judge's answer for one reply: a reading per criterion, and what the reply does whatever the criteria.

    `mechanisms` are the probabilities of the levels 0, 1, 2 of each of MECHANISMS. Where nothing could be
    read they are () and `genuine` is None.
    """

    version: str  # "judge-<hash12>"
    criteria: tuple[CriterionReading, ...]
    mechanisms: tuple[tuple[float, ...], ...]
    genuine: float | None  # in [0, 1]: how sure it is that the text is an attempt at a reply


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderHealth:
    """Which files the process serves, by content hash."""

    encoder_version: str
    screen_version: str
    judge_version: str
    waiting_windows: int


def list_of(value: JsonValue, *, count: int) -> list[JsonValue]:
    """A list of exactly `count` things."""
    if not isinstance(value, list) or len(value) != count:
        raise TypeError
    return value


def text_of(value: JsonValue) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError
    return value


def whole_number_of(value: JsonValue) -> int:
    """A whole number; true is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def number_of(value: JsonValue) -> float:
    """A finite number; JSON's NaN and Infinity are no reading."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise TypeError
    return float(value)


def share_of(value: JsonValue) -> float:
    """A number in [0, 1]."""
    share = number_of(value)
    if not 0.0 <= share <= 1.0:
        raise ValueError
    return share


def vector_of(value: JsonValue) -> tuple[float, ...]:
    """Finite numbers."""
    if not isinstance(value, list):
        raise TypeError
    return tuple(number_of(item) for item in value)


def distribution_of(value: JsonValue, *, count: int) -> tuple[float, ...]:
    """`count` shares that sum to 1."""
    shares = tuple(share_of(item) for item in list_of(value, count=count))
    if abs(sum(shares) - 1.0) > _SUM_SLACK:
        raise ValueError
    return shares


def screen_reading_of(value: JsonValue, version: str) -> ScreenReading:
    """One reading of the screen."""
    if not isinstance(value, dict) or not isinstance(value["is_covered"], bool):
        raise TypeError
    return ScreenReading(
        probability=share_of(value["probability"]),
        level=Level(text_of(value["level"])),
        is_covered=value["is_covered"],
        version=version,
    )


def level_of(reading: CriterionReading, *, genuine: float | None, names_fault: bool) -> float | None:
    """The level that counts, in [0, 1]: as far as a text is no attempt at a reply, it does nothing that is wanted
    (level 0) and counts as the fault that is asked about (level 1), or garble would earn every criterion that says
    what to leave. None where nothing was read.

    expected * genuine + (1 - genuine) * (1 for a fault, else 0)
    """
    if reading.expected is None or genuine is None:
        return None
    return reading.expected * genuine + (1 - genuine) * names_fault


def judge_reading_of(body: JsonObject, *, criteria: int, reply_characters: int) -> JudgeReading:
    """The judge's whole answer: as many levels as criteria were sent, evidence inside the reply that was sent."""
    columns = [list_of(body[name], count=criteria) for name in ("levels", "expected", "evidence", "none_reasons")]
    mechanisms, genuine = body["mechanisms"], body["genuine"]
    is_read = genuine is not None
    if is_read is (mechanisms is None) or (not is_read and any(one is not None for one in columns[1])):
        raise ValueError  # a level of a text in which nothing was read would be one that nobody judged
    return JudgeReading(
        version=text_of(body["version"]),
        criteria=tuple(_criterion_of(row, reply_characters=reply_characters) for row in zip(*columns, strict=True)),
        genuine=None if genuine is None else share_of(genuine),
        mechanisms=()
        if mechanisms is None
        else tuple(
            distribution_of(levels, count=MECHANISM_LEVELS) for levels in list_of(mechanisms, count=len(MECHANISMS))
        ),
    )


def _criterion_of(row: Sequence[JsonValue], *, reply_characters: int) -> CriterionReading:
    levels, expected, evidence, none_reason = row
    if none_reason is not None:  # a level beside a reason for none would be one that nobody judged
        if (levels, expected, evidence) != (None, None, None):
            raise ValueError
        return CriterionReading(expected=None, none_reason=text_of(none_reason))
    return CriterionReading(
        expected=share_of(expected),
        probabilities=distribution_of(levels, count=LEVEL_COUNT),
        evidence=None if evidence is None else _span_of(evidence, end_max=reply_characters),
    )


def _span_of(value: JsonValue, *, end_max: int) -> tuple[int, int]:
    start, end = (whole_number_of(edge) for edge in list_of(value, count=2))
    if not 0 <= start < end <= end_max:
        raise ValueError
    return start, end
