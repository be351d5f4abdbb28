"""A judge's agreement with people, checked against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from rubric.preference_agreement import (
    HUMAN_PAIRS_NEEDED,
    JudgedPair,
    accuracy_interval,
    agreement_with_people,
    length_bias,
    length_matched,
    order_consistency,
    position_bias,
)


def pair(
    chosen: float | None = 0.8, rejected: float | None = 0.2, *, chars: tuple[int, int] = (100, 100), group: str = "g"
) -> JudgedPair:
    return JudgedPair(group=group, chosen=chosen, rejected=rejected, chosen_chars=chars[0], rejected_chars=chars[1])


def test_accuracy_counts_ties_one_half_and_leaves_out_what_is_ungraded() -> None:
    pairs = [pair(), pair(0.5, 0.51), pair(0.1, 0.9), pair(None, 0.9), pair(0.4, math.nan)]
    found = accuracy_interval(pairs, seed=1)
    assert found is not None
    assert found.estimate == 0.5  # (1 + 1/2 + 0) / 3
    assert accuracy_interval([pair(None)], seed=1) is None


def test_the_interval_goes_by_group() -> None:
    # Twenty pairs of one conversation are one observation: nothing is known of other conversations.
    one_group = accuracy_interval([pair(), pair(0.1, 0.9)] * 10, seed=1)
    many_groups = accuracy_interval(
        [pair(*levels, group=f"{number}") for number in range(10) for levels in ((0.8, 0.2), (0.1, 0.9))], seed=1
    )
    assert one_group is not None
    assert (one_group.low, one_group.high) == (0.5, 0.5)
    assert many_groups is not None
    assert (many_groups.low, many_groups.high) == (0.5, 0.5)
    two_groups = accuracy_interval([pair(group="a")] * 5 + [pair(0.1, 0.9, group="b")] * 5, seed=1)
    assert two_groups is not None
    assert (two_groups.low, two_groups.high) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("chars", "is_matched"),
    [((100, 120), True), ((120, 100), True), ((100, 121), False), ((0, 0), True), ((0, 9), False)],
)
def test_matched_pairs_are_about_equally_long(chars: tuple[int, int], is_matched: bool) -> None:
    assert bool(length_matched([pair(chars=chars)])) is is_matched


def test_length_bias_is_what_the_judge_adds_to_peoples_own_leaning() -> None:
    # People take the longer reply twice of four; the judge three and a half times. The equal pair does not count.
    pairs = [
        pair(chars=(200, 100)),  # both take the longer one
        pair(0.5, 0.5, chars=(200, 100)),  # people longer, judge undecided
        pair(0.2, 0.8, chars=(100, 200)),  # people shorter, judge longer
        pair(0.2, 0.8, chars=(100, 200)),
        pair(chars=(100, 100)),
    ]
    found = length_bias(pairs, seed=1)
    assert found is not None
    assert (found.judge, found.people, found.difference.estimate) == (3.5 / 4, 0.5, 1.5 / 4)


def test_a_judge_that_follows_people_has_no_length_bias_however_they_lean() -> None:
    found = length_bias([pair(chars=(200, 100))] * 9 + [pair(chars=(100, 200))], seed=1)
    assert found is not None
    assert found.people == 0.9
    assert found.difference.estimate == pytest.approx(0)
    assert length_bias([pair(chars=(100, 100)), pair(None, chars=(1, 2))], seed=1) is None


def test_position_bias_counts_places_and_keeps_the_undecided_apart() -> None:
    found = position_bias(["first", "first", "first", "second", None])
    assert (found.first, found.second, found.undecided) == (3, 1, 1)
    assert found.share is not None
    assert found.share.estimate == 0.75
    assert position_bias([None]).share is None


def test_a_reply_taken_in_either_order_stands_at_two_places() -> None:
    found = order_consistency([("first", "second"), ("second", "first"), ("first", "first"), (None, "first")])
    assert found is not None
    assert found.estimate == 2 / 3
    assert order_consistency([(None, None)]) is None


def test_a_summary_counts_and_says_whether_it_is_evidence() -> None:
    few = agreement_with_people([pair(), pair(None), pair(0.1, 0.9, chars=(100, 300))], seed=1)
    assert (few.graded, few.ungraded, few.is_evidence) == (2, 1, False)
    assert few.accuracy is not None
    assert few.accuracy.estimate == 0.5
    assert few.length_matched is not None
    assert few.length_matched.estimate == 1.0
    assert agreement_with_people([pair()] * HUMAN_PAIRS_NEEDED, seed=1).is_evidence
    assert agreement_with_people([], seed=1).accuracy is None
