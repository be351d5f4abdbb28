"""Agreement figures, checked against values worked out by hand or by a second way of computing."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.agreement import (
    FloatArray,
    bootstrap_interval,
    krippendorff_alpha,
    pair_accuracy,
    pair_credit,
    weighted_kappa,
    wilson_interval,
)
from rubric.score import LEVELS

levels = st.sampled_from(LEVELS)

# ---- pairs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "rejected", "credit"),
    [(0.6, 0.5, 1.0), (0.5, 0.6, 0.0), (0.52, 0.5, 0.5), (0.5, 0.52, 0.5), (0.5, 0.5, 0.5), (0.5201, 0.5, 1.0)],
)
def test_differences_up_to_the_margin_are_ties(chosen: float, rejected: float, credit: float) -> None:
    assert pair_credit(chosen, rejected) == credit


def test_ties_count_one_half_and_ungraded_pairs_do_not_count() -> None:
    found = pair_accuracy([(0.9, 0.1), (0.5, 0.5), (0.1, 0.9), (0.8, 0.2), (None, 0.5), (0.5, math.nan)])
    assert (found.wins, found.ties, found.losses, found.ungraded) == (2, 1, 1, 2)
    assert found.accuracy == 2.5 / 4
    assert found.win_share == 2 / 3


def test_without_graded_pairs_there_is_no_accuracy() -> None:
    assert pair_accuracy([(None, None)]).accuracy is None
    assert pair_accuracy([(0.5, 0.5)]).win_share is None


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1))
def test_accuracy_turns_round_where_the_pairs_do(pairs: list[tuple[float, float]]) -> None:
    there, back = pair_accuracy(pairs).accuracy, pair_accuracy([(b, a) for a, b in pairs]).accuracy
    assert there is not None
    assert back is not None
    assert there + back == pytest.approx(1)


# ---- kappa ------------------------------------------------------------------------------------------------------


def test_kappa_equals_a_hand_worked_table() -> None:
    # Table [[2, 1], [1, 2]]: observed agreement 4/6, expected 1/2.
    first, second = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0, 1.0, 1.0]
    assert weighted_kappa(first, second, categories=(0.0, 1.0)) == pytest.approx(1 / 3)


@given(st.lists(st.tuples(levels, levels), min_size=2), st.sampled_from([1, 2]))
def test_kappa_equals_one_minus_the_mean_distance_over_that_of_all_crossed_pairs(
    pairs: list[tuple[float, float]], power: int
) -> None:
    def distance(one: float, other: float) -> int:
        apart = abs(LEVELS.index(one) - LEVELS.index(other))
        return apart if power == 1 else apart * apart

    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    observed = sum(distance(one, other) for one, other in pairs) / len(pairs)
    crossed = sum(distance(one, other) for one in first for other in second) / len(pairs) ** 2
    found = weighted_kappa(first, second, categories=LEVELS, weighting="linear" if power == 1 else "quadratic")
    assert found == (pytest.approx(1 - observed / crossed) if crossed else None)


@given(st.lists(levels, min_size=2).filter(lambda values: len(set(values)) > 1))
def test_kappa_with_oneself_is_one(values: list[float]) -> None:
    assert weighted_kappa(values, values, categories=LEVELS) == pytest.approx(1)


def test_kappa_drops_what_either_left_out_and_is_none_without_variation() -> None:
    assert weighted_kappa([None, 1.0], [1.0, None], categories=LEVELS) is None
    assert weighted_kappa([1.0, 1.0], [1.0, 1.0], categories=LEVELS) is None
    with pytest.raises(ValueError, match="1 and 2 ratings"):
        weighted_kappa([1.0], [1.0, 0.0], categories=LEVELS)
    with pytest.raises(ValueError, match="none of the categories"):
        weighted_kappa([0.3], [1.0], categories=LEVELS)


# ---- alpha ------------------------------------------------------------------------------------------------------


def test_alpha_equals_a_hand_worked_example() -> None:
    # Units (0,0), (0,1), (1,1): coincidences 00 2, 01 1, 10 1, 11 2; margins 3, 3; one distance, so it cancels:
    # observed 2 of 6 pairs, expected 2 * 9 / 5 of 6: alpha = 1 - 2 / 3.6.
    assert krippendorff_alpha([[0, 0], [0, 1], [1, 1]]) == pytest.approx(1 - 2 / 3.6)


def test_alpha_equals_the_published_ordinal_example() -> None:
    # Four raters, twelve units with gaps, five ordered categories: the standard worked example gives .815.
    raters = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    units = [[rater[at] for rater in raters] for at in range(12)]
    assert krippendorff_alpha(units) == pytest.approx(0.815, abs=0.0005)


@given(st.lists(levels, min_size=2).filter(lambda values: len(set(values)) > 1))
def test_alpha_of_equal_raters_is_one(values: list[float]) -> None:
    assert krippendorff_alpha([[value, value, None] for value in values]) == pytest.approx(1)


@given(st.lists(st.lists(st.one_of(st.none(), levels), min_size=2, max_size=4), max_size=12), st.permutations(range(4)))
def test_alpha_ignores_the_order_of_raters_and_is_at_most_one(
    units: list[list[float | None]], order: list[int]
) -> None:
    found = krippendorff_alpha(units)
    shuffled = krippendorff_alpha([[unit[at] for at in order if at < len(unit)] for unit in units])
    assert found == (None if shuffled is None else pytest.approx(shuffled))
    assert found is None or found <= 1 + 1e-12


def test_alpha_without_pairs_or_variation_is_none() -> None:
    assert krippendorff_alpha([[1.0], [None, 0.5]]) is None
    assert krippendorff_alpha([[1.0, 1.0], [1.0, 1.0]]) is None


# ---- intervals --------------------------------------------------------------------------------------------------


def test_wilson_equals_a_known_value() -> None:
    found = wilson_interval(8, 10)
    assert [found.low, found.high] == pytest.approx([0.4902, 0.9433], abs=5e-5)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_its_estimate_and_stays_between_zero_and_one(counted: tuple[int, int]) -> None:
    found = wilson_interval(*counted)
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    assert found.high - found.low > 0


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (3, 2), (-1, 2)])
def test_what_is_no_share_has_no_wilson_interval(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="no share"):
        wilson_interval(successes, trials)


def test_the_bootstrap_moves_whole_groups() -> None:
    values = [0.0] * 50 + [1.0] * 50
    alone = bootstrap_interval(values, groups=range(100), seed=1)
    together = bootstrap_interval(values, groups=["a"] * 50 + ["b"] * 50, seed=1)
    assert alone is not None
    assert together is not None
    assert alone.high - alone.low < 0.25
    assert (together.low, together.high) == (0, 1)
    assert alone.estimate == together.estimate == 0.5


def test_the_bootstrap_repeats_with_its_seed_and_takes_any_statistic() -> None:
    values, groups = [0.1, 0.4, 0.9, 0.3, 0.7], [1, 1, 2, 3, 4]
    assert bootstrap_interval(values, groups=groups, seed=7) == bootstrap_interval(values, groups=groups, seed=7)

    def largest(drawn: FloatArray) -> float:
        return float(drawn.max())

    found = bootstrap_interval(values, groups=groups, seed=7, statistic=largest)
    assert found is not None
    assert found.estimate == found.high == 0.9


def test_the_bootstrap_refuses_gaps_and_has_nothing_to_say_of_nothing() -> None:
    assert bootstrap_interval([], groups=[], seed=1) is None
    with pytest.raises(ValueError, match="not finite"):
        bootstrap_interval([0.5, math.nan], groups=[1, 2], seed=1)
    with pytest.raises(ValueError, match="2 groups"):
        bootstrap_interval([0.5], groups=[1, 2], seed=1)
