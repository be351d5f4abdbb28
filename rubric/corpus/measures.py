"""Figures of the corpus: coverage, balance, likeness between conversations, richness of words. Pure; no model.

`report` prints them, the tests hold bounds on them, `check` says them of the files that an author is writing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from rubric.corpus.records import Conversation, Fault, MatrixRow, Worse
from rubric.states import CORE_AREAS, CORE_EMOTIONS, Area, Emotion

OPENING_WORDS = 3
NGRAM = 5
MAX_JACCARD = 0.3
TOKENS_PER_WINDOW = 500
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def words_of(text: str) -> list[str]:
    """Lower-case words; an apostrophe inside stays."""
    return _WORD.findall(text.casefold().replace("’", "'"))


def word_runs(text: str, *, length: int) -> Iterator[tuple[str, ...]]:
    """All runs of so many neighbouring words, in order; a shorter text has none."""
    words = words_of(text)
    return zip(*(words[start:] for start in range(length)), strict=False)


def shared_openings(conversations: Sequence[Conversation]) -> list[tuple[str, str]]:
    """Pairs of conversations whose first message begins with the same three words."""
    seen: dict[tuple[str, ...], str] = {}
    pairs = []
    for conversation in conversations:
        opening = tuple(words_of(conversation.turns[0].visitor)[:OPENING_WORDS])
        if opening in seen:
            pairs.append((seen[opening], conversation.id))
        seen.setdefault(opening, conversation.id)
    return pairs


def ngrams_of(conversation: Conversation) -> frozenset[tuple[str, ...]]:
    """All runs of five words inside one message or reply."""
    texts = (text for turn in conversation.turns for text in (turn.visitor, turn.reply))
    return frozenset(run for text in texts for run in word_runs(text, length=NGRAM))


def near_duplicates(
    conversations: Sequence[Conversation], *, over: float = MAX_JACCARD
) -> list[tuple[str, str, float]]:
    """Pairs of conversations whose 5-gram Jaccard is `over` or more, and that figure, in [0, 1]."""
    grams = [(conversation.id, ngrams_of(conversation)) for conversation in conversations]
    pairs = []
    for (one, left), (other, right) in combinations(grams, 2):
        common = len(left & right)
        likeness = common / (len(left) + len(right) - common) if common else 0.0
        if likeness >= over:
            pairs.append((one, other, likeness))
    return pairs


def repeated_replies(conversations: Sequence[Conversation]) -> list[str]:
    """Conversations that hold a reply, or a worse reply, which stands somewhere else to the letter."""
    seen: dict[str, str] = {}
    found = []
    for conversation in conversations:
        for turn in conversation.turns:
            for text in (turn.reply, turn.worse.text if turn.worse else None):
                if text is None:
                    continue
                if text in seen:
                    found.append(conversation.id)
                seen[text] = conversation.id
    return sorted(set(found))


def empty_cells(rows: Iterable[MatrixRow | Conversation]) -> list[tuple[Emotion, Area]]:
    """Cells of emotion and area that nobody covers: the core's, a help desk's, those of good news."""
    covered = {(row.emotion, row.area) for row in rows}
    wanted: list[tuple[Emotion, Area]] = [(emotion, area) for emotion in CORE_EMOTIONS for area in CORE_AREAS]
    wanted.append((Emotion.FRUSTRATION, Area.CUSTOMER_SUPPORT))
    wanted += [(emotion, Area.GOOD_NEWS) for emotion in (Emotion.JOY, Emotion.PRIDE)]
    return [cell for cell in wanted if cell not in covered]


@dataclass(frozen=True, kw_only=True, slots=True)
class PairFigures:
    """Pairs of a better and a worse reply: how many, how often the better one is the shorter, by which faults."""

    count: int
    better_is_shorter: float  # share in [0, 1]; a tie counts half
    faults: Counter[Fault]


def pair_figures(conversations: Iterable[Conversation]) -> PairFigures:
    """Lengths are in words. Of no pairs the share is nan."""
    pairs: list[tuple[str, Worse]] = [
        (turn.reply, turn.worse) for conversation in conversations for turn in conversation.turns if turn.worse
    ]
    credit = 0.0
    for reply, worse in pairs:
        better_words, worse_words = len(words_of(reply)), len(words_of(worse.text))
        credit += 0.5 if better_words == worse_words else float(better_words < worse_words)
    return PairFigures(
        count=len(pairs),
        better_is_shorter=credit / len(pairs) if pairs else math.nan,
        faults=Counter(worse.fault for _, worse in pairs),
    )


def type_token_ratio(texts: Iterable[str]) -> float:
    """Different words among words, the mean over windows of 500, so that size does not count. nan below one window."""
    words = [word for text in texts for word in words_of(text)]
    starts = range(0, len(words) - TOKENS_PER_WINDOW + 1, TOKENS_PER_WINDOW)
    ratios = [len(set(words[start : start + TOKENS_PER_WINDOW])) / TOKENS_PER_WINDOW for start in starts]
    return math.fsum(ratios) / len(ratios) if ratios else math.nan


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthSpread:
    """Words per text: the tenth, fiftieth and ninetieth of a hundred."""

    low: float
    median: float
    high: float


def length_spread(texts: Iterable[str]) -> LengthSpread:
    """Raises ValueError without any text."""
    lengths = sorted(len(words_of(text)) for text in texts)
    if not lengths:
        raise ValueError("no text to measure")
    at = [lengths[min(len(lengths) - 1, int(share * len(lengths)))] for share in (0.1, 0.5, 0.9)]
    return LengthSpread(low=at[0], median=at[1], high=at[2])
