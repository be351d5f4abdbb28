"""The crisis screen as a torch network: the encoder with low-rank updates, a pooled state, a head per direction.

The recipe `screen` trains it and saves only what it trained (`trained_tensors`); `encoder_export` loads those over the
package's encoder (`load_trained`), merges the updates into the layers (`merged`) and exports the result.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Final

import torch
from torch import Tensor, nn

from training.recipes.low_rank import add_updates, load_tensors, merge_updates
from training.recipes.minilm import LAYERS, WIDTH, MiniLm, mean_pool

HEAD_WIDTH: Final = 128
LEVELS: Final = 3  # none, watch, high


class ScreenNet(nn.Module):
    """Token ids and mask -> logits [batch, 6]: none, watch, high for what a visitor says, then for a reply."""

    def __init__(self, encoder: MiniLm, *, rank: int, first_layer: int, scale: float = 2.0) -> None:
        """Layers from `first_layer` on get updates of `rank` (0: none, the encoder stays as it is)."""
        super().__init__()
        self.encoder = encoder.requires_grad_(requires_grad=False)
        self.first_layer = first_layer if rank else LAYERS
        add_updates(self.encoder, rank=rank, first_layer=self.first_layer, scale=scale)
        self.hidden = nn.Linear(2 * WIDTH, HEAD_WIDTH)
        self.heads = nn.Linear(HEAD_WIDTH, 2 * LEVELS)
        self.dropout = nn.Dropout(0.2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The logits."""
        return self.judge(self.encoder(input_ids, attention_mask), attention_mask)

    def judge(self, states: Tensor, mask: Tensor) -> Tensor:
        """Token states above the last layer -> logits; the maximum keeps one grave word among many plain ones."""
        hidden = states.masked_fill(mask[:, :, None] == 0, -1e4)
        pooled = torch.cat([mean_pool(states, mask), hidden.max(1).values], dim=-1)
        logits: Tensor = self.heads(self.dropout(nn.functional.gelu(self.hidden(self.dropout(pooled)))))
        return logits


class ScreenProbabilities(nn.Module):
    """What is exported: probabilities [batch, 6], each direction's three sum to 1."""

    def __init__(self, net: ScreenNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The probabilities."""
        logits = self.net(input_ids, attention_mask).view(-1, 2, LEVELS)
        probabilities: Tensor = logits.softmax(-1).view(-1, 2 * LEVELS)
        return probabilities


def trained_tensors(net: ScreenNet) -> dict[str, Tensor]:
    """What training changed, as fp16 (a 25th of the encoder's size)."""
    return {
        name: tensor.detach().half().contiguous()
        for name, tensor in net.state_dict().items()
        if name.endswith((".a", ".b")) or name.startswith(("hidden.", "heads."))
    }


def load_trained(net: ScreenNet, tensors: Mapping[str, Tensor]) -> None:
    """Put saved tensors in place; ValueError where a name is missing or unknown."""
    load_tensors(net, tensors, wanted=trained_tensors(net).keys())


def merged(net: ScreenNet) -> ScreenNet:
    """The same network with every update folded into its layer, in evaluation mode."""
    whole = copy.deepcopy(net)
    merge_updates(whole.encoder)
    return whole.eval()
