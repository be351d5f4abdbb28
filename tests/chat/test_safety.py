"""The table of rule 7: what follows from what the screen said, and what the conversation carries over."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.safety import WATCH_AFTER_MISUNDERSTANDING, Decision, Reading, Standing, decide, lower_after_misunderstanding
from rubric import Level

WATCHED = 6
ORDER = [Level.NONE, Level.WATCH, Level.HIGH]


def reading(*levels: Level, is_covered: bool = True, failure: str = "") -> Reading:
    return Reading(levels=levels, probability=0.5, is_covered=is_covered, version="screen-1", failure=failure)


def standing(turn: int = 1, *, watch_until_turn: int = 0, has_language_card: bool = False) -> Standing:
    return Standing(turn=turn, watch_until_turn=watch_until_turn, has_language_card=has_language_card)


def decided(read: Reading, stands: Standing | None = None) -> Decision:
    return decide(read, stands or standing(), watched_turns=WATCHED)


TABLE = {
    "nothing": (reading(Level.NONE), standing(), ("none", "none", True, False, "", 0)),
    "watch": (reading(Level.WATCH), standing(), ("watch", "watch", True, False, "safety_watch", 0)),
    "high": (reading(Level.HIGH), standing(), ("high", "high", False, True, "safety_high", 1 + WATCHED)),
    "high only when joined": (
        reading(Level.NONE, Level.HIGH),
        standing(3),
        ("high", "high", False, True, "safety_high", 3 + WATCHED),
    ),
    "screen failed": (
        reading(failure="EncoderTimeout"),
        standing(),
        ("high", "high", False, True, "safety_high", 0),
    ),
    "denial after disclosure": (
        reading(Level.NONE),
        standing(4, watch_until_turn=7),
        ("watch", "watch", True, False, "safety_watch", 7),
    ),
    "the last watched turn": (
        reading(Level.NONE),
        standing(7, watch_until_turn=7),
        ("watch", "watch", True, False, "safety_watch", 7),
    ),
    "the first turn after it": (
        reading(Level.NONE),
        standing(8, watch_until_turn=7),
        ("none", "none", True, False, "", 7),
    ),
    "uncovered language": (reading(Level.NONE, is_covered=False), standing(), ("none", "watch", True, False, "", 0)),
    "uncovered language again": (
        reading(Level.NONE, is_covered=False),
        standing(2, has_language_card=True),
        ("none", "none", True, False, "", 0),
    ),
    "uncovered language and high": (
        reading(Level.HIGH, is_covered=False),
        standing(),
        ("high", "high", False, True, "safety_high", 1 + WATCHED),
    ),
}


@pytest.mark.parametrize(("read", "stands", "expected"), TABLE.values(), ids=TABLE.keys())
def test_table_of_what_follows(read: Reading, stands: Standing, expected: tuple[object, ...]) -> None:
    made = decided(read, stands)
    assert (
        made.level.value,
        made.card.value,
        made.calls_model,
        made.raises_alert,
        made.excluded_reason,
        made.watch_until_turn,
    ) == expected


def test_six_turns_after_a_high_are_watched_and_the_seventh_is_not() -> None:
    until = decided(reading(Level.HIGH), standing(10)).watch_until_turn
    levels = [decided(reading(Level.NONE), standing(10 + n, watch_until_turn=until)).level for n in range(1, 8)]
    assert levels == [Level.WATCH] * 6 + [Level.NONE]


def test_screen_that_failed_is_not_a_disclosure_for_the_turns_that_follow() -> None:
    failed = decided(reading(failure="EncoderUnavailable"), standing(1))
    assert failed.failure == "EncoderUnavailable"
    assert decided(reading(Level.NONE), standing(2, watch_until_turn=failed.watch_until_turn)).level is Level.NONE


@pytest.mark.parametrize(("level", "has_card"), list(product(ORDER, [False, True])))
def test_language_card_is_shown_once_and_never_when_the_screen_failed(level: Level, has_card: bool) -> None:
    stands = standing(2, has_language_card=has_card)
    assert decided(reading(level, is_covered=False), stands).shows_language_card is not has_card
    assert not decided(reading(is_covered=False, failure="EncoderTimeout"), stands).shows_language_card


readings = st.builds(
    Reading,
    levels=st.lists(st.sampled_from(ORDER), min_size=1, max_size=4).map(tuple),
    probability=st.none() | st.floats(0, 1),
    is_covered=st.booleans(),
    version=st.just("screen-1"),
    failure=st.sampled_from(["", "", "EncoderTimeout"]),
)
standings = st.builds(
    Standing, turn=st.integers(1, 60), watch_until_turn=st.integers(0, 80), has_language_card=st.booleans()
)


@given(readings, standings, st.integers(0, 20))
def test_model_is_withheld_exactly_at_high_and_staff_are_told_exactly_then(
    read: Reading, stands: Standing, watched_turns: int
) -> None:
    made = decide(read, stands, watched_turns=watched_turns)
    assert made.calls_model is (made.level is not Level.HIGH)
    assert made.raises_alert is (made.level is Level.HIGH)
    assert (made.level is Level.HIGH) is (bool(read.failure) or Level.HIGH in read.levels)


@given(readings, standings)
def test_level_is_never_below_any_of_the_texts_own_levels(read: Reading, stands: Standing) -> None:
    made = decided(read, stands)
    highest = max(ORDER.index(level) for level in read.levels)
    assert ORDER.index(made.own_level) >= highest
    assert ORDER.index(made.level) >= ORDER.index(made.own_level)
    assert ORDER.index(made.card) >= ORDER.index(made.level)


@given(readings, standings)
def test_turn_that_is_not_plain_never_trains(read: Reading, stands: Standing) -> None:
    made = decided(read, stands)
    assert bool(made.excluded_reason) is (made.level is not Level.NONE)


@given(readings, standings)
def test_watched_turns_never_get_fewer_by_a_message(read: Reading, stands: Standing) -> None:
    made = decided(read, stands)
    assert made.watch_until_turn >= stands.watch_until_turn
    if Level.HIGH in read.levels and not read.failure:
        assert made.watch_until_turn >= stands.turn + WATCHED


@given(turn=st.integers(0, 100), until=st.integers(0, 200))
def test_misunderstanding_lowers_but_does_not_clear(turn: int, until: int) -> None:
    lowered = lower_after_misunderstanding(turn=turn, watch_until_turn=until)
    assert lowered <= until
    # What it promises: up to three more turns are watched, as far as they were watched before.
    assert lowered >= min(until, turn + WATCH_AFTER_MISUNDERSTANDING)
    for later in range(turn + 1, turn + 1 + WATCH_AFTER_MISUNDERSTANDING):
        was_watched = later <= until
        assert (decided(reading(Level.NONE), standing(later, watch_until_turn=lowered)).level is Level.WATCH) is (
            was_watched
        )


@given(turn=st.integers(0, 100), until=st.integers(0, 200))
def test_saying_misunderstood_twice_lowers_no_further(turn: int, until: int) -> None:
    once = lower_after_misunderstanding(turn=turn, watch_until_turn=until)
    assert lower_after_misunderstanding(turn=turn, watch_until_turn=once) == once


@given(read=readings, turn=st.integers(1, 40), until=st.integers(0, 60))
def test_after_a_misunderstanding_the_texts_own_level_still_counts(read: Reading, turn: int, until: int) -> None:
    lowered = lower_after_misunderstanding(turn=turn - 1, watch_until_turn=until)
    made = decided(read, standing(turn, watch_until_turn=lowered))
    assert ORDER.index(made.level) >= max(ORDER.index(level) for level in read.levels)
