"""Steps go down the loss, the rate goes up and down, and the kept weights are the average over the steps."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from training.recipes.averaged_steps import LOWEST_RATE, AveragedSteps, rate_of


def test_rate_rises_to_one_and_falls_to_the_lowest() -> None:
    rates = [rate_of(step, steps=100, warm_up=0.1) for step in range(100)]
    assert rates[:9] == pytest.approx([(step + 1) / 10 for step in range(9)])
    assert max(rates) > 0.9
    assert rates[-1] == LOWEST_RATE
    assert all(later <= earlier for earlier, later in pairwise(rates[9:]))


def test_the_average_follows_the_weights_and_what_is_frozen_stays() -> None:
    torch.manual_seed(0)
    still, taught = nn.Linear(3, 3), nn.Linear(3, 1)
    net = nn.Sequential(still, taught)
    still.requires_grad_(requires_grad=False)
    frozen, first = still.weight.clone(), taught.weight.detach().clone()
    steps = AveragedSteps(net, rate=0.1, weight_decay=0.0, average_decay=0.5, steps=20, warm_up=0.1)
    inputs, expected = torch.randn(16, 3), first.clone()
    losses = []
    for _ in range(20):
        loss = (net(inputs) - 1).square().mean()
        steps.take(loss)
        losses.append(loss.item())
        expected.lerp_(taught.weight.detach(), 0.5)
    kept = steps.averaged()
    assert losses[-1] < losses[0] / 2
    kept_still, kept_taught = (dict(kept.named_parameters())[f"{at}.weight"] for at in range(2))
    assert torch.allclose(kept_taught, expected)
    assert not torch.equal(kept_taught, taught.weight)
    assert torch.equal(kept_still, frozen)
    assert not kept.training
