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
from training.data.judge_rows import JudgeTurn

DOCUMENT_PARTS: Final = (
    "This section describes how the form is filled in.",
    "All fields marked with a star are required before the page can be sent.",
    "The following table lists the parts that come with the set.",
    "Version 2 of the document replaces the one of last spring.",
    "Preheat the oven, grease the tin and mix flour and butter.",
    "The company may change these terms with a notice of thirty days.",
    "Trains on this line run every twenty minutes until eleven.",
    "The capital lies on a river and has about two million people.",
    "Press and hold the button until the lamp turns green.",
    "Figure 3 shows the mean of both groups with its error.",
    "The minutes of the meeting were read and approved.",
    "Our shop uses cookies to remember what is in your basket.",
    "The answer has three parts: an opening, a body and a close.",
    "The text above was written in plain language for a general reader.",
    "Rain in the west, dry later, wind from the north.",
    "Item not found, see the log for the request number.",
    "Total due: 48.20, payable by the end of the month.",
    "A summary of the article: the author describes two cities.",
    "Here is a list of words in the order of the alphabet.",
    "The home side won by two goals after extra time.",
    "Chapter four deals with the history of the building.",
    "The guidelines for good answers are printed on page nine.",
    "Each paragraph is rated from one to five by the committee.",
    "for item in items: print(item.name, item.price)",
    "Name, street, town, date and signature of the applicant.",
    "The quick summary below is meant for people in a hurry.",
)


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


def document(_turn: JudgeTurn, _other: JudgeTurn, dice: random.Random) -> str:
    """Sentences of papers, pages and tables."""
    return " ".join(dice.sample(DOCUMENT_PARTS, dice.randint(1, 4)))


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
    document,
    other_visitor,
    word_heap,
)
