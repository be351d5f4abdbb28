"""What the encoder judge reads: one sequence of context and reply, a criterion's sequence, and counts of the surface.

The recipe `judge` trains on exactly these sequences and the encoder process reads them, so both call this file. It is
pure; nothing here is logged.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tokenizers import Tokenizer

from rubric.dialogue import Role, Transcript
from rubric.errors import RubricError

READING_TOKENS: Final = 192  # of context and reply with their three markers
REPLY_TOKENS: Final = 112  # of the reply; a longer one keeps its head and its tail
CONTEXT_TOKENS: Final = 77  # of the context, its newest: what remains of 192, whether the reply is short or long
CRITERION_TOKENS: Final = 64  # with both markers; a criterion has at most 240 characters
CHARS_READ: Final = 6_000  # of the context's end, and of each end of a reply: far more than the tokens can hold
SURFACE_NAMES: Final = (
    "questions",
    "exclamations",
    "length",
    "ends_with_question",
    "care_words",
    "shared_experience",
    "question_words",
    "first_person",
    "second_person",
    "share_from_visitor",
    "copied_run",
    "distinct_words",
    "advice_words",
    "words_per_sentence",
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MARKERS: Final = frozenset({"[PAD]", "[CLS]", "[SEP]", "[MASK]"})
_SPEAKERS: Final = {Role.USER: "visitor", Role.ASSISTANT: "reply"}
_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_SENTENCE_END: Final = re.compile(r"[.!?]+(?:\s|$)")
_CARE: Final = _words(
    "sorry sad glad happy worry worried care feel feels feeling hurt hurts hard tough rough heavy love hope "
    "hugs awful terrible lonely scared afraid tired proud"
)
_SHARED: Final = re.compile(
    r"\b(?:i (?:know|understand|hear|get|see) (?:how|what|that|you)|same here|me too|i(?:'ve| have| was| had) been"
    r"|i went through|been there|i can relate)\b"
)
_QUESTION_WORDS: Final = _words("what how why when where who which do does did is are can could would")
_FIRST: Final = _words("i i'm i've i'd i'll me my mine")
_SECOND: Final = _words("you you're you've you'd you'll your yours yourself")
_ADVICE: Final = _words("should try could maybe perhaps might need ask tell call write go take keep start")
_COMMON: Final = _words(
    "a an and are as at be but by for from had has have he her him his i if in is it its me my no not of on or "
    "our she so that the their them then there they this to up was we were what when which who will with you "
    "your"
)
_RUN_WORDS: Final = 3  # a run of the visitor's words from this length on counts as copied


class ReplyBlank(RubricError):
    """A reply has nothing in it that can be read: it is judged by nobody and gets None."""

    def __init__(self, *, chars: int) -> None:
        super().__init__(f"The reply has {chars} characters and none that can be read; it gets no level.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What one run of the judge reads: ids with markers, which of them are the reply's, and the surface counts.

    `ids` and `reply_mask` have one length, at most READING_TOKENS; `surface` has one number per SURFACE_NAMES.
    """

    ids: tuple[int, ...]
    reply_mask: tuple[int, ...]
    surface: tuple[float, ...]


def context_text(context: Transcript) -> str:
    """The newest utterances as lines "visitor: ..." and "reply: ...", about as many as a reading can hold.

    System texts are left out: they are the product's own. Lines inside an utterance are joined by spaces.
    """
    lines: list[str] = []
    chars = 0
    for said in reversed(context.utterances):
        if said.role not in _SPEAKERS or chars >= CHARS_READ:
            continue
        lines.append(f"{_SPEAKERS[said.role]}: {' '.join(said.text[-CHARS_READ:].split())}")
        chars += len(lines[-1])
    return "\n".join(reversed(lines))


def build_reading(context: str, reply: str, tokenizer: Tokenizer) -> Reading:
    """`[CLS] context [SEP] reply [SEP]`, each cut to its own limit, so that a context reads alike under every reply.

    `context` is what `context_text` gave. A marker written out in a text is no marker and is left out. Raises
    ReplyBlank.
    """
    first, last = marker_ids(tokenizer)
    said = _both_ends(_inner_ids(_readable_ends(reply), tokenizer), REPLY_TOKENS)
    if not said:
        raise ReplyBlank(chars=len(reply))
    before = _inner_ids(_encodable(context[-CHARS_READ:]), tokenizer)[-CONTEXT_TOKENS:]
    return Reading(
        ids=(first, *before, last, *said, last),
        reply_mask=(*(0,) * (len(before) + 2), *(1,) * len(said), 0),
        surface=surface_of(context, reply),
    )


def criterion_ids(text: str, tokenizer: Tokenizer) -> tuple[int, ...]:
    """`[CLS] criterion [SEP]`, at most CRITERION_TOKENS."""
    first, last = marker_ids(tokenizer)
    return (first, *_inner_ids(_encodable(text[:CHARS_READ]), tokenizer)[: CRITERION_TOKENS - 2], last)


def marker_ids(tokenizer: Tokenizer) -> tuple[int, int]:
    """The ids of the first and of the last marker. Raises ValueError for a tokenizer without them."""
    first, last = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    if first is None or last is None:
        raise ValueError("The tokenizer has no [CLS] or [SEP].")
    return first, last


def surface_of(context: str, reply: str) -> tuple[float, ...]:
    """Counts that word pieces blur, in the order of SURFACE_NAMES, each about in [0, 2].

    How often the reply asks, cares, advises, speaks of itself or of the visitor, and how much of it is the words of the
    visitor's newest message.
    """
    text = _readable_ends(reply).replace("\u2019", "'")
    words = [word.lower() for word in _WORD.findall(text)]
    theirs = [word.lower() for word in _WORD.findall(_newest_visitor(context).replace("\u2019", "'"))]
    telling = [word for word in words if word not in _COMMON]
    sentences = max(1, len(_SENTENCE_END.findall(text)))
    return (
        _root(text.count("?")),
        _root(text.count("!")),
        math.log1p(len(words)) / 3,
        float(text.rstrip().endswith("?")),
        _root(_count(words, _CARE)),
        _root(len(_SHARED.findall(text.lower()))),
        _root(_count(words, _QUESTION_WORDS)),
        _root(_count(words, _FIRST)),
        _root(_count(words, _SECOND)),
        _count(telling, frozenset(theirs)) / max(1, len(telling)),
        _copied(words, theirs) / max(1, len(words)),
        len(set(words)) / max(1, len(words)),
        _root(_count(words, _ADVICE)),
        math.log1p(len(words) / sentences) / 3,
    )


def _root(count: int) -> float:
    """Counts tell less and less; from 9 on nothing more."""
    return math.sqrt(min(count, 9)) / 1.5


def _count(words: Iterable[str], among: frozenset[str]) -> int:
    return sum(word in among for word in words)


def _copied(words: list[str], theirs: list[str]) -> int:
    """How many of the words lie in a run of at least _RUN_WORDS that the visitor wrote too."""
    runs = {tuple(theirs[at : at + _RUN_WORDS]) for at in range(len(theirs) - _RUN_WORDS + 1)}
    inside: set[int] = set()
    for at in range(len(words) - _RUN_WORDS + 1):
        if tuple(words[at : at + _RUN_WORDS]) in runs:
            inside.update(range(at, at + _RUN_WORDS))
    return len(inside)


def _newest_visitor(context: str) -> str:
    label = f"{_SPEAKERS[Role.USER]}: "
    return context[-CHARS_READ:].rpartition(f"\n{label}")[2].removeprefix(label)


def _inner_ids(text: str, tokenizer: Tokenizer) -> list[int]:
    """Ids without markers: a text that spells one out must not end its own part."""
    encoded = tokenizer.encode(text, add_special_tokens=False)
    return [number for number, token in zip(encoded.ids, encoded.tokens, strict=True) if token not in _MARKERS]


def _both_ends(ids: list[int], most: int) -> list[int]:
    return ids if len(ids) <= most else [*ids[: most - most // 2], *ids[-(most // 2) :]]


def _readable_ends(reply: str) -> str:
    """Both ends of a very long reply: reading all of 64 KB would keep others waiting for nothing."""
    ends = reply if len(reply) <= 2 * CHARS_READ else f"{reply[:CHARS_READ]} {reply[-CHARS_READ:]}"
    return _encodable(ends)


def _encodable(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
