"""The reward: golden vectors, and properties that hold for every rubric and score."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.criteria import Criterion, Dimension, Polarity, Rubric, Weights
from rubric.errors import ScoreInvalid, ScoreMismatch
from rubric.fallback import GENERIC_CRITERIA
from rubric.reward import Ablation, ablated, reward_of, summarise_rewards
from rubric.score import Judgement, Score
from tests.rubric.rubrics import golden_rubric, graded, score_of

GOLDEN_LEVELS: dict[str, float | None] = {"C1": 1.0, "C2": 0.5, "A1": 0.75, "A2": 0.25, "P1": 0.0, "P2": 1.0}
Case = tuple[Rubric, dict[str, float | None]]


def value_of(rubric: Rubric, levels: dict[str, float | None]) -> float | None:
    reward = reward_of(score_of(levels), rubric)
    return None if reward is None else reward.value


# ---- golden vector 11.6 -------------------------------------------------------------------------------------------


def test_the_golden_aggregation_is_reproduced() -> None:
    reward = reward_of(score_of(GOLDEN_LEVELS), golden_rubric())
    assert reward is not None
    assert [reward.by_dimension[dimension] for dimension in Dimension] == pytest.approx([0.75, 0.75, 0.5], abs=1e-9)
    assert reward.value == pytest.approx(0.70, abs=1e-9)
    assert reward.rubric_sha256 == golden_rubric().sha256


def test_the_golden_aggregation_with_uniform_weights_is_two_thirds() -> None:
    reward = reward_of(score_of(GOLDEN_LEVELS), golden_rubric(), ablation=Ablation.WEIGHTS)
    assert reward is not None
    assert reward.value == pytest.approx(2 / 3, abs=1e-9)
    assert reward.rubric_sha256 != golden_rubric().sha256


# ---- ablations --------------------------------------------------------------------------------------------------


def test_uniform_criteria_keep_the_weights_and_need_their_own_score() -> None:
    used = ablated(golden_rubric(), Ablation.CRITERIA)
    assert (used.weights, used.criteria) == (golden_rubric().weights, GENERIC_CRITERIA)
    levels: dict[str, float | None] = dict.fromkeys((one.id for one in GENERIC_CRITERIA), 0.0)
    levels |= {"GA1": 1.0, "GA2": 0.0, "GC2": 1.0}
    reward = reward_of(score_of(levels), golden_rubric(), ablation=Ablation.CRITERIA)
    assert reward is not None
    assert reward.value == pytest.approx(0.55, abs=1e-9)
    with pytest.raises(ScoreMismatch):
        reward_of(score_of(GOLDEN_LEVELS), golden_rubric(), ablation=Ablation.CRITERIA)


def test_both_ablations_leave_the_generic_rubric() -> None:
    used = ablated(golden_rubric(), Ablation.BOTH)
    assert (used.weights, used.criteria) == (Weights.uniform(), GENERIC_CRITERIA)
    assert ablated(golden_rubric(), Ablation.NONE) == golden_rubric()


def test_levels_of_another_rubric_are_never_taken() -> None:
    with pytest.raises(ScoreMismatch) as caught:
        reward_of(score_of(GOLDEN_LEVELS | {"X1": 1.0}), golden_rubric())
    assert caught.value.unknown_ids == ("X1",)


# ---- properties -------------------------------------------------------------------------------------------------


@given(graded())
def test_a_reward_lies_between_zero_and_one_and_is_none_exactly_where_a_dimension_is_ungraded(case: Case) -> None:
    rubric, levels = case
    value = value_of(rubric, levels)
    is_partial = any(
        all(levels[criterion.id] is None for criterion in rubric.criteria_of(dimension)) for dimension in Dimension
    )
    assert score_of(levels).partial(rubric) is is_partial
    assert (value is None) is is_partial
    assert value is None or 0 <= value <= 1


@given(graded(may_miss=False), st.data())
def test_more_of_a_wanted_thing_never_lowers_and_more_of_an_avoided_never_raises(
    case: Case, data: st.DataObject
) -> None:
    rubric, levels = case
    criterion = data.draw(st.sampled_from(rubric.criteria))
    level = levels[criterion.id]
    assert level is not None
    higher = data.draw(st.floats(level, 1))
    before, after = value_of(rubric, levels), value_of(rubric, levels | {criterion.id: higher})
    assert before is not None
    assert after is not None
    change = after - before if criterion.polarity is Polarity.WANT else before - after
    assert change >= -1e-12


@given(graded(may_miss=False), st.data())
def test_a_missing_criterion_renormalises_inside_its_dimension(case: Case, data: st.DataObject) -> None:
    rubric, levels = case
    dropped = data.draw(st.sampled_from(rubric.criteria))
    rest = tuple(criterion for criterion in rubric if criterion.id != dropped.id)
    smaller = Rubric(weights=rubric.weights, criteria=rest)
    fewer = {name: level for name, level in levels.items() if name != dropped.id}
    expected = value_of(smaller, fewer)
    assert value_of(rubric, levels | {dropped.id: None}) == expected
    assert value_of(rubric, fewer) == expected


@given(graded(may_miss=False), st.sampled_from(Dimension))
def test_a_dimension_with_none_graded_gives_no_reward(case: Case, dimension: Dimension) -> None:
    rubric, levels = case
    for criterion in rubric.criteria_of(dimension):
        levels[criterion.id] = None
    assert value_of(rubric, levels) is None
    assert score_of(levels).missing_dimensions(rubric) == (dimension,)


@given(graded(may_miss=False))
def test_the_best_levels_give_one_and_the_worst_give_zero(case: Case) -> None:
    rubric, _ = case
    best: dict[str, float | None] = {one.id: 1.0 if one.polarity is Polarity.WANT else 0.0 for one in rubric}
    worst: dict[str, float | None] = {one.id: 0.0 if one.polarity is Polarity.WANT else 1.0 for one in rubric}
    assert value_of(rubric, best) == pytest.approx(1, abs=1e-12)
    assert value_of(rubric, worst) == pytest.approx(0, abs=1e-12)


@given(graded(may_miss=False), st.floats(0.1, 1))
def test_only_the_ratio_of_criterion_weights_counts(case: Case, factor: float) -> None:
    rubric, levels = case
    scaled = Rubric(
        weights=rubric.weights,
        criteria=tuple(
            Criterion(
                id=one.id, text=one.text, dimension=one.dimension, weight=one.weight * factor, polarity=one.polarity
            )
            for one in rubric
        ),
    )
    assert value_of(scaled, levels) == pytest.approx(value_of(rubric, levels), abs=1e-9)


# ---- what is missing never becomes a number ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "mean", "graded_count"),
    [
        ([None, -1.0, -1.0, None], -1.0, 2),
        ([None] * 4, None, 0),
        ([math.nan, 1.0, 0.0, 0.0], 1 / 3, 3),
        ([], None, 0),
    ],
)
def test_ungraded_rewards_are_counted_and_never_averaged(
    values: list[float | None], mean: float | None, graded_count: int
) -> None:
    summary = summarise_rewards(values)
    assert summary.mean == (None if mean is None else pytest.approx(mean))
    assert (summary.graded, summary.ungraded) == (graded_count, len(values) - graded_count)


@pytest.mark.parametrize("level", [math.nan, math.inf, -0.01, 1.01])
def test_a_level_that_is_none_cannot_be_made(level: float) -> None:
    with pytest.raises(ScoreInvalid):
        Judgement(criterion_id="C1", level=level)


def test_a_judgement_has_either_a_level_or_a_reason() -> None:
    with pytest.raises(ScoreInvalid):
        Judgement(criterion_id="C1", level=None)
    with pytest.raises(ScoreInvalid):
        Judgement(criterion_id="C1", level=0.5, none_reason="missing")


def test_a_criterion_is_judged_once() -> None:
    twice = (Judgement(criterion_id="C1", level=0.5), Judgement(criterion_id="C1", level=1.0))
    with pytest.raises(ScoreInvalid):
        Score(judgements=twice, judge="tests", prompt_sha256="", attempts=1, latency_ms=0)


@given(graded())
def test_a_stored_score_is_read_back_equal(case: Case) -> None:
    score = score_of(case[1])
    assert Score.from_json(json.loads(json.dumps(score.to_json()))) == score
