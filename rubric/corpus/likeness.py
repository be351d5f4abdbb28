"""How alike two conversations are in meaning: cosine of their embeddings, by the encoder that the product serves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rubric.corpus.records import Conversation
from rubric.serve.bundle import load_bundle
from rubric.serve.networks import Networks, join_embeddings
from rubric.serve.queue import Job

MAX_COSINE = 0.9


def embed(conversations: Sequence[Conversation], *, encoder: Path) -> npt.NDArray[np.float64]:
    """[conversations, 384]: what each visitor said, as one unit vector. Raises BundleInvalid for no whole export."""
    networks = Networks(load_bundle(encoder))
    return np.array([_embed_one(conversation, networks=networks) for conversation in conversations])


def _embed_one(conversation: Conversation, *, networks: Networks) -> list[float]:
    windows = networks.embed_windows("\n".join(turn.visitor for turn in conversation.turns))
    vectors = networks.compute([Job(network="embed", window=window) for window in windows])
    return join_embeddings(vectors, windows)


def twins(
    conversations: Sequence[Conversation], vectors: npt.NDArray[np.float64], *, over: float = MAX_COSINE
) -> list[tuple[str, str, float]]:
    """Pairs of conversations whose cosine is `over` or more, and that figure, in [-1, 1]."""
    cosines = vectors @ vectors.T
    return [
        (conversations[one].id, conversations[other].id, float(cosines[one, other]))
        for one, other in combinations(range(len(conversations)), 2)
        if cosines[one, other] >= over
    ]
