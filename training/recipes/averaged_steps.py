"""How the networks' recipes step: AdamW, the rate up and down, gradients clipped, the weights averaged over the steps.

The moving average costs nothing at run time and does the work of an ensemble.
"""

from __future__ import annotations

import copy
from typing import Final, Generic, TypeVar

import torch
from torch import Tensor, nn

Net = TypeVar("Net", bound=nn.Module)

GRADIENT_NORM: Final = 1.0
LOWEST_RATE: Final = 0.02  # of the highest


class AveragedSteps(Generic[Net]):
    """Steps on everything of a network that wants a gradient."""

    def __init__(
        self, net: Net, *, rate: float, weight_decay: float, average_decay: float, steps: int, warm_up: float
    ) -> None:
        """`steps` in all, of which the share `warm_up` takes the rate up in a straight line."""
        self._net, self._average_decay = net, average_decay
        self._trained = [parameter for parameter in net.parameters() if parameter.requires_grad]
        self._averages = [parameter.detach().clone() for parameter in self._trained]
        self._optimizer = torch.optim.AdamW(self._trained, lr=rate, weight_decay=weight_decay)
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._optimizer, lambda step: rate_of(step, steps=steps, warm_up=warm_up)
        )

    def take(self, loss: Tensor) -> None:
        """One step down this loss."""
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._trained, GRADIENT_NORM)
        self._optimizer.step()
        self._schedule.step()
        with torch.no_grad():
            for average, parameter in zip(self._averages, self._trained, strict=True):
                average.lerp_(parameter, 1 - self._average_decay)

    def averaged(self) -> Net:
        """A copy with the averages, in evaluation mode."""
        kept = copy.deepcopy(self._net)
        trained = [parameter for parameter in kept.parameters() if parameter.requires_grad]
        with torch.no_grad():
            for parameter, average in zip(trained, self._averages, strict=True):
                parameter.copy_(average)
        return kept.eval()


def rate_of(step: int, *, steps: int, warm_up: float) -> float:
    """The share of the highest rate at a step: up in a straight line, then down to LOWEST_RATE."""
    return min((step + 1) / max(1.0, warm_up * steps), max(LOWEST_RATE, 1 - step / steps))
