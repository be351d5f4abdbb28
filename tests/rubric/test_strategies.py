"""Strategies and their dimensions; priority alignment with its golden vector."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.criteria import Dimension, Weights
from rubric.strategies import DIMENSION_OF, Strategy, count_by_dimension, parse_strategy, priority_alignment
from tests.rubric.rubrics import weights

C, A, P = Dimension
counts = st.fixed_dictionaries({dimension: st.integers(0, 5) for dimension in Dimension})


def leaning(dimension: Dimension) -> Weights:
    return Weights.from_points({one: 60 if one is dimension else 20 for one in Dimension})


# ---- golden vector 11.8 -------------------------------------------------------------------------------------------


def test_the_golden_alignment_is_reproduced() -> None:
    used = count_by_dimension(
        [parse_strategy("reflection"), parse_strategy("reflection"), parse_strategy("suggestion")]
    )
    assert [used[dimension] for dimension in Dimension] == [0, 2, 1]
    assert priority_alignment(leaning(A), used) == 1
    assert priority_alignment(leaning(C), used) == 0
    assert priority_alignment(leaning(C), {C: 1, A: 1, P: 0}) == 1


# ---- rules ------------------------------------------------------------------------------------------------------


def test_without_strategies_there_is_no_alignment() -> None:
    assert priority_alignment(leaning(A), count_by_dimension([])) is None


def test_equal_weights_align_only_with_equal_counts() -> None:
    assert priority_alignment(Weights.uniform(), {C: 0, A: 2, P: 1}) == 0
    assert priority_alignment(Weights.uniform(), {C: 1, A: 1, P: 1}) == 1


@given(weights, counts)
def test_a_single_heaviest_dimension_aligns_exactly_where_no_other_is_used_more(
    drawn: Weights, used: dict[Dimension, int]
) -> None:
    aligned = priority_alignment(drawn, used)
    if not any(used.values()):
        assert aligned is None
    elif len(drawn.leaders) == 1:
        assert aligned == (used[drawn.dominant] == max(used.values()))


def test_every_strategy_has_one_dimension() -> None:
    assert set(DIMENSION_OF) == set(Strategy)


@pytest.mark.parametrize(
    ("name", "dimension"),
    [
        ("question", C), ("restatement", C), ("perspective explanation", C), ("problem analysis", C),
        ("reflection of feeling", A), ("venting space", A), ("validation", A), ("sincere praise", A),
        ("self-disclosure", A), ("Self disclosure", A),
        ("suggestion", P), ("information", P), ("planning", P), ("guided self-reflection", P),
    ],
)  # fmt: skip
def test_names_in_use_elsewhere_are_read(name: str, dimension: Dimension) -> None:
    assert parse_strategy(name).dimension is dimension


def test_an_unknown_strategy_is_an_error() -> None:
    with pytest.raises(ValueError, match="hypnosis"):
        parse_strategy("hypnosis")
