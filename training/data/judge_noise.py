"""Texts that are no attempt at a reply, made from real ones: what the encoder judge learns to tell from a reply.

The families here are the training's own. Those that `training/bench/judge_probes` measures (empty, very long, repeated,
flattery, gestures, claims about itself, orders to the judge, made-up delimiters, foreign garble, bare openings, copies
of the visitor) are kept out: the judge must not have been taught them.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rubric.bank import load_bank
from rubric.corpus.no_replies import JUDGE_NO_REPLIES, read_no_replies
from training.data.judge_rows import JudgeTurn


@dataclass(frozen=True, slots=True)
class NoReplies:
    """Makes texts that are no reply to a turn, out of what other turns hold."""

    turns: Sequence[JudgeTurn]

    def make(self, turn: JudgeTurn, *, dice: random.Random) -> str:
        """One text of a family drawn at random. Raises IndexError where no other conversation is there to draw from."""
        family = dice.choice(_FAMILIES)
        others = [other for other in self.turns if other.group != turn.group]
        return family(turn, dice.choice(others), dice)


def shuffled(turn: JudgeTurn, _other: JudgeTurn, dice: random.Random) -> str:
    """The words of a real reply in any order."""
    words = dice.choice(turn.replies).text.split()
    dice.shuffle(words)
    return " ".join(words)


def garbled(turn: JudgeTurn, _other: JudgeTurn, dice: random.Random) -> str:
    """A real reply with many letters replaced."""
    share = dice.uniform(0.25, 0.6)
    return "".join(
        dice.choice(string.ascii_lowercase) if letter.isalpha() and dice.random() < share else letter
        for letter in dice.choice(turn.replies).text
    )


def out_of_place(_turn: JudgeTurn, other: JudgeTurn, dice: random.Random) -> str:
    """The reply to another conversation, cut in the middle of a sentence."""
    words = dice.choice(other.replies).text.split()
    return " ".join(words[: max(4, int(len(words) * dice.uniform(0.3, 0.8)))]).rstrip(".?!,")


def spliced(turn: JudgeTurn, other: JudgeTurn, dice: random.Random) -> str:
    """Pieces of the visitor's message, of a reply to it and of another reply, mixed."""
    pieces = []
    for text in (turn.visitor, turn.visitor, dice.choice(turn.replies).text, dice.choice(other.replies).text):
        words = text.split()
        size = dice.randint(3, 7)
        pieces += [" ".join(words[at : at + size]) for at in range(0, len(words), size) if dice.random() < 0.6]
    dice.shuffle(pieces)
    return " ".join(pieces[: dice.randint(4, 9)]) or turn.visitor[::-1]


def a_criterion(_turn: JudgeTurn, _other: JudgeTurn, dice: random.Random) -> str:
    """Sentences that say what a reply should do, in place of one that does it."""
    return ". ".join(criterion.text for criterion in dice.sample(load_bank().criteria, dice.randint(1, 4)))


def written(_turn: JudgeTurn, _other: JudgeTurn, dice: random.Random) -> str:
    """A text that was written to be none: a notice, an advert, a recipe, a speech about somebody else."""
    return dice.choice(read_no_replies(JUDGE_NO_REPLIES)).text


def other_visitor(_turn: JudgeTurn, other: JudgeTurn, _dice: random.Random) -> str:
    """What another visitor wrote about a trouble of their own."""
    return other.visitor


def word_heap(turn: JudgeTurn, other: JudgeTurn, dice: random.Random) -> str:
    """Words of several replies in a heap, separated by commas."""
    words = [word.strip(".,?!").lower() for reply in (*turn.replies, *other.replies) for word in reply.text.split()]
    return ", ".join(dice.sample(words, min(len(words), dice.randint(4, 25))))


_FAMILIES: Final[tuple[Callable[[JudgeTurn, JudgeTurn, random.Random], str], ...]] = (
    shuffled,
    garbled,
    out_of_place,
    spliced,
    a_criterion,
    written,
    written,
    written,
    other_visitor,
    word_heap,
)
