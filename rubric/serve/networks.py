"""The networks on onnxruntime, and how window results become one answer per text; the judge's are in `judging.py`.

`app.py` cuts texts into windows, has the queue call `Networks.compute` on its worker thread, and joins the results
here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from rubric.encoder_values import Direction, ScreenReading
from rubric.serve.bundle import COVERAGE, EMBED_MODEL, SCREEN_MODEL, SURFACE, TOKENIZER, Bundle
from rubric.serve.coverage import Coverage
from rubric.serve.judging import JudgeNetwork
from rubric.serve.queue import Job, Vector
from rubric.serve.sessions import open_session
from rubric.serve.surface import Surface, mix
from rubric.serve.texts import Window, embedding_windows, open_tokenizer, screening_windows

LEVELS: Final = 3  # the order of each direction's probabilities: none, watch, high
_OFFSET: Final[dict[Direction, int]] = {"visitor": 0, "reply": LEVELS}


class Networks:
    """Everything a bundle holds, opened."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self._tokenizer = open_tokenizer(bundle.path(TOKENIZER))
        self._coverage = Coverage.load(bundle.path(COVERAGE))
        self._surface = Surface.load(bundle.path(SURFACE))
        self._runs = {
            "embed": open_session(bundle.path(EMBED_MODEL)),
            "screen": open_session(bundle.path(SCREEN_MODEL)),
        }
        self.judge = JudgeNetwork(bundle, self._tokenizer)

    def screen_windows(self, text: str) -> tuple[Window, ...]:
        """What the screen reads of a text."""
        return screening_windows(text, self._tokenizer)

    def embed_windows(self, text: str) -> tuple[Window, ...]:
        """What the embedding reads of a text."""
        return embedding_windows(text, self._tokenizer)

    def compute(self, jobs: Sequence[Job]) -> list[Vector]:
        """One vector per job: 6 probabilities (visitor, then reply) for the screen, 384 numbers for the embedding.

        For the judge what `JudgeNetwork.compute` says.
        """
        return [self._compute_one(job) for job in jobs]

    def _compute_one(self, job: Job) -> Vector:
        if not isinstance(job.window, Window):
            return self.judge.compute(job.window)
        ids = np.asarray([job.window.ids], dtype=np.int64)
        mask = np.ones_like(ids)
        outputs = self._runs[job.network].run(None, {"input_ids": ids, "attention_mask": mask})
        vector: Vector = np.asarray(outputs[0][0], dtype=np.float32)
        if job.network == "screen":
            return mix(vector, self._surface.probabilities(job.window.text), weights=self.bundle.mix)
        return vector

    def reading(self, text: str, vectors: Sequence[Vector], *, direction: Direction) -> ScreenReading:
        """The worst window's level, the highest probability of any crisis, and whether the language is covered."""
        offset = _OFFSET[direction]
        table = np.stack(vectors)[:, offset : offset + LEVELS].astype(float)
        any_crisis = round(float(1.0 - table[:, 0].min()), 6)
        high = round(float(table[:, 2].max()), 6)
        return ScreenReading(
            probability=min(max(any_crisis, 0.0), 1.0),
            level=self.bundle.thresholds[direction].level_of(any_crisis=any_crisis, high=high),
            is_covered=self._coverage.is_covered(text),
            version=self.bundle.screen_version,
        )


def join_embeddings(vectors: Sequence[Vector], windows: Sequence[Window]) -> list[float]:
    """The mean of the windows' vectors, weighted by their tokens, at unit length."""
    weights = np.asarray([len(window.ids) for window in windows], dtype=np.float32)
    mean = (np.stack(vectors) * weights[:, None]).sum(0)
    unit = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return [float(number) for number in unit]
