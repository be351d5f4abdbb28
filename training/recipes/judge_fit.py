"""Fit the encoder judge: batches of turns, four losses, weights averaged over the steps. A part of the recipe `judge`.

The lower layers are frozen, so what they make of every text is computed once and kept (`LowerStates`). Each step sees
some turns with all their replies and criteria; now and then a criterion is put by its opposite, with the level turned
round, so that the levels cannot be told from the reply alone.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from rubric.score import LEVELS as SCORE_LEVELS
from rubric.serve.readings import Reading, build_reading, criterion_ids
from training.data.judge_noise import NoReplies
from training.data.judge_rows import AskedCriterion, JudgeTurn
from training.recipes.judge_net import JudgeNet, Read, expected_level
from training.recipes.minilm import load_minilm, package_folder

WARM_UP: Final = 0.08  # of all steps
TEXTS_AT_ONCE: Final = 32
STEP: Final = SCORE_LEVELS[1] - SCORE_LEVELS[0]


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


@dataclass(frozen=True, slots=True)
class Padded:
    """Ids, states below the first trained layer [batch, longest, WIDTH] and mask of several texts."""

    ids: Tensor
    lower: Tensor
    mask: Tensor


class LowerStates:
    """What the frozen layers make of texts, by their ids; computed once, kept in half the width."""

    def __init__(self, net: JudgeNet) -> None:
        self._net = net
        self._kept: dict[tuple[int, ...], Tensor] = {}

    @torch.no_grad()
    def add(self, texts: Sequence[tuple[int, ...]]) -> None:
        """Compute what is not there yet, texts of like length together."""
        new = sorted({ids for ids in texts if ids not in self._kept}, key=len)
        for at in range(0, len(new), TEXTS_AT_ONCE):
            part = new[at : at + TEXTS_AT_ONCE]
            ids, mask = padded(part)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                lower = self._net.lower_states(ids, mask)
            for one, states in zip(part, lower, strict=True):
                self._kept[one] = states[: len(one)].to(torch.bfloat16).clone()

    def of(self, texts: Sequence[tuple[int, ...]]) -> Padded:
        """The states of several texts, padded. Texts that are not there are computed."""
        self.add(texts)
        longest = max(map(len, texts))
        kept = [self._kept[ids] for ids in texts]
        lower = torch.stack([functional.pad(states, (0, 0, 0, longest - len(states))) for states in kept])
        ids, mask = padded(texts)
        return Padded(ids, lower, mask)


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Ids and mask [batch, longest], filled with 0."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return ids, mask


@dataclass(frozen=True, slots=True)
class Example:
    """A turn as it is read: its replies' readings, that of a text that is no reply, and criteria that cannot hold."""

    turn: JudgeTurn
    readings: tuple[Reading, ...]
    no_reply: Reading
    foreign: tuple[str, ...]


class Batch:
    """Turns of one step, flat: readings, criteria as they are put this time, and who is graded by what."""

    def __init__(self, examples: Sequence[Example], config: JudgeFitConfig, *, dice: random.Random) -> None:
        self.readings: list[Reading] = []
        self.mechanisms: list[tuple[int, ...] | None] = []
        self.genuine: list[float] = []
        self.texts: list[str] = []
        self.asked: list[tuple[int, int]] = []  # of a reading and of a criterion, by number
        self.levels: list[float] = []
        self.pairs: list[tuple[list[tuple[int, float]], ...]] = []  # better, worse: rows of `asked` with their shares
        for example in examples:
            self._add(example, config, dice=dice)

    def _add(self, example: Example, config: JudgeFitConfig, *, dice: random.Random) -> None:
        turn = example.turn
        put = [_put(criterion, config, dice=dice) for criterion in turn.criteria]
        first = len(self.texts)
        self.texts += [text for text, _ in put]
        foreign = range(len(self.texts), len(self.texts) + len(example.foreign))
        self.texts += example.foreign
        rows: list[list[tuple[int, float]]] = []
        for reply, reading in zip(turn.replies, example.readings, strict=True):
            rows.append([])
            for number, (asked, (_, turned)) in enumerate(zip(turn.criteria, put, strict=True)):
                rows[-1].append((len(self.asked), -asked.share if turned else asked.share))
                self.asked.append((len(self.readings), first + number))
                self.levels.append(1 - reply.levels[number] if turned else reply.levels[number])
            for number in foreign:
                self.asked.append((len(self.readings), number))
                self.levels.append(0.0)
            self.readings.append(reading)
            self.mechanisms.append(reply.mechanisms)
            self.genuine.append(1.0)
        if turn.is_pair:
            self.pairs.append(tuple(rows))
        if dice.random() < config.no_reply_share:
            self.readings.append(example.no_reply)
            self.mechanisms.append(None)
            self.genuine.append(0.0)


def _put(criterion: AskedCriterion, config: JudgeFitConfig, *, dice: random.Random) -> tuple[str, bool]:
    """The sentence that is asked this time, and whether it is the opposite."""
    if criterion.opposite is not None and dice.random() < config.opposite_share:
        return criterion.opposite, True
    return criterion.text, False


def prepared(turns: Sequence[JudgeTurn], *, tokenizer: Tokenizer, seed: int, foreign_criteria: int) -> list[Example]:
    """The turns as they are read; what is no reply, and what cannot hold, comes from these turns alone."""
    dice, makes = random.Random(seed), NoReplies(turns)
    own = [(turn.group, one.text) for turn in turns for one in turn.criteria if one.is_own and not one.names_fault]
    examples = []
    for turn in turns:
        others = [text for group, text in own if group != turn.group]
        examples.append(
            Example(
                turn,
                tuple(build_reading(turn.context, reply.text, tokenizer) for reply in turn.replies),
                build_reading(turn.context, makes.make(turn, dice=dice), tokenizer),
                tuple(dice.sample(others, min(foreign_criteria, len(others)))),
            )
        )
    return examples


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
    lower.add([reading.ids for example in examples for reading in (*example.readings, example.no_reply)])
    trained = [parameter for parameter in net.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=config.learning_rate, weight_decay=config.weight_decay)
    steps = math.ceil(len(examples) / config.batch_turns) * config.epochs
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, steps=steps))
    averages = [parameter.detach().clone() for parameter in trained]
    for epoch in range(config.epochs):
        net.train()
        seen: list[dict[str, float]] = []
        for batch in _batches(list(examples), config, dice=dice):
            losses = batch_losses(net, batch, config=config, lower=lower, tokenizer=tokenizer)
            optimizer.zero_grad()
            torch.stack(list(losses.values())).sum().backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            schedule.step()
            with torch.no_grad():
                for average, parameter in zip(averages, trained, strict=True):
                    average.lerp_(parameter, 1 - config.average_decay)
            seen.append({name: loss.item() for name, loss in losses.items()})
        after_epoch(epoch, _means(seen))
    return _with_averages(net, averages)


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


def _batches(examples: list[Example], config: JudgeFitConfig, *, dice: random.Random) -> Iterator[Batch]:
    """Turns of like length share a batch: less padding."""
    dice.shuffle(examples)
    size, span = config.batch_turns, config.batch_turns * 8
    chunks = (
        sorted(examples[at : at + span], key=lambda example: len(example.readings[0].ids))
        for at in range(0, len(examples), span)
    )
    batches = [chunk[at : at + size] for chunk in chunks for at in range(0, len(chunk), size)]
    dice.shuffle(batches)
    for batch in batches:
        yield Batch(batch, config, dice=dice)


def batch_losses(
    net: JudgeNet, batch: Batch, *, config: JudgeFitConfig, lower: LowerStates, tokenizer: Tokenizer
) -> dict[str, Tensor]:
    """The weighted losses of one step, by name."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        read, masks = read_all(net, batch.readings, lower=lower)
        criteria, criterion_mask, place = criteria_of(net, batch.texts, lower=lower, tokenizer=tokenizer)
        of_reading = torch.tensor([reading for reading, _ in batch.asked])
        of_criterion = torch.tensor([place[criterion] for _, criterion in batch.asked])
        logits = net.grade(
            read.rows(of_reading),
            (masks[0][of_reading], masks[1][of_reading]),
            criteria[of_criterion],
            criterion_mask[of_criterion],
        ).float()
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


def read_all(net: JudgeNet, readings: Sequence[Reading], *, lower: LowerStates) -> tuple[Read, tuple[Tensor, Tensor]]:
    """Everything about some readings, and the masks of their reply and of their other tokens."""
    given = lower.of([reading.ids for reading in readings])
    reply_mask, _ = padded([reading.reply_mask for reading in readings])
    states = net.upper_states(given.lower, given.mask)
    read = net.read(
        states, net.bare_words(given.ids), reply_mask, torch.tensor([reading.surface for reading in readings])
    )
    return read, (reply_mask, given.mask - reply_mask)


def criteria_of(
    net: JudgeNet, texts: Sequence[str], *, lower: LowerStates, tokenizer: Tokenizer
) -> tuple[Tensor, Tensor, list[int]]:
    """States and mask of the different texts, and where among them each of `texts` is."""
    different = list(dict.fromkeys(texts))
    given = lower.of([criterion_ids(text, tokenizer) for text in different])
    states = net.criterion(net.upper_states(given.lower, given.mask), net.bare_words(given.ids))
    number = {text: at for at, text in enumerate(different)}
    return states, given.mask, [number[text] for text in texts]


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


def _rate(step: int, *, steps: int) -> float:
    """Up in a straight line, then down to a fiftieth."""
    return min((step + 1) / max(1.0, WARM_UP * steps), max(0.02, 1 - step / steps))


def _with_averages(net: JudgeNet, averages: Sequence[Tensor]) -> JudgeNet:
    kept = copy.deepcopy(net)
    trained = [parameter for parameter in kept.parameters() if parameter.requires_grad]
    with torch.no_grad():
        for parameter, average in zip(trained, averages, strict=True):
            parameter.copy_(average)
    return kept.eval()
