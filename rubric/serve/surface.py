"""What a text looks like on its surface: a small linear model over its words, word pairs and letter sequences.

It reads what the encoder's word pieces blur (slang, code words, misspelling, who does what to whom); the encoder reads
what it has never seen spelled. `networks.py` mixes both per window (`mix`), the recipe `screen` fits it from the same
`ngrams`. Measured: docs/experiments.md, "Crisis screen".
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

BUCKETS: Final = 1 << 16
LONGEST_WORDS: Final = 3
SHORTEST_LETTERS: Final = 2
LONGEST_LETTERS: Final = 5
CLASSES: Final = 6  # none, watch, high for a visitor's text, then for a reply's
FLOOR: Final = 1e-6  # keeps a logarithm finite

_TOKEN: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*|[^\w\s]")

Numbers = NDArray[np.float32]


def ngrams(cleaned: str) -> frozenset[int]:
    """The buckets of a cleaned text's word 1- to 3-grams (marks are words) and of its words' 2- to 5-letter parts."""
    words = [word.replace("\u2019", "'") for word in _TOKEN.findall(cleaned.lower())]
    found: set[str] = set()
    for size in range(1, LONGEST_WORDS + 1):
        found.update(f"w {' '.join(words[at : at + size])}" for at in range(len(words) - size + 1))
    for word in words:
        edged = f"<{word}>"
        for size in range(SHORTEST_LETTERS, LONGEST_LETTERS + 1):
            found.update(edged[at : at + size] for at in range(len(edged) - size + 1))
    return frozenset(zlib.crc32(part.encode("utf-8", "replace")) % BUCKETS for part in found)


def weighted(buckets: frozenset[int], rarity: Numbers) -> tuple[NDArray[np.int64], Numbers]:
    """The buckets in order and their values: the rarity of each, all scaled to unit length."""
    places = np.fromiter(sorted(buckets), dtype=np.int64, count=len(buckets))
    values = rarity[places]
    return places, values / np.float32(max(float(np.sqrt((values * values).sum())), FLOOR))


@dataclass(frozen=True, eq=False, slots=True)
class Surface:
    """The fitted model. `rarity` [BUCKETS] is 0 for what the training text has once or never."""

    rarity: Numbers
    weights: Numbers  # [CLASSES, BUCKETS]
    bias: Numbers  # [CLASSES]

    @classmethod
    def load(cls, path: Path) -> Surface:
        """Read what the recipe `screen` wrote (fp16 on disk)."""
        tensors = load_file(path)
        return cls(*(tensors[name].astype(np.float32) for name in ("rarity", "weights", "bias")))

    def probabilities(self, cleaned: str) -> Numbers:
        """[CLASSES]: each direction's three sum to 1."""
        places, values = weighted(ngrams(cleaned), self.rarity)
        return softmax_by_direction(self.weights[:, places] @ values + self.bias)


def softmax_by_direction(logits: Numbers) -> Numbers:
    """[..., CLASSES] -> the same, each half normalised by itself."""
    halves = logits.reshape(*logits.shape[:-1], 2, CLASSES // 2)
    raised = np.exp(halves - halves.max(-1, keepdims=True))
    parts: Numbers = (raised / raised.sum(-1, keepdims=True)).reshape(logits.shape).astype(np.float32)
    return parts


def mix(network: Numbers, surface: Numbers, *, weights: Sequence[float]) -> Numbers:
    """One opinion out of two, [..., CLASSES] each: logarithms weighted by `weights` (network, surface), normalised."""
    logs = weights[0] * np.log(np.maximum(network, FLOOR)) + weights[1] * np.log(np.maximum(surface, FLOOR))
    return softmax_by_direction(logs.astype(np.float32))
