"""Fit the language coverage model: `python -m training.recipes.coverage [--public-data DIR] [--out DIR]`.

Logistic regression over hashed character n-grams, English against everything else. The threshold is where 0.5 % of
English texts would count as not covered; figures are printed as one JSON line and stand in the screen's card.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from rubric.serve.bundle import COVERAGE
from rubric.serve.coverage import BUCKETS, LETTERS_MIN, Coverage, latin_share, ngram_counts
from training.data.languages import LanguageText, interface_texts, own_lines
from training.data.public_texts import goemotions
from training.data.screen_lines import read_lines
from training.recipes.encoder_export import WEIGHTS

CORPUS: Final = WEIGHTS.parents[1] / "corpus"
FALSE_ALARMS: Final = 0.005  # share of English texts that may count as not covered
OWN_LINE_REPEATS: Final = 8  # chat lines are what visitors write; interface texts are many but stiff


def features(texts: Sequence[str]) -> csr_matrix:
    """Counts over the root of their sum, one row per text: what `Coverage.evidence` sums."""
    rows, columns, values = [], [], []
    for row, text in enumerate(texts):
        counts = ngram_counts(text)
        scale = float(np.sqrt(max(1, sum(counts.values()))))
        for bucket, count in counts.items():
            rows.append(row)
            columns.append(bucket)
            values.append(count / scale)
    return csr_matrix((values, (rows, columns)), shape=(len(texts), BUCKETS), dtype=np.float32)


def fit(texts: Sequence[LanguageText], *, repeats: Sequence[int]) -> tuple[NDArray[np.float32], float]:
    """Weights [BUCKETS] (as they are stored, fp16) and bias."""
    model = LogisticRegression(C=3.0, max_iter=300, class_weight="balanced")
    model.fit(features([text.text for text in texts]), [text.is_english for text in texts], sample_weight=repeats)
    weights: NDArray[np.float32] = model.coef_[0].astype(np.float16).astype(np.float32)
    return weights, float(model.intercept_[0])


def threshold_for(coverage: Coverage, english: Sequence[str]) -> float:
    """The evidence below which FALSE_ALARMS of the given English texts lie (very short ones are not asked)."""
    long_enough = [text for text in english if latin_share(text)[0] >= LETTERS_MIN]
    return float(np.quantile([coverage.evidence(text) for text in long_enough], FALSE_ALARMS))


def share_not_covered(coverage: Coverage, texts: Sequence[str]) -> float | None:
    """Which part of the texts counts as not covered; None without texts."""
    return sum(not coverage.is_covered(text) for text in texts) / len(texts) if texts else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Cross-validate on our lines by language, fit on everything, write the tensors, print the figures."""
    parser = argparse.ArgumentParser(prog="python -m training.recipes.coverage", description=__doc__)
    parser.add_argument("--public-data", type=Path, default=None, help="folder with goemotions/ (optional)")
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    asked = parser.parse_args(arguments)
    comments = {
        part: goemotions(asked.public_data, part) if asked.public_data else () for part in ("train", "dev", "test")
    }
    visitor_lines = [line.text for line in read_lines(CORPUS / "screen")]
    english = [*visitor_lines, *comments["train"][:15000]]
    other = own_lines(CORPUS / "coverage")
    fixed = (*interface_texts(), *(LanguageText(language="en", text=text) for text in english))
    unseen = _unseen_language_recall(fixed, other)
    coverage = _fit_with(fixed, other, dev=comments["dev"] or english)
    asked.out.mkdir(parents=True, exist_ok=True)
    numbers = np.asarray([coverage.bias, coverage.threshold], dtype=np.float32)
    save_file({"weights": coverage.weights.astype(np.float16), "bias_and_threshold": numbers}, asked.out / COVERAGE)
    short = [text for text in comments["test"] if len(text.split()) <= 6]
    print(
        json.dumps(
            {
                "texts": {"english": sum(text.is_english for text in fixed), "other": len(other) + len(fixed)},
                "other_language_found": unseen,
                "english_not_covered": share_not_covered(coverage, comments["test"]),
                "short_english_not_covered": share_not_covered(coverage, short),
                "own_english_not_covered": share_not_covered(coverage, visitor_lines),
            }
        )
    )
    return 0


def _fit_with(fixed: Sequence[LanguageText], other: Sequence[LanguageText], *, dev: Sequence[str]) -> Coverage:
    texts = (*fixed, *other)
    weights, bias = fit(texts, repeats=[1] * len(fixed) + [OWN_LINE_REPEATS] * len(other))
    open_ended = Coverage(weights=weights, bias=bias, threshold=0.0)
    return Coverage(weights=weights, bias=bias, threshold=threshold_for(open_ended, dev))


def _unseen_language_recall(fixed: Sequence[LanguageText], other: Sequence[LanguageText]) -> dict[str, float | None]:
    """Share of our lines found when their fold was left out: by lines, and by whole languages (interface texts too)."""
    english = [text.text for text in fixed if text.is_english]
    by_line, by_language = [], []
    languages = sorted({text.language for text in other})
    for fold in range(4):
        left_out = set(other[fold::4])
        coverage = _fit_with(fixed, [text for text in other if text not in left_out], dev=english)
        by_line += [not coverage.is_covered(text.text) for text in left_out]
        unseen = set(languages[fold::4])
        rest = [text for text in other if text.language not in unseen]
        known = [text for text in fixed if text.language.split("_")[0] not in unseen]
        coverage = _fit_with(known, rest, dev=english)
        by_language += [not coverage.is_covered(text.text) for text in other if text.language in unseen]
    return {"lines": sum(by_line) / len(by_line), "languages": sum(by_language) / len(by_language)}


if __name__ == "__main__":
    sys.exit(main())
