"""Fit the surface part of the screen: logistic regression over hashed n-grams, one per direction.

The recipe `screen` calls it beside the network's fit. Every line is used as it is and once more as somebody else might
have typed it, so that misspelled parts have weights too.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from rubric.serve.surface import BUCKETS, CLASSES, Surface, ngrams, weighted
from rubric.serve.texts import clean
from training.data.screen_lines import DIRECTIONS, LABELS, ScreenLine
from training.data.screen_noise import Noise, company_of, varied

STRENGTH: Final = 3.0  # inverse of the penalty on the weights
LEAST_LINES: Final = 2  # an n-gram of a single line says more about the line than about its label


def fit_surface(lines: Sequence[ScreenLine], *, noise: Noise, seed: int) -> Surface:
    """Both directions share the rarities; a label that a direction lacks never wins there."""
    dice = random.Random(seed)
    doubled = [*lines, *lines]
    grams = [ngrams(clean(line.text)) for line in lines]
    company = {direction: company_of(lines, direction) for direction in DIRECTIONS}
    for line in lines:
        grams.append(ngrams(clean(varied(line.text, company=company[line.direction], noise=noise, dice=dice))))
    rarity = _rarity(grams)
    weights, bias = np.zeros((CLASSES, BUCKETS), dtype=np.float32), np.zeros(CLASSES, dtype=np.float32)
    for half, direction in enumerate(DIRECTIONS):
        chosen = [number for number, line in enumerate(doubled) if line.direction == direction]
        labels = np.array([LABELS.index(doubled[number].label) for number in chosen])
        model = LogisticRegression(C=STRENGTH, max_iter=300, class_weight="balanced")
        model.fit(_matrix([grams[number] for number in chosen], rarity), labels)
        _place(model, weights, bias, half=half)
    return Surface(rarity=rarity, weights=weights.astype(np.float16).astype(np.float32), bias=bias)


def _place(model: LogisticRegression, weights: NDArray[np.float32], bias: NDArray[np.float32], *, half: int) -> None:
    """Put a fitted model's rows where its labels belong; two labels have one row, whose negative is the other's."""
    first = half * len(LABELS)
    bias[first : first + len(LABELS)] = -20.0
    coefficients, intercepts = model.coef_, model.intercept_
    if len(model.classes_) == 2:
        coefficients, intercepts = np.vstack([-coefficients, coefficients]) / 2, np.r_[-intercepts, intercepts] / 2
    for row, label in enumerate(model.classes_):
        weights[first + label] = coefficients[row]
        bias[first + label] = intercepts[row]


def _rarity(grams: Sequence[frozenset[int]]) -> NDArray[np.float32]:
    """Smoothed logarithm of how few lines have a bucket; 0 below LEAST_LINES. Rounded as it is stored."""
    counts = np.zeros(BUCKETS)
    for buckets in grams:
        counts[list(buckets)] += 1
    rarity = np.log((1 + len(grams)) / (1 + counts)) + 1
    rarity[counts < LEAST_LINES] = 0
    return rarity.astype(np.float16).astype(np.float32)


def _matrix(grams: Sequence[frozenset[int]], rarity: NDArray[np.float32]) -> csr_matrix:
    rows = [weighted(buckets, rarity) for buckets in grams]
    starts = np.cumsum([0, *(len(places) for places, _ in rows)])
    values = np.concatenate([values for _, values in rows])
    return csr_matrix((values, np.concatenate([places for places, _ in rows]), starts), shape=(len(rows), BUCKETS))
