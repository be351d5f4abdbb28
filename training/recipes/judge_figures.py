"""What a fitted judge says of turns that it never saw, how sure it may be, and the figures of it: a part of `judge`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from rubric.score import LEVELS
from rubric.serve.readings import Reading, build_reading
from training.data.judge_rows import AskedCriterion, JudgeTurn
from training.recipes.half_products import half_products
from training.recipes.judge_batches import LowerStates, criteria_of, grade_asked, read_all
from training.recipes.judge_net import MECHANISM_LEVELS, MECHANISMS, JudgeNet, level_probabilities

READ_AT_ONCE: Final = 16
TEMPERATURES: Final = tuple(round(0.6 + 0.05 * step, 2) for step in range(49))  # .6 to 3
BINS: Final = 10

Numbers = NDArray[np.float64]
Asked = tuple[Reading, Sequence[AskedCriterion]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Heard:
    """What the network says of one reply before calibration: logits [criteria, 5], what it makes of each criterion."""

    logits: Numbers
    faults: Numbers  # [criteria]: 1 where a criterion names a fault, else 0
    genuine: float  # logit
    mechanisms: Numbers  # [3, 3] probabilities

    def probabilities(self, *, temperature: float) -> Numbers:
        """Calibrated probabilities of the five levels, [criteria, 5]."""
        found = level_probabilities(
            torch.from_numpy(self.logits),
            genuine=torch.full((len(self.logits), 1), self.genuine, dtype=torch.float64),
            is_fault=torch.from_numpy(self.faults)[:, None],
            temperature=temperature,
        )
        return np.asarray(found.numpy(), dtype=np.float64)


@torch.no_grad()
def hear(net: JudgeNet, asked: Sequence[Asked], *, lower: LowerStates, tokenizer: Tokenizer) -> list[Heard]:
    """What the network says of each reading under its criteria (at least one)."""
    net.eval()
    found: dict[int, Heard] = {}
    order = sorted(range(len(asked)), key=lambda number: len(asked[number][0].ids))
    for at in range(0, len(order), READ_AT_ONCE):
        part = order[at : at + READ_AT_ONCE]
        heard = _hear_together(net, [asked[number] for number in part], lower=lower, tokenizer=tokenizer)
        found.update(zip(part, heard, strict=True))
    return [found[number] for number in range(len(asked))]


def _hear_together(net: JudgeNet, asked: Sequence[Asked], *, lower: LowerStates, tokenizer: Tokenizer) -> list[Heard]:
    with half_products():
        read, masks = read_all(net, [reading for reading, _ in asked], lower=lower)
        texts = [criterion.text for _, criteria in asked for criterion in criteria]
        criteria, criterion_mask, place = criteria_of(net, texts, lower=lower, tokenizer=tokenizer)
        rows = [number for number, (_, ours) in enumerate(asked) for _ in ours]
        logits = grade_asked(net, read, masks, (criteria, criterion_mask), list(zip(rows, place, strict=True)))
        of_row = torch.tensor(rows)
    return [
        Heard(
            logits=_numbers(logits[of_row == number]),
            faults=np.array([float(criterion.names_fault) for criterion in asked[number][1]]),
            genuine=float(read.genuine[number]),
            # Half precision rounds the log-probabilities; they sum to 1 again.
            mechanisms=_numbers(read.mechanisms[number].float().view(MECHANISMS, MECHANISM_LEVELS).softmax(-1)),
        )
        for number in range(len(asked))
    ]


def _numbers(tensor: Tensor) -> Numbers:
    return np.asarray(tensor.double().numpy(), dtype=np.float64)


def hear_turns(
    net: JudgeNet, turns: Sequence[JudgeTurn], *, lower: LowerStates, tokenizer: Tokenizer
) -> list[tuple[Heard, ...]]:
    """What the network says of every reply of every turn, under the turn's criteria."""
    asked = [
        (build_reading(turn.context, reply.text, tokenizer), turn.criteria) for turn in turns for reply in turn.replies
    ]
    heard = iter(hear(net, asked, lower=lower, tokenizer=tokenizer))
    return [tuple(next(heard) for _ in turn.replies) for turn in turns]


def fit_temperature(heard: Sequence[Heard], levels: Sequence[Sequence[float]]) -> float:
    """The one of TEMPERATURES that gives the authors' levels the highest probability. Levels as in `JudgedReply`."""
    labels = _labels(levels)

    def loss(temperature: float) -> float:
        shares = np.concatenate([one.probabilities(temperature=temperature) for one in heard])
        return float(-np.log(np.maximum(shares[np.arange(len(labels)), labels], 1e-6)).mean())

    return min(TEMPERATURES, key=loss)


def calibration_error(shares: Numbers, labels: NDArray[np.int64]) -> float:
    """Expected calibration error over levels: of each level's probability against how often it was given; [0, 1]."""
    said = shares.ravel()
    is_true = np.eye(len(LEVELS))[labels].ravel()
    bins = np.minimum((said * BINS).astype(int), BINS - 1)
    gaps = [
        (bins == number).mean() * abs(said[bins == number].mean() - is_true[bins == number].mean())
        for number in range(BINS)
        if (bins == number).any()
    ]
    return float(sum(gaps))


def reward(turn: JudgeTurn, heard: Heard, *, temperature: float) -> float:
    """The turn's reward but for its constant part, which both replies share."""
    expected = heard.probabilities(temperature=temperature) @ np.asarray(LEVELS)
    return float(sum(criterion.share * level for criterion, level in zip(turn.criteria, expected, strict=True)))


def figures_of(
    turns: Sequence[JudgeTurn], heard: Sequence[tuple[Heard, ...]], *, temperature: float
) -> dict[str, float | int]:
    """Pair accuracy under the turns' rubrics, calibration, correlation with the authors' levels."""
    pairs = [(turn, said) for turn, said in zip(turns, heard, strict=True) if turn.is_pair]
    margins = [
        reward(turn, said[0], temperature=temperature) - reward(turn, said[1], temperature=temperature)
        for turn, said in pairs
    ]
    flat = [one for said in heard for one in said]
    levels = [reply.levels for turn in turns for reply in turn.replies]
    shares = np.concatenate([one.probabilities(temperature=temperature) for one in flat])
    expected, given = shares @ np.asarray(LEVELS), np.concatenate([np.asarray(own) for own in levels])
    return {
        "pairs": len(pairs),
        "pair_accuracy": round(float(np.mean([margin > 0 for margin in margins])), 4),
        "levels": len(given),
        "correlation": round(float(np.corrcoef(expected, given)[0, 1]), 4),
        "calibration_error": round(calibration_error(shares, _labels(levels)), 4),
        "temperature": temperature,
    }


def _labels(levels: Sequence[Sequence[float]]) -> NDArray[np.int64]:
    return np.array([LEVELS.index(level) for own in levels for level in own], dtype=np.int64)
