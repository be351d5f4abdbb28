"""Fits the examiner: what tells a better reply from a worse one, and a reply from text that is none.

`fit_examiner` gives a whole `rubric.examiner.Examiner`, its mechanisms by `examiner_levels`. Features come from the
same functions that the examiner calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from sklearn.linear_model import LogisticRegression

from rubric.examiner import PAIR_FUSION, Examiner, Lexicon, Reply, Scale, pack, pair_counts
from rubric.examiner_text import VALIDITY, Numbers, validity_counts
from training.data.examiner_rows import REPLIES, ExaminerRows, Sample
from training.recipes.embeddings import Embeddings
from training.recipes.examiner_levels import LEAST_SPREAD, LevelPenalties, Tensors, fit_levels, fit_lexicon, word_matrix

# Spreads are at least these: what decent replies never vary in must not condemn at the first difference.
LEAST_VALIDITY_SPREAD: Mapping[str, float] = {
    "log_words": 0.5,
    "unknown": 0.1,
    "repeated_runs": 0.03,
    "repeated_words": 0.08,
    "copied": 0.08,
    "odd_signs": 0.02,
    "digits": 0.02,
    "function_words": 0.1,
    "capitals": 0.05,
    "word_length": 0.5,
    "you": 0.05,
    "i": 0.04,
    "is_closed": 0.5,
    "overlap": 0.1,
    "colons": 0.2,
    "not_latin": 0.02,
    "praise": 0.04,
    "about_replies": 0.06,
    "asking": 0.3,
    "shouting": 0.2,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PairPenalties:
    """Inverse penalties of the three pairwise regressions; a term counts from `least_texts` texts on."""

    words: float
    counts: float
    embedding: float
    least_texts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class GenuineFit:
    """The same of what tells replies from text that is none; `bounds` is a quantile of decent replies."""

    words: float
    counts: float
    embedding: float
    least_texts: int
    bounds: float
    kinds: dict[str, float]  # text that is none, by kind
    replies: dict[str, float]  # the shares of the kinds of replies in the same total


@dataclass(frozen=True, kw_only=True, slots=True)
class ExaminerFit:
    """Everything that `examiner.yaml` says of the fit."""

    pair: PairPenalties
    levels: LevelPenalties
    genuine: GenuineFit


def fit_examiner(rows: ExaminerRows, config: ExaminerFit, *, embeddings: Embeddings) -> Examiner:
    """Fit all parts, rounded as they are stored."""
    graded = [to_reply(one.sample, embeddings) for one in rows.graded]
    voices = [one.text for pair in rows.pairs for one in (pair.better, pair.worse) if one.kind == "voice"]
    lexicon = fit_lexicon([*(one.text for one in graded), *voices], least_texts=config.pair.least_texts)
    levels = np.array([one.levels for one in rows.graded])
    tensors: Tensors = {
        "known": pack(sorted(rows.known)),
        **_lexicon_tensors("pair", lexicon),
        **fit_pairs(rows, lexicon, config.pair, embeddings=embeddings),
        **fit_levels(graded, levels, lexicon, config.levels),
        **fit_genuine(rows, config.genuine, embeddings=embeddings),
    }
    return Examiner.of(rounded(tensors), version="examiner-unsaved")


def rounded(tensors: Tensors) -> Tensors:
    """16-bit numbers where they are weights; scales and bounds, which are few, keep 32 bits."""
    kept = ("mean", "spread", "low", "high", "bias")
    return {
        name: value
        if value.dtype == np.uint8
        else value.astype(np.float32 if name.rpartition(".")[2] in kept else np.float16)
        for name, value in tensors.items()
    }


def to_reply(sample: Sample, embeddings: Embeddings) -> Reply:
    """With both embeddings."""
    return Reply(
        text=sample.text,
        message=sample.message,
        earlier=sample.earlier,
        text_vector=embeddings.of(sample.text),
        message_vector=embeddings.of(sample.message),
    )


# ---- better and worse -----------------------------------------------------------------------------------------------


def fit_pairs(rows: ExaminerRows, lexicon: Lexicon, config: PairPenalties, *, embeddings: Embeddings) -> Tensors:
    """Three regressions on differences, each scaled so that its differences over the pairs have spread 1."""
    sides = [
        [to_reply(one, embeddings) for one in texts]
        for texts in ([pair.better for pair in rows.pairs], [pair.worse for pair in rows.pairs])
    ]
    counts = np.array([pair_counts(one) for side in sides for one in side])
    scale = Scale(counts.mean(0), np.maximum(counts.std(0), LEAST_SPREAD))
    standard = scale.of(counts)
    half = len(sides[0])
    lexical = [word_matrix(lexicon, [one.text for one in side]) for side in sides]
    vectors = [np.stack([one.text_vector for one in side]).astype(np.float64) for side in sides]
    by_words = _pairwise(lexical[0] - lexical[1], penalty=config.words)
    by_counts = _pairwise(standard[:half] - standard[half:], penalty=config.counts)
    by_embedding = _pairwise(vectors[0] - vectors[1], penalty=config.embedding)
    middles = (
        sum(np.asarray(one @ by_words).mean() for one in lexical) / 2,
        (standard @ by_counts).mean(),
        sum((one @ by_embedding).mean() for one in vectors) / 2,
    )
    return {
        "pair.words": by_words,
        "pair.counts": by_counts,
        "pair.counts.mean": scale.mean,
        "pair.counts.spread": scale.spread,
        "pair.embedding": by_embedding,
        "pair.bias": np.array([-np.dot(PAIR_FUSION, middles)]),
    }


def _pairwise(differences: csr_matrix | Numbers, *, penalty: float) -> Numbers:
    """Logistic regression without a constant; every second pair is turned round, so that neither side has the label."""
    turned = np.where(np.arange(differences.shape[0]) % 2, 1.0, -1.0)
    features = diags(turned) @ differences
    model = LogisticRegression(C=penalty, fit_intercept=False, max_iter=1_000).fit(features, turned > 0)
    weights: Numbers = model.coef_[0]
    return weights / max(float(np.std(np.asarray(differences @ weights))), LEAST_SPREAD)


# ---- replies and what is none ---------------------------------------------------------------------------------------


def fit_genuine(rows: ExaminerRows, config: GenuineFit, *, embeddings: Embeddings) -> Tensors:
    """Bounds from the replies to the same kinds of talk, then three weighted regressions of reply or not."""
    samples = [*(one.sample for one in rows.graded), *rows.others]
    replies = [to_reply(one, embeddings) for one in samples]
    kinds = np.array([one.kind for one in samples])
    is_reply = np.isin(kinds, list(REPLIES))
    weights = _row_weights(kinds, config)
    counts = np.array(
        [validity_counts(one.text, message=one.message, earlier=one.earlier, known=rows.known) for one in replies]
    )
    mine = counts[np.isin(kinds, ["own", "voice"])]
    bounds: Tensors = {
        "genuine.mean": mine.mean(0),
        "genuine.spread": np.maximum(mine.std(0), [LEAST_VALIDITY_SPREAD[name] for name in VALIDITY]),
        "genuine.low": np.quantile(mine, 1 - config.bounds, axis=0),
        "genuine.high": np.quantile(mine, config.bounds, axis=0),
    }
    linear = _linear_features(replies, counts, bounds)
    placed = kinds != "comfort"  # a comment without the message it answers has no tie to it
    by_counts = _reply_or_not(linear[placed], is_reply[placed], weights[placed], penalty=config.counts)
    # Out of place or out of order says nothing of how a reply is worded.
    spoken = ~np.isin(kinds, ["elsewhere", "shuffled"])
    texts = [one.text for one in replies]
    lexicon = fit_lexicon(
        [text for text, chosen in zip(texts, spoken, strict=True) if chosen], least_texts=config.least_texts
    )
    by_words = _reply_or_not(
        word_matrix(lexicon, texts)[spoken], is_reply[spoken], weights[spoken], penalty=config.words
    )
    vectors = np.stack([one.text_vector for one in replies]).astype(np.float64)
    by_vector = _reply_or_not(vectors[spoken], is_reply[spoken], weights[spoken], penalty=config.embedding)
    return {
        **bounds,
        "genuine.counts": by_counts[0],
        "genuine.bias": np.array([by_counts[1]]),
        **_lexicon_tensors("register", lexicon),
        "register.words": by_words[0],
        "register.embedding": by_vector[0],
        "register.bias": np.array([by_words[1], by_vector[1]]),
    }


def _linear_features(replies: Sequence[Reply], counts: Numbers, bounds: Tensors) -> Numbers:
    """By the examiner's own functions, which need its bounds and nothing else."""
    empty = Lexicon({}, np.zeros(0))
    tensors = {name: value.astype(np.float32) for name, value in bounds.items()}
    examiner = Examiner(tensors, empty, empty, frozenset(), "examiner-bounds")
    return np.array(
        [
            examiner.linear_features(reply, of_reply, examiner.excess(of_reply))
            for reply, of_reply in zip(replies, counts, strict=True)
        ]
    )


def _row_weights(kinds: NDArray[np.str_], config: GenuineFit) -> Numbers:
    """Each kind has its weight in all, shared by its rows; replies together weigh as much as all the rest."""
    total = sum(config.kinds.values())
    by_kind = config.kinds | {kind: share * total for kind, share in config.replies.items()}
    counts = Counter(kinds.tolist())
    rows = np.array([by_kind[kind] / counts[kind] for kind in kinds.tolist()])
    return rows * 3_000  # the penalties were chosen for about so many rows


def _reply_or_not(
    features: csr_matrix | Numbers, is_reply: NDArray[np.bool_], weights: Numbers, *, penalty: float
) -> tuple[Numbers, float]:
    model = LogisticRegression(C=penalty, max_iter=3_000).fit(features, is_reply, sample_weight=weights)
    return model.coef_[0], float(model.intercept_[0])


def _lexicon_tensors(name: str, lexicon: Lexicon) -> Tensors:
    return {f"{name}.terms": pack(list(lexicon.terms)), f"{name}.rarity": lexicon.rarity}
