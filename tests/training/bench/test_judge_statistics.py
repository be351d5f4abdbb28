"""The judge bench's statistics, checked against values worked out by hand."""

import numpy as np
import pytest

from training.bench.judge_statistics import (
    auc,
    calibration_error,
    interval_over_rows,
    macro_f1,
    rank_correlation,
    top_calibration_error,
)


def test_macro_f1_is_the_plain_mean_over_classes() -> None:
    # Class 0: 2 hits of 3 labelled and 2 predicted: 4/5. Class 1: 1 of 1 and 2: 2/3. Class 2: nobody has it: 0.
    labels, predicted = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    assert macro_f1(labels, predicted, classes=3) == pytest.approx((4 / 5 + 2 / 3 + 0) / 3)
    assert macro_f1(np.array([0, 1, 2]), np.array([0, 1, 2]), classes=3) == 1.0


def test_auc_counts_ties_one_half() -> None:
    # Positives .9 and .4, negatives .4 and .1: won .9 twice, .4 once, one tie: 3.5 of 4.
    assert auc(np.array([1, 1, 0, 0]), np.array([0.9, 0.4, 0.4, 0.1])) == 3.5 / 4
    assert auc(np.array([1, 1]), np.array([0.9, 0.4])) is None


def test_rank_correlation_looks_at_order_alone() -> None:
    assert rank_correlation(np.array([1.0, 2.0, 30.0]), np.array([5.0, 6.0, 7.0])) == pytest.approx(1)
    assert rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])) == pytest.approx(-1)
    # Ranks 1, 2.5, 2.5 and 1, 2, 3: covariance 1.5/2, deviations sqrt(1.5/2) and 1.
    assert rank_correlation(np.array([1.0, 2.0, 2.0]), np.array([1.0, 2.0, 3.0])) == pytest.approx(0.75**0.5)
    assert rank_correlation(np.array([1.0, 1.0]), np.array([1.0, 2.0])) is None


def test_calibration_error_weighs_the_bins_by_their_forecasts() -> None:
    # Three forecasts of .9 of which two come true (gap .7/3), one of .1 that does not (gap .1): (.7 + .1) / 4.
    shares, is_true = np.array([0.9, 0.9, 0.9, 0.1]), np.array([1.0, 1.0, 0.0, 0.0])
    assert calibration_error(shares, is_true) == pytest.approx(0.2)
    assert calibration_error(np.array([1.0, 0.0]), np.array([1.0, 0.0])) == 0.0


def test_top_calibration_looks_at_the_likeliest_level() -> None:
    shares = np.array([[0.8, 0.2], [0.8, 0.2]])
    assert top_calibration_error(shares, np.array([0, 1])) == pytest.approx(0.3)


def test_an_interval_over_rows_moves_whole_groups() -> None:
    values = np.array([0.0, 0.0, 1.0, 1.0])
    found = interval_over_rows(lambda rows: float(values[rows].mean()), groups=["a", "a", "b", "b"], seed=1)
    assert found is not None
    assert (found.estimate, found.low, found.high) == (0.5, 0.0, 1.0)


def test_a_resample_without_the_statistic_counts_as_all_rows() -> None:
    labels, scores = np.array([1, 0]), np.array([0.9, 0.1])
    found = interval_over_rows(lambda rows: auc(labels[rows], scores[rows]), groups=["a", "b"], seed=1)
    assert found is not None
    assert (found.low, found.high) == (1.0, 1.0)
    assert interval_over_rows(lambda _rows: None, groups=["a"], seed=1) is None
    assert interval_over_rows(lambda _rows: 1.0, groups=[], seed=1) is None
