"""Fit the encoder judge: four losses, weights averaged over the steps. A part of the recipe `judge`."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from rubric.score import LEVELS as SCORE_LEVELS
from training.recipes.averaged_steps import AveragedSteps
from training.recipes.half_products import half_products
from training.recipes.judge_batches import Batch, Example, LowerStates, batches_of, criteria_of, grade_asked, read_all
from training.recipes.judge_fit_config import JudgeFitConfig
from training.recipes.judge_net import JudgeNet, expected_level
from training.recipes.minilm import load_minilm, package_folder

WARM_UP: Final = 0.08  # of all steps
STEP: Final = SCORE_LEVELS[1] - SCORE_LEVELS[0]


def fit(
    examples: Sequence[Example],
    *,
    config: JudgeFitConfig,
    tokenizer: Tokenizer,
    lower: LowerStates,
    after_epoch: Callable[[int, dict[str, float]], None] = lambda _epoch, _losses: None,
) -> JudgeNet:
    """Train on the examples. The same examples, configuration and torch build give the same weights.

    `lower` must be of a network with the same `first_layer`; several fits may share it.
    """
    torch.manual_seed(config.seed)
    dice = random.Random(config.seed)
    net = fresh_net(config)
    net.set_bounds(torch.tensor([reading.surface for example in examples for reading in example.readings]))
    lower.add([reading.ids for example in examples for reading in (*example.readings, example.no_reply)])
    steps = AveragedSteps(
        net,
        rate=config.learning_rate,
        weight_decay=config.weight_decay,
        average_decay=config.average_decay,
        steps=math.ceil(len(examples) / config.batch_turns) * config.epochs,
        warm_up=WARM_UP,
    )
    for epoch in range(config.epochs):
        net.train()
        seen: list[dict[str, float]] = []
        for batch in batches_of(list(examples), config, dice=dice):
            losses = batch_losses(net, batch, config=config, lower=lower, tokenizer=tokenizer)
            steps.take(torch.stack(list(losses.values())).sum())
            seen.append({name: loss.item() for name, loss in losses.items()})
        after_epoch(epoch, _means(seen))
    return steps.averaged()


def _means(seen: Sequence[dict[str, float]]) -> dict[str, float]:
    """Of each loss over the steps that had it: a step without pairs has no loss of pairs."""
    names = dict.fromkeys(name for losses in seen for name in losses)
    return {name: round(float(np.mean([one[name] for one in seen if name in one])), 4) for name in names}


def fresh_net(config: JudgeFitConfig) -> JudgeNet:
    """A network whose criteria look, before any training, at the tokens most like their own."""
    net = JudgeNet(
        load_minilm(package_folder()), rank=config.rank, first_layer=config.first_layer, dropout=config.dropout
    )
    with torch.no_grad():
        for given, asked in ((net.project, net.ask), (net.project_words, net.ask_words)):
            nn.init.orthogonal_(given.weight)
            asked.weight.copy_(given.weight.repeat(2, 1))
        net.project.bias.zero_()
        net.ask.bias.zero_()
    return net


def batch_losses(
    net: JudgeNet, batch: Batch, *, config: JudgeFitConfig, lower: LowerStates, tokenizer: Tokenizer
) -> dict[str, Tensor]:
    """The weighted losses of one step, by name."""
    with half_products():
        read, masks = read_all(net, batch.readings, lower=lower)
        criteria, criterion_mask, place = criteria_of(net, batch.texts, lower=lower, tokenizer=tokenizer)
        asked = [(reading, place[criterion]) for reading, criterion in batch.asked]
        logits = grade_asked(net, read, masks, (criteria, criterion_mask), asked).float()
    weights = config.losses
    losses = {
        "level": _level_loss(logits, torch.tensor(batch.levels), neighbours=config.neighbour_share),
        "genuine": weights.genuine * _binary(read.genuine[:, 0].float(), batch.genuine),
    }
    known = [number for number, levels in enumerate(batch.mechanisms) if levels is not None]
    if known:
        wanted = torch.tensor([batch.mechanisms[number] for number in known])
        by_mechanism = read.mechanisms.float()[known].view(-1, 3)
        losses["mechanisms"] = weights.mechanisms * functional.nll_loss(by_mechanism, wanted.view(-1))
    if batch.pairs:
        levels = expected_level(logits.softmax(-1))
        losses["pair"] = weights.pair * _pair_loss(levels, batch.pairs, scale=config.pair_scale)
    return losses


def _level_loss(logits: Tensor, levels: Tensor, *, neighbours: float) -> Tensor:
    """Cross-entropy against the level and, with a part of the mass, those beside it."""
    centre = (levels / STEP).round().long()
    count = len(SCORE_LEVELS)
    targets = functional.one_hot(centre, count).float() * (1 - neighbours)
    for beside in (-1, 1):
        place = (centre + beside).clamp(0, count - 1)
        targets += functional.one_hot(place, count).float() * neighbours / 2
    return functional.cross_entropy(logits, targets)


def _binary(logits: Tensor, wanted: Sequence[float]) -> Tensor:
    return functional.binary_cross_entropy_with_logits(logits, torch.tensor(wanted))


def _pair_loss(levels: Tensor, pairs: Sequence[tuple[list[tuple[int, float]], ...]], *, scale: float) -> Tensor:
    """-log sigmoid(scale * (reward of the better - reward of the worse)), mean over pairs."""
    margins = []
    for better, worse in pairs:
        margins.append(_reward(levels, better) - _reward(levels, worse))
    return functional.softplus(-scale * torch.stack(margins)).mean()


def _reward(levels: Tensor, rows: Sequence[tuple[int, float]]) -> Tensor:
    numbers = torch.tensor([number for number, _ in rows])
    return (levels[numbers] * torch.tensor([share for _, share in rows])).sum()
