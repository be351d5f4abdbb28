"""Fit the screen's network to lines, and read texts with it: the torch part of the recipe `screen`.

Both directions train together, each line on its own direction's three logits. The weights that are kept are an
average over the steps (`averaged_steps`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from rubric.serve.surface import softmax_by_direction
from rubric.serve.texts import CONTENT_TOKENS, Window, clean
from training.data.screen_lines import DIRECTIONS, LABELS, ScreenLine
from training.data.screen_noise import Noise, company_of, varied
from training.recipes.averaged_steps import AveragedSteps
from training.recipes.half_products import half_products
from training.recipes.minilm import load_minilm, package_folder, padded
from training.recipes.screen_net import LEVELS, ScreenNet, load_trained

WARM_UP: Final = 0.06  # of all steps
BATCHES_SORTED_TOGETHER: Final = 8  # texts of like length share a batch: half the padding


@dataclass(frozen=True, kw_only=True, slots=True)
class FitConfig:
    """Everything that shapes the weights besides the lines."""

    rank: int = 16
    first_layer: int = 0
    epochs: int = 6
    batch_lines: int = 32
    learning_rate: float = 7e-4
    weight_decay: float = 0.01
    label_smoothing: float = 0.05
    average_decay: float = 0.99
    uses_bfloat16: bool = False  # products only, weights stay fp32: half the time on processors that have it
    seed: int = 0
    noise: Noise = field(default_factory=Noise)


@dataclass(frozen=True, slots=True)
class _Example:
    ids: list[int]
    label: int
    is_visitor: bool


def fit(
    lines: Sequence[ScreenLine],
    *,
    config: FitConfig,
    tokenizer: Tokenizer,
    after_epoch: Callable[[int, float], None] = lambda _epoch, _loss: None,
    start: Mapping[str, Tensor] | None = None,
) -> ScreenNet:
    """Train on the lines, from `start` (`trained_tensors` of an earlier fit) where it is given.

    The same lines, configuration, start and torch build give the same weights.
    """
    torch.manual_seed(config.seed)
    dice = random.Random(config.seed)
    net = ScreenNet(load_minilm(package_folder()), rank=config.rank, first_layer=config.first_layer)
    if start is not None:
        load_trained(net, start)
    steps = AveragedSteps(
        net,
        rate=config.learning_rate,
        weight_decay=config.weight_decay,
        average_decay=config.average_decay,
        steps=math.ceil(len(lines) / config.batch_lines) * config.epochs,
        warm_up=WARM_UP,
    )
    weights = {direction: _label_weights(lines, direction) for direction in DIRECTIONS}
    for epoch in range(config.epochs):
        net.train()
        losses = []
        for batch in _batches(_examples(lines, config, tokenizer=tokenizer, dice=dice), config, dice=dice):
            loss = _loss(net, batch, config=config, visitor=weights["visitor"], reply=weights["reply"])
            steps.take(loss)
            losses.append(loss.item())
        after_epoch(epoch, float(np.mean(losses)))
    return steps.averaged()


def _label_weights(lines: Sequence[ScreenLine], direction: str) -> Tensor:
    """Root of the inverse share of each label: rare ones count more, without shouting."""
    counts = [sum(line.direction == direction and line.label == label for line in lines) for label in LABELS]
    total = max(1, sum(counts))
    return torch.tensor([math.sqrt(total / len(LABELS) / max(1, count)) for count in counts])


def _examples(
    lines: Sequence[ScreenLine], config: FitConfig, *, tokenizer: Tokenizer, dice: random.Random
) -> list[_Example]:
    company = {direction: company_of(lines, direction) for direction in DIRECTIONS}
    examples = []
    for line in lines:
        text = varied(line.text, company=company[line.direction], noise=config.noise, dice=dice)
        ids = tokenizer.encode(clean(text)).ids
        if len(ids) > CONTENT_TOKENS + 2:
            ids = [*ids[: CONTENT_TOKENS + 1], ids[-1]]
        examples.append(_Example(ids, LABELS.index(line.label), line.direction == "visitor"))
    return examples


def _batches(examples: list[_Example], config: FitConfig, *, dice: random.Random) -> Iterator[list[_Example]]:
    dice.shuffle(examples)
    size, span = config.batch_lines, config.batch_lines * BATCHES_SORTED_TOGETHER
    chunks = (
        sorted(examples[at : at + span], key=lambda example: len(example.ids)) for at in range(0, len(examples), span)
    )
    batches = [chunk[at : at + size] for chunk in chunks for at in range(0, len(chunk), size)]
    dice.shuffle(batches)
    yield from batches


def _loss(net: ScreenNet, batch: Sequence[_Example], *, config: FitConfig, visitor: Tensor, reply: Tensor) -> Tensor:
    """Weighted cross-entropy on each example's own direction."""
    ids, mask = padded([example.ids for example in batch])
    labels = torch.tensor([example.label for example in batch])
    is_visitor = torch.tensor([example.is_visitor for example in batch])
    with half_products(wanted=config.uses_bfloat16):
        logits = net(ids, mask).float()
    own = torch.where(is_visitor[:, None], logits[:, :LEVELS], logits[:, LEVELS:])
    weights = torch.where(is_visitor, visitor[labels], reply[labels])
    losses = nn.functional.cross_entropy(own, labels, reduction="none", label_smoothing=config.label_smoothing)
    return (losses * weights).sum() / weights.sum()


@torch.no_grad()
def read_windows(net: ScreenNet, windows: Sequence[Window]) -> NDArray[np.float32]:
    """The network's six probabilities per window, [windows, 6]."""
    found = np.zeros((len(windows), 2 * LEVELS), dtype=np.float32)
    order = sorted(range(len(windows)), key=lambda number: len(windows[number].ids))
    for at in range(0, len(order), 32):
        part = order[at : at + 32]
        logits = net(*padded([windows[number].ids for number in part])).numpy()
        found[part] = softmax_by_direction(logits)
    return found
