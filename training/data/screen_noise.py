"""How people type: slips, missing marks, small letters, several thoughts in one message.

The recipe `screen` passes each line through `varied` at every epoch, so that the network never sees the same form
twice. A crisis line among harmless ones stays a crisis; harmless lines joined stay harmless.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from training.data.screen_lines import ScreenLine, SpeakerDirection

COMPANY_WORDS_MAX: Final = 25  # longer ones would push the line out of its window

_MARKS: Final = re.compile(r"[.,!?;:'\u2019\"]")
_SLIPS: Final = "abcdefghijklmnoprstuwy"
_WORDS_WITH_SLIPS: Final = (0.1, 0.2, 0.35)


@dataclass(frozen=True, kw_only=True, slots=True)
class Noise:
    """How often each thing happens to a line, as shares in [0, 1]."""

    lower: float = 0.25
    no_marks: float = 0.25
    slips: float = 0.3
    joined: float = 0.3


def company_of(lines: Sequence[ScreenLine], direction: SpeakerDirection) -> list[str]:
    """The harmless texts of a direction that are short enough to stand beside another."""
    return [
        line.text
        for line in lines
        if line.direction == direction and line.label == "none" and len(line.text.split()) <= COMPANY_WORDS_MAX
    ]


def varied(text: str, *, company: Sequence[str], noise: Noise, dice: random.Random) -> str:
    """The text as somebody else might have typed it, sometimes among one to three harmless texts from `company`."""
    own = mistyped(text, noise=noise, dice=dice)
    if not company or dice.random() >= noise.joined:
        return own
    others = [mistyped(dice.choice(company), noise=noise, dice=dice) for _ in range(dice.choice((1, 1, 2, 3)))]
    parts = [*others, own]
    if dice.random() < 0.5:
        dice.shuffle(parts)
    return "\n".join(parts)


def mistyped(text: str, *, noise: Noise, dice: random.Random) -> str:
    """Small letters, no marks, slips in some of the words: each with its share."""
    if dice.random() < noise.lower:
        text = text.lower()
    if dice.random() < noise.no_marks:
        text = _MARKS.sub("", text)
    if dice.random() >= noise.slips:
        return text
    words = text.split(" ")
    count = min(len(words), max(1, int(len(words) * dice.choice(_WORDS_WITH_SLIPS))))
    for index in dice.sample(range(len(words)), count):
        words[index] = slip(words[index], dice=dice)
    return " ".join(words)


def slip(word: str, *, dice: random.Random) -> str:
    """One neighbour swap, lost letter, doubled letter or wrong letter; words of one or two letters stay."""
    if len(word) < 3:
        return word
    at = dice.randrange(len(word) - 1)
    before, letter, following, after = word[:at], word[at], word[at + 1], word[at + 2 :]
    forms = (
        before + following + letter + after,
        before + following + after,
        before + letter + letter + following + after,
        before + letter + dice.choice(_SLIPS) + after,
    )
    return dice.choice(forms)
