"""What shapes the encoder judge's weights besides the turns; `judge.yaml` says it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Losses:
    """What each part weighs beside the levels' own 1."""

    pair: float = 0.5
    mechanisms: float = 0.3
    genuine: float = 0.3


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeFitConfig:
    """Everything that shapes the weights besides the turns."""

    rank: int = 16
    first_layer: int = 2
    epochs: int = 3
    batch_turns: int = 8
    learning_rate: float = 8e-4
    weight_decay: float = 0.01
    dropout: float = 0.1
    average_decay: float = 0.99
    opposite_share: float = 0.35  # of the criteria that have one
    no_reply_share: float = 0.3  # of the turns in a step: a text that is no reply, too
    foreign_criteria: int = 2  # per turn: another conversation's own, which speak of matters that are not here
    neighbour_share: float = 0.1  # of a level's mass that lies on the levels beside it
    pair_scale: float = 8.0  # times the difference of two rewards, before the logistic
    seed: int = 0
    losses: Losses = field(default_factory=Losses)
