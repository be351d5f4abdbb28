"""The statistics of the judge bench beyond `rubric.agreement`: levels against labels, ranks, calibration. Pure.

Intervals of statistics over several columns draw row numbers by group: `interval_over_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from rubric import Interval, bootstrap_interval

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]
BINS: Final = 10
RESAMPLES: Final = 1_000  # of statistics that cost more than a mean


def macro_f1(labels: Whole, predicted: Whole, *, classes: int) -> float:
    """The plain mean of the classes' F1, 2 hits / (labelled + predicted), [rows] each; one that nobody has counts 0."""
    table = np.bincount(labels * classes + predicted, minlength=classes * classes).reshape(classes, classes)
    named = table.sum(axis=0) + table.sum(axis=1)
    return float(np.mean(2 * np.diag(table) / np.maximum(named, 1)))


def auc(is_positive: Whole, scores: Floats) -> float | None:
    """How likely a positive row scores above a negative one, ties one half; None where one kind is missing."""
    positives = int(is_positive.sum())
    negatives = len(is_positive) - positives
    if not positives or not negatives:
        return None
    ranks: Floats = rankdata(scores)
    return float((ranks[is_positive == 1].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def rank_correlation(one: Floats, other: Floats) -> float | None:
    """Spearman's: Pearson's over mean ranks, in [-1, 1]; None where one side is all equal."""
    first, second = rankdata(one), rankdata(other)
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def calibration_error(probabilities: Floats, is_true: Floats, *, bins: int = BINS) -> float:
    """Expected calibration error over level probabilities: every level of every judgement is one forecast.

    `probabilities` and `is_true` (0 or 1) are flat and of one length, at least 1. Forecasts fall into `bins` of equal
    width; the error is the mean over forecasts of |mean forecast - share true| of their bin.
    """
    place = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    gaps = np.bincount(place, weights=probabilities - is_true, minlength=bins)
    return float(np.abs(gaps).sum() / len(probabilities))


def top_calibration_error(probabilities: Floats, labels: Whole, *, bins: int = BINS) -> float:
    """The same over each judgement's most likely level alone: [rows, levels] with labels [rows]."""
    top = probabilities.argmax(axis=1)
    return calibration_error(probabilities.max(axis=1), (top == labels).astype(np.float64), bins=bins)


def interval_over_rows(
    statistic: Callable[[Whole], float | None],
    *,
    groups: Sequence[Hashable],
    seed: int,
    resamples: int = RESAMPLES,
) -> Interval | None:
    """The interval of a statistic of row numbers, drawing whole groups; None where it cannot be had from all rows.

    A resample in which it cannot be had counts as the value of all rows.
    """
    whole = statistic(np.arange(len(groups))) if groups else None
    if whole is None:
        return None

    def of_drawn(rows: Floats) -> float:
        value = statistic(rows.astype(np.int64))
        return whole if value is None else value

    return bootstrap_interval(
        [float(row) for row in range(len(groups))], groups=groups, seed=seed, statistic=of_drawn, resamples=resamples
    )
