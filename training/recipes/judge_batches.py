"""What a step of the encoder judge sees: turns with all their replies and criteria, flat. A part of the recipe `judge`.

The lower layers are frozen, so what they make of every text is computed once and kept (`LowerStates`). Now and then a
criterion is put by its opposite, with the level turned round, so that levels cannot be told from the reply alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from rubric.serve.readings import Reading, build_reading, criterion_ids
from training.data.judge_noise import NoReplies
from training.data.judge_rows import AskedCriterion, JudgeTurn
from training.recipes.half_products import half_products
from training.recipes.judge_fit_config import JudgeFitConfig
from training.recipes.judge_net import JudgeNet, Read
from training.recipes.minilm import padded

TEXTS_AT_ONCE: Final = 32


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
            with half_products():
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
        return Padded(ids, lower.float(), mask)


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


def batches_of(examples: list[Example], config: JudgeFitConfig, *, dice: random.Random) -> Iterator[Batch]:
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


def grade_asked(
    net: JudgeNet,
    read: Read,
    masks: tuple[Tensor, Tensor],
    criteria: tuple[Tensor, Tensor],
    asked: Sequence[tuple[int, int]],
) -> Tensor:
    """Logits of readings and criteria by their numbers: [asked, LEVELS]; `criteria` are states and mask.

    Readings stand side by side with their criteria: a copy of the states for every criterion would be the largest thing
    in a step.
    """
    of_reading: list[list[int]] = [[] for _ in range(len(read.summary))]
    places = []
    for reading, criterion in asked:
        places.append((reading, len(of_reading[reading])))
        of_reading[reading].append(criterion)
    most = max(map(len, of_reading))
    # index_select, since the gradient of plain indexing adds in any order on several threads.
    numbers = torch.tensor([number for row in of_reading for number in [*row, *[0] * (most - len(row))]])
    shape = (len(of_reading), most)
    states, mask = (one.index_select(0, numbers).reshape(*shape, *one.shape[1:]) for one in criteria)
    logits = net.grade(read, masks, states, mask)
    rows = torch.tensor([reading * most + place for reading, place in places])
    return logits.flatten(0, 1).index_select(0, rows)
