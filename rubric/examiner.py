"""The examiner: how good a reply is, without any rubric, and how much of three mechanisms of empathy it shows.

Another kind of model than the judge, so that what fools one need not fool the other: words and surface counts, fused
late with a logistic model over frozen sentence embeddings, which the caller fetches from the encoder process
(`texts_to_embed`). It examines what the judge trained; no recipe but its own may load it. Weights come from
`python -m training.recipes.examiner`; its card stands in docs/judges.md.

    quality = sigmoid(pair) * sigmoid(genuine / 2)      in [0, 1]

`pair` tells a better reply from a worse one to the same message; `genuine` tells replies from text that is none.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors.numpy import load_file

from rubric.dialogue import Transcript
from rubric.errors import ContextInvalid
from rubric.examiner_text import (
    MOST_CHARS,
    VALIDITY,
    Numbers,
    surface_counts,
    tie_counts,
    validity_counts,
    words,
)
from rubric.score import NONE_EMPTY_REPLY

WEIGHTS: Final = Path(__file__).parent / "examiner_weights" / "examiner.safetensors"
MECHANISMS: Final = ("emotional_reaction", "interpretation", "exploration")
LEVELS_PER_MECHANISM: Final = 3
WIDTH: Final = 384  # of an embedding
FUSION: Final = (0.7, 0.3)  # words and counts, embedding: fixed beforehand, not searched
# Words, counts, embedding of better and worse. Left-out authors chose it: what counts say of one hand's faults is not
# true of the next one's (docs/experiments.md).
PAIR_FUSION: Final = (0.45, 0.1, 0.45)
STANDARD_BOUND: Final = 4.0  # a standardised count beyond this says no more
EXCESS_BOUND: Final = 8.0
SOFTNESS: Final = 2.0  # an odd but real reply keeps a quality that can be told from that of text that is none
LINEAR_BOUNDS: Final = (-10.0, 3.0)  # the counts alone may condemn a reply, but not vouch for one
# Outside what decent replies have, each standard deviation costs one; low bounds hold only for the last two.
BOUNDED: Final = (
    *("unknown", "repeated_runs", "repeated_words", "copied", "odd_signs", "digits", "not_latin", "word_length"),
    *("praise", "about_replies", "log_words", "function_words"),
)
LOW_TOO: Final = ("log_words", "function_words")
_BOUNDED_AT: Final = [VALIDITY.index(name) for name in BOUNDED]
_LOW_AT: Final = [at for at, name in enumerate(BOUNDED) if name in LOW_TOO]
_COPIED_AT: Final = VALIDITY.index("copied")  # good up to a point, so it counts only beyond its bound

Shares = tuple[float, float, float]  # of the levels 0, 1, 2
Unit = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Word 1- and 2-grams and how rare each is."""

    terms: Mapping[str, int]
    rarity: Numbers  # [terms]

    def weigh(self, text: str) -> tuple[NDArray[np.int64], Numbers]:
        """The places of the terms in a text, in order, and (1 + ln count) x rarity of each, scaled to unit length."""
        read = words(text[:MOST_CHARS])
        counts = Counter(term for term in grams(read) if term in self.terms)
        places = np.fromiter(sorted(self.terms[term] for term in counts), dtype=np.int64, count=len(counts))
        by_place = {self.terms[term]: count for term, count in counts.items()}
        values = np.array([1 + np.log(by_place[int(place)]) for place in places]) * self.rarity[places]
        return places, values / max(float(np.sqrt((values * values).sum())), 1e-12)


@dataclass(frozen=True, slots=True)
class Scale:
    """Mean and spread by which counts are standardised."""

    mean: Numbers
    spread: Numbers

    def of(self, counts: Numbers) -> Numbers:
        """(counts - mean) / spread, within STANDARD_BOUND."""
        return np.clip((counts - self.mean) / self.spread, -STANDARD_BOUND, STANDARD_BOUND)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A reply with what it answers and the embeddings of both (`texts_to_embed`)."""

    text: str
    message: str
    earlier: str
    text_vector: Unit  # [WIDTH]
    message_vector: Unit  # [WIDTH]


@dataclass(frozen=True, kw_only=True, slots=True)
class Examined:
    """What the examiner found. A blank reply has no quality, with the reason, and no mechanisms."""

    quality: float | None  # in [0, 1]
    genuine: float | None  # in [0, 1]: how much it looks like a reply at all
    mechanisms: tuple[Shares, ...]  # in the order of MECHANISMS, or ()
    none_reason: str | None
    version: str


def texts_to_embed(context: Transcript, reply: str) -> tuple[str, str]:
    """The reply and the message it answers, as `EncoderClient.embed` takes them.

    Raises ContextInvalid where the visitor has said nothing.
    """
    if not context.last_user.strip():
        raise ContextInvalid(utterances=len(context))
    return reply[:MOST_CHARS], context.last_user[:MOST_CHARS]


def reply_of(context: Transcript, reply: str, vectors: Sequence[ArrayLike]) -> Reply:
    """What the examiner reads; `vectors` embed `texts_to_embed(context, reply)`. Raises ContextInvalid."""
    _, message = texts_to_embed(context, reply)
    text_vector, message_vector = (np.asarray(vector, dtype=np.float32) for vector in vectors)
    said = [one.text for one in context]
    newest = len(said) - 1 - said[::-1].index(context.last_user)
    return Reply(
        text=reply,
        message=message,
        earlier=" ".join(said[:newest]),
        text_vector=text_vector,
        message_vector=message_vector,
    )


@dataclass(frozen=True, slots=True)
class Examiner:
    """The fitted model; `tensors` are those of the weights file, as 32-bit numbers."""

    tensors: Mapping[str, NDArray[np.float32]]
    pair_lexicon: Lexicon
    register_lexicon: Lexicon
    known: frozenset[str]
    version: str  # "examiner-<hash12>" of the file

    @classmethod
    def load(cls, path: Path = WEIGHTS) -> Examiner:
        """Read what the recipe wrote. Raises FileNotFoundError."""
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return cls.of(load_file(path), version=f"examiner-{digest[:12]}")

    @classmethod
    def of(cls, stored: Mapping[str, NDArray[np.generic]], *, version: str) -> Examiner:
        """From the tensors of a weights file; word lists are UTF-8 with line ends between."""
        lists = {name: _unpack(value) for name, value in stored.items() if value.dtype == np.uint8}
        tensors = {name: value.astype(np.float32) for name, value in stored.items() if value.dtype != np.uint8}
        lexicons = [
            Lexicon(
                {term: at for at, term in enumerate(lists[f"{name}.terms"])}, tensors[f"{name}.rarity"].astype(float)
            )
            for name in ("pair", "register")
        ]
        return cls(tensors, lexicons[0], lexicons[1], frozenset(lists["known"]), version)

    def examine(self, reply: Reply) -> Examined:
        """Quality and mechanisms of one reply; the same numbers whatever else is examined beside it."""
        if not reply.text.strip():
            return Examined(
                quality=None, genuine=None, mechanisms=(), none_reason=NONE_EMPTY_REPLY, version=self.version
            )
        genuine = sigmoid(self.genuine(reply) / SOFTNESS)
        return Examined(
            quality=genuine * sigmoid(self.pair(reply)),
            genuine=genuine,
            mechanisms=self.mechanisms(reply),
            none_reason=None,
            version=self.version,
        )

    def pair(self, reply: Reply) -> float:
        """The logit of being the better of two replies to one message; 0 is an average reply of the training text."""
        lexical = self._lexical(self.pair_lexicon, reply.text, "pair.words")
        counts = float(self._scale("pair.counts").of(pair_counts(reply)) @ self.tensors["pair.counts"])
        embedded = float(reply.text_vector @ self.tensors["pair.embedding"])
        return float(np.dot(PAIR_FUSION, (lexical, counts, embedded)) + self.tensors["pair.bias"][0])

    def genuine(self, reply: Reply) -> float:
        """The logit of being a reply at all: counts, register (words, embedding), and what lies out of bounds."""
        counts = validity_counts(reply.text, message=reply.message, earlier=reply.earlier, known=self.known)
        excess = self.excess(counts)
        linear = float(self.linear_features(reply, counts, excess) @ self.tensors["genuine.counts"])
        linear = float(np.clip(linear + self.tensors["genuine.bias"][0], *LINEAR_BOUNDS))
        spoken = self._lexical(self.register_lexicon, reply.text, "register.words") + self.tensors["register.bias"][0]
        embedded = reply.text_vector @ self.tensors["register.embedding"] + self.tensors["register.bias"][1]
        return linear + float(FUSION[0] * spoken + FUSION[1] * embedded) - float(excess.sum())

    def excess(self, counts: Numbers) -> Numbers:
        """[len(BOUNDED)]: by how many standard deviations each count lies outside what decent replies have."""
        low, high, spread = (self.tensors[f"genuine.{name}"] for name in ("low", "high", "spread"))
        over = (counts - high) / spread
        under = (low - counts) / spread
        found = np.maximum(over[_BOUNDED_AT], 0.0)
        found[_LOW_AT] = np.maximum(found[_LOW_AT], under[_BOUNDED_AT][_LOW_AT])
        return np.minimum(found, EXCESS_BOUND)

    def linear_features(self, reply: Reply, counts: Numbers, excess: Numbers) -> Numbers:
        """[VALIDITY + BOUNDED + 1]: standardised counts, bounded excess, four times the cosine of reply and message."""
        standard = np.clip((counts - self.tensors["genuine.mean"]) / self.tensors["genuine.spread"], -4.0, 4.0)
        standard[_COPIED_AT] = 0.0
        cosine = 4.0 * float(reply.text_vector @ reply.message_vector)
        return np.concatenate([standard, np.minimum(excess, STANDARD_BOUND), [cosine]])

    def mechanisms(self, reply: Reply) -> tuple[Shares, ...]:
        """Per mechanism the probabilities of the levels 0, 1, 2."""
        counts = self._scale("levels.surface").of(surface_counts(reply.text))
        places, values = self.pair_lexicon.weigh(reply.text)
        both = np.concatenate([reply.text_vector, reply.message_vector])
        lexical = (
            self.tensors["levels.words"][:, :, places] @ values
            + self.tensors["levels.surface"] @ counts
            + self.tensors["levels.bias"][0]
        )
        embedded = self.tensors["levels.embedding"] @ both + self.tensors["levels.bias"][1]
        return tuple(shares(fused) for fused in fuse_levels(lexical, embedded))

    def _lexical(self, lexicon: Lexicon, text: str, name: str) -> float:
        places, values = lexicon.weigh(text)
        return float(values @ self.tensors[name][places])

    def _scale(self, name: str) -> Scale:
        return Scale(self.tensors[f"{name}.mean"].astype(float), self.tensors[f"{name}.spread"].astype(float))


def pair_counts(reply: Reply) -> Numbers:
    """[len(SURFACE) + len(TIE)]."""
    return np.concatenate(
        [surface_counts(reply.text), tie_counts(reply.text, message=reply.message, earlier=reply.earlier)]
    )


def fuse_levels(lexical: Numbers, embedded: Numbers) -> Numbers:
    """[..., 3] logits each -> [..., 3] probabilities: seven tenths of the first opinion, three of the second."""
    return FUSION[0] * _softmax(lexical) + FUSION[1] * _softmax(embedded)


def grams(read: Sequence[str]) -> list[str]:
    """Words and pairs of neighbouring words."""
    return [*read, *(f"{one} {other}" for one, other in pairwise(read))]


def sigmoid(logit: float) -> float:
    """1 / (1 + exp(-logit)), without overflow."""
    return float(1.0 / (1.0 + np.exp(-np.clip(logit, -60.0, 60.0))))


def shares(probabilities: Numbers) -> Shares:
    """Three plain numbers."""
    none, weak, strong = (float(share) for share in probabilities)
    return none, weak, strong


def pack(texts: Sequence[str]) -> NDArray[np.uint8]:
    """A word list as a tensor."""
    return np.frombuffer("\n".join(texts).encode("utf-8"), dtype=np.uint8)


def _unpack(packed: NDArray[np.generic]) -> list[str]:
    return packed.tobytes().decode("utf-8").split("\n")


def _softmax(logits: Numbers) -> Numbers:
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True), dtype=np.float64)
