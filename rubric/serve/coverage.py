"""Is a text in the language that the screen was trained for? A small learned model over character n-grams.

The encoder process calls `Coverage.is_covered` for each text; the recipe `coverage` fits the weights from the same
`ngram_counts`. Measured error rates stand in the screen's card (`weights/CARD.md`). Very short texts count as
covered: "ok", "no", a name say nothing about a language.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

BUCKETS: Final = 1 << 14
LONGEST_NGRAM: Final = 4
LETTERS_MIN: Final = 12  # fewer Latin letters than this count as covered
LETTERS_MAX: Final = 2000  # the beginning of a long text tells its language


def ngram_counts(text: str) -> Counter[int]:
    """Hashed counts of the whole words and of the 1- to 4-grams inside them, edges marked: bucket -> how often."""
    counts: Counter[int] = Counter()
    for word in _letters(text)[:LETTERS_MAX].split():
        edged = f"<{word}>"
        counts[_bucket(f"={edged}")] += 1
        for size in range(1, LONGEST_NGRAM + 1):
            for start in range(len(edged) - size + 1):
                counts[_bucket(edged[start : start + size])] += 1
    return counts


def _letters(text: str) -> str:
    """Lower-case letters (and apostrophes) with single blanks; links, handles, digits and marks say nothing here."""
    words = (word for word in text.lower().split() if not word.startswith(("http", "www.", "@", "#")))
    folded = unicodedata.normalize("NFC", " ".join(words)).replace("\u2019", "'")
    return "".join(letter if letter.isalpha() or letter == "'" else " " for letter in folded)


def _bucket(ngram: str) -> int:
    return zlib.crc32(ngram.encode("utf-8", "replace")) % BUCKETS


def latin_share(text: str) -> tuple[int, int]:
    """(Latin letters, all letters) of a text."""
    letters = [letter for letter in text if letter.isalpha()]
    latin = sum(1 for letter in letters if ord(letter) < 0x250 or 0x1E00 <= ord(letter) < 0x1F00)
    return latin, len(letters)


@dataclass(frozen=True, eq=False, slots=True)
class Coverage:
    """A linear model: a positive sum says English. The evidence of a long text weighs more (root of its length)."""

    weights: NDArray[np.float32]  # [BUCKETS]
    bias: float
    threshold: float  # of the sum; fitted so that few English texts fall below

    @classmethod
    def load(cls, path: Path) -> Coverage:
        """Read what the recipe `coverage` wrote."""
        tensors = load_file(path)
        bias, threshold = (float(number) for number in tensors["bias_and_threshold"])
        return cls(weights=tensors["weights"].astype(np.float32), bias=bias, threshold=threshold)

    def evidence(self, text: str) -> float:
        """The sum: the higher, the surer that it is English."""
        counts = ngram_counts(text)
        total = sum(counts.values())
        if total == 0:
            return self.bias
        weighted = sum(float(self.weights[bucket]) * count for bucket, count in sorted(counts.items()))
        return self.bias + weighted / float(np.sqrt(total))

    def is_covered(self, text: str) -> bool:
        """Whether the screen's figures hold for this text: English, or too short to tell."""
        latin, letters = latin_share(text)
        if letters - latin > latin:
            return False  # mostly another script, however short
        return latin < LETTERS_MIN or self.evidence(text) >= self.threshold
