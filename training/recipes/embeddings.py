"""Embeddings of many texts for a recipe, as the encoder process gives them, kept in a file between runs.

The recipe `examiner` fits on them and the product asks the encoder process: same windows, same network, same joining
(`rubric.serve`), within the rounding that the export is checked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from rubric.serve.bundle import TOKENIZER
from rubric.serve.networks import join_embeddings
from rubric.serve.texts import embedding_windows, open_tokenizer
from training.recipes.encoder_export import Embedding
from training.recipes.minilm import load_minilm, package_folder

Unit = NDArray[np.float32]
BATCH: Final = 32


class Embeddings:
    """Vectors by text; `file` keeps those that were computed, by a hash of the text, never the text."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._vectors: dict[str, Unit] = {}
        if file is not None and file.is_file():
            with np.load(file) as kept:
                self._vectors = dict(zip(kept["keys"].tolist(), kept["vectors"], strict=True))
        self._is_changed = False
        self._tokenizer = open_tokenizer(package_folder() / TOKENIZER)
        self._network: Embedding | None = None

    def of(self, text: str) -> Unit:
        """[384], unit length."""
        key = _key(text)
        if key not in self._vectors:
            self._vectors[key] = self._compute([text])[0]
            self._is_changed = True
        return self._vectors[key]

    def prepare(self, texts: Iterable[str]) -> None:
        """Compute what is missing, texts of like length side by side, and keep it."""
        missing = sorted(
            {text for text in texts if _key(text) not in self._vectors}, key=lambda text: (len(text), text)
        )
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            self._vectors.update(zip(map(_key, batch), self._compute(batch), strict=True))
            self._is_changed = True
        self.save()

    def save(self) -> None:
        """Write the file, where there is one and something is new."""
        if self._file is None or not self._is_changed:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_suffix(".partial.npz")
        np.savez(partial, keys=np.array(list(self._vectors)), vectors=np.stack(list(self._vectors.values())))
        partial.replace(self._file)
        self._is_changed = False

    def _compute(self, texts: Sequence[str]) -> list[Unit]:
        if self._network is None:
            self._network = Embedding(load_minilm(package_folder())).eval()
        cut = [embedding_windows(text, self._tokenizer) for text in texts]
        windows = [window for of_text in cut for window in of_text]
        ids = torch.zeros(len(windows), max(len(window.ids) for window in windows), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, window in enumerate(windows):
            ids[row, : len(window.ids)] = torch.tensor(window.ids)
            mask[row, : len(window.ids)] = 1
        with torch.no_grad():
            vectors = iter(self._network(ids, mask).numpy())
        joined = [join_embeddings([next(vectors) for _ in of_text], of_text) for of_text in cut]
        return [np.asarray(one, dtype=np.float32) for one in joined]


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
