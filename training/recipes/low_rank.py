"""Low-rank updates of the encoder's layers (LoRA, Hu et al. 2021): put in, loaded and folded in again.

The networks of the screen and of the judge train them; the export folds them into the layers, so that what is served
costs nothing more.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Set
from typing import Final

import torch
from torch import Tensor, nn

from training.recipes.minilm import LAYERS, MiniLm

ADAPTED: Final = ("query", "key", "value", "out", "up", "down")


class LowRank(nn.Module):
    """A frozen linear map plus a trained one of low rank: x W + (x A) B * scale; B starts at zero."""

    def __init__(self, base: nn.Linear, *, rank: int, scale: float) -> None:
        super().__init__()
        self.base, self.scale = base, scale
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, states: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        base: Tensor = self.base(states)
        update: Tensor = (states @ self.a.T) @ self.b.T * self.scale
        return base + update

    def merged(self) -> nn.Linear:
        """The one linear map that does the same."""
        linear = copy.deepcopy(self.base)
        with torch.no_grad():
            linear.weight += self.b @ self.a * self.scale
        return linear


def add_updates(encoder: MiniLm, *, rank: int, first_layer: int, scale: float) -> None:
    """Give every map of the layers from `first_layer` on an update of `rank`."""
    for index in range(first_layer, LAYERS):
        layer = encoder.layers[index]
        for name in ADAPTED:
            setattr(layer, name, LowRank(getattr(layer, name), rank=rank, scale=scale))


def merge_updates(encoder: MiniLm) -> None:
    """Fold every update into its layer, in place."""
    for layer in encoder.layers:
        for name in ADAPTED:
            part = getattr(layer, name)
            if isinstance(part, LowRank):
                setattr(layer, name, part.merged())


def load_tensors(net: nn.Module, tensors: Mapping[str, Tensor], *, wanted: Set[str]) -> None:
    """Put saved tensors in place; ValueError where a name of `wanted` is missing or another is there."""
    if wanted != tensors.keys():
        raise ValueError(f"The weights have {len(tensors)} tensors; the network trains {len(wanted)}.")
    net.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, strict=False)
