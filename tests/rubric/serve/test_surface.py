"""The surface model sees words and their parts, weighs them by rarity, and mixes with the network's opinion."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.serve.surface import BUCKETS, CLASSES, Surface, mix, ngrams, softmax_by_direction, weighted


def surface_that_fears(word: str) -> Surface:
    """High for a visitor where any part of the word occurs."""
    weights = np.zeros((CLASSES, BUCKETS), dtype=np.float32)
    weights[2, list(ngrams(word))] = 10
    return Surface(rarity=np.ones(BUCKETS, dtype=np.float32), weights=weights, bias=np.zeros(CLASSES, dtype=np.float32))


def test_case_and_apostrophes_do_not_matter() -> None:
    assert ngrams("Don't GO") == ngrams("don\u2019t go")


def test_word_order_matters() -> None:
    assert ngrams("he hit me") != ngrams("me hit he")


def test_a_misspelled_word_shares_parts_with_the_right_one() -> None:
    assert len(ngrams("suicidal") & ngrams("suicidle")) > 10


def test_values_have_unit_length_and_rare_parts_weigh_more() -> None:
    rarity = np.ones(BUCKETS, dtype=np.float32)
    first, second = sorted(ngrams("ab"))[:2]
    rarity[first] = 3
    places, values = weighted(frozenset({first, second}), rarity)
    assert list(places) == [first, second]
    assert float((values**2).sum()) == pytest.approx(1)
    assert values[0] == pytest.approx(3 * values[1])


def test_a_text_of_unknown_parts_gets_the_bias() -> None:
    unknown = Surface(
        rarity=np.zeros(BUCKETS, dtype=np.float32),
        weights=np.ones((CLASSES, BUCKETS), dtype=np.float32),
        bias=np.zeros(CLASSES, dtype=np.float32),
    )
    assert unknown.probabilities("anything") == pytest.approx(np.full(CLASSES, 1 / 3))
    assert unknown.probabilities("") == pytest.approx(np.full(CLASSES, 1 / 3))


def test_only_the_direction_that_fears_a_word_reacts() -> None:
    found = surface_that_fears("rope").probabilities("a rope")
    assert found[2] > 0.9
    assert found[3:] == pytest.approx(np.full(3, 1 / 3))


@given(st.lists(st.floats(-30, 30, width=32), min_size=CLASSES, max_size=CLASSES))
def test_each_half_sums_to_one(logits: list[float]) -> None:
    found = softmax_by_direction(np.asarray(logits, dtype=np.float32))
    assert found[:3].sum() == pytest.approx(1, abs=1e-5)
    assert found[3:].sum() == pytest.approx(1, abs=1e-5)


def test_a_weight_of_nothing_leaves_the_other_opinion() -> None:
    network = np.array([0.7, 0.2, 0.1, 0.1, 0.1, 0.8], dtype=np.float32)
    surface = np.array([0.1, 0.1, 0.8, 0.8, 0.1, 0.1], dtype=np.float32)
    assert mix(network, surface, weights=(1, 0)) == pytest.approx(network, abs=1e-5)
    assert mix(network, surface, weights=(0, 1)) == pytest.approx(surface, abs=1e-5)
    between = mix(network, surface, weights=(0.5, 0.5))
    assert 0.1 < between[2] < 0.8


def test_certainty_on_one_side_stays_finite() -> None:
    sure = np.array([1, 0, 0, 1, 0, 0], dtype=np.float32)
    assert np.isfinite(mix(sure, 1 - sure, weights=(1, 1))).all()
