"""Fits the examiner's mechanisms: how much emotional reaction, interpretation and exploration a reply shows.

The recipe `examiner` ships what author D's levels give; the comparison on EPITOME fits the same and throws it away.
Words are weighed as the examiner weighs them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression

from rubric.examiner import LEVELS_PER_MECHANISM, MECHANISMS, WIDTH, Lexicon, Reply, Scale, fuse_levels, grams
from rubric.examiner_text import Numbers, surface_counts, words

Tensors = dict[str, NDArray[np.generic]]
NEVER: Final = -20.0  # bias of a level that the rows do not have
LEAST_SPREAD: Final = 0.05  # of counts, and of differences between pairs


@dataclass(frozen=True, kw_only=True, slots=True)
class LevelPenalties:
    """Inverse penalties of the two regressions of levels."""

    words: float
    embedding: float


def fit_lexicon(texts: Sequence[str], *, least_texts: int) -> Lexicon:
    """Terms that at least so many texts have, in order, and ln((1 + texts) / (1 + texts with it)) + 1."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(grams(words(text))))
    terms = sorted(term for term, count in counts.items() if count >= least_texts)
    found = np.array([counts[term] for term in terms], dtype=np.float64)
    rarity = np.log((1 + len(texts)) / (1 + found)) + 1
    return Lexicon({term: at for at, term in enumerate(terms)}, rarity.astype(np.float16).astype(np.float64))


def word_matrix(lexicon: Lexicon, texts: Sequence[str]) -> csr_matrix:
    """[texts, terms], one row as `Lexicon.weigh` gives it."""
    found = [lexicon.weigh(text) for text in texts]
    starts = np.cumsum([0, *(len(places) for places, _ in found)])
    places = np.concatenate([places for places, _ in found])
    values = np.concatenate([values for _, values in found])
    return csr_matrix((values, places, starts), shape=(len(texts), len(lexicon.terms)))


def fit_levels(
    replies: Sequence[Reply], levels: NDArray[np.int64], lexicon: Lexicon, config: LevelPenalties
) -> Tensors:
    """Per mechanism a balanced regression on words and counts and one on [reply; message]; `levels` is [n, 3]."""
    counts = np.array([surface_counts(one.text) for one in replies])
    scale = Scale(counts.mean(0), np.maximum(counts.std(0), LEAST_SPREAD))
    lexical = hstack([word_matrix(lexicon, [one.text for one in replies]), csr_matrix(scale.of(counts))]).tocsr()
    both = np.array([np.concatenate([one.text_vector, one.message_vector]) for one in replies], dtype=np.float64)
    shape = (len(MECHANISMS), LEVELS_PER_MECHANISM)
    by_words, by_both = np.zeros((*shape, lexical.shape[1])), np.zeros((*shape, 2 * WIDTH))
    bias = np.full((2, *shape), NEVER)
    for at in range(len(MECHANISMS)):
        _fit_into(by_words[at], bias[0, at], lexical, levels[:, at], penalty=config.words)
        _fit_into(by_both[at], bias[1, at], both, levels[:, at], penalty=config.embedding)
    terms = len(lexicon.terms)
    return {
        "levels.words": by_words[:, :, :terms],
        "levels.surface": by_words[:, :, terms:],
        "levels.surface.mean": scale.mean,
        "levels.surface.spread": scale.spread,
        "levels.embedding": by_both,
        "levels.bias": bias,
    }


def read_levels(replies: Sequence[Reply], fitted: Tensors, lexicon: Lexicon) -> Numbers:
    """[replies, 3 mechanisms, 3 levels]: what `Examiner.mechanisms` gives, for many at once."""
    mean, spread = (np.asarray(fitted[f"levels.surface.{name}"], dtype=np.float64) for name in ("mean", "spread"))
    scale = Scale(mean, spread)
    counts = scale.of(np.array([surface_counts(one.text) for one in replies]))
    lexical = word_matrix(lexicon, [one.text for one in replies])
    both = np.array([np.concatenate([one.text_vector, one.message_vector]) for one in replies])
    bias = fitted["levels.bias"]
    by_mechanism = [
        fuse_levels(
            np.asarray(lexical @ fitted["levels.words"][at].T) + counts @ fitted["levels.surface"][at].T + bias[0][at],
            both @ fitted["levels.embedding"][at].T + bias[1][at],
        )
        for at in range(len(MECHANISMS))
    ]
    return np.stack(by_mechanism, axis=1)


def _fit_into(
    weights: Numbers, bias: Numbers, features: csr_matrix | Numbers, labels: NDArray[np.int64], *, penalty: float
) -> None:
    """Put a fit's rows where its levels belong; two levels have one row, whose half and negative half they get."""
    model = LogisticRegression(C=penalty, class_weight="balanced", max_iter=1_000).fit(features, labels)
    rows, constants = model.coef_, model.intercept_
    if len(model.classes_) == 2:
        rows, constants = np.vstack([-rows, rows]) / 2, np.concatenate([-constants, constants]) / 2
    weights[model.classes_] = rows
    bias[model.classes_] = constants
