"""The judge's three graphs on onnxruntime: a reply read once, criteria kept, one small run for each of them.

`judge_door.py` asks; the queue runs `JudgeNetwork.compute` on its worker thread, where texts are cut into tokens too,
so that a long reply never holds up the door. Every run has one item and no padding: a level depends on nothing that is
asked beside it. What goes in is `readings.py`'s; evidence is found here by leaving sentences out.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from rubric.encoder_values import LEVEL_COUNT, MECHANISM_LEVELS, MECHANISMS
from rubric.errors import RubricError
from rubric.score import LEVELS
from rubric.serve.bundle import JUDGE_CRITERION, JUDGE_LEVEL, JUDGE_READ, Bundle
from rubric.serve.readings import CRITERION_TOKENS, READING_TOKENS, Reading, ReplyBlank, build_reading, criterion_ids
from rubric.serve.sessions import open_session

Vector = NDArray[np.float32]

CRITERIA_KEPT: Final = 1_024  # of about 20 KB each: the bank and what is asked again and again
EVIDENCE_SENTENCES: Final = 12  # half from either end; each is one more reading
EVIDENCE_DROP_MIN: Final = 0.02  # less is no evidence: machines may differ by .01
MECHANISM_NUMBERS: Final = len(MECHANISMS) * MECHANISM_LEVELS
_EMPTY_CRITERION_IDS: Final = 2  # the markers alone

# A sentence begins at its first visible character and ends with its marks, at a line end, or with the text.
_SENTENCE: Final = re.compile(r"\S[^\n]*?(?:[.!?\u2026\u3002\uff01\uff1f]+[\"'\u201d\u2019)\]]*(?=\s|$)|(?=\n|$))")


class JudgeBroken(RubricError):
    """The network gave something that is no probability; nothing of it is used."""


@dataclass(frozen=True, slots=True)
class CriterionText:
    """A criterion to be read and kept."""

    text: str

    @property
    def tokens(self) -> int:
        """What a round counts it as: the most that it can be."""
        return CRITERION_TOKENS


@dataclass(frozen=True, slots=True)
class JudgedReply:
    """A reply to be read and graded by every criterion."""

    context: str
    reply: str
    criteria: tuple[str, ...]

    @property
    def tokens(self) -> int:
        """What a round counts it as: the most that it can be."""
        return READING_TOKENS


@dataclass(frozen=True, eq=False, slots=True)
class Graded:
    """What was made of a reply: `mechanisms` [3, 3], `levels` [criteria, 5]; NaN in the row of an empty criterion.

    `genuine` in [0, 1] is how sure it is that the text is an attempt at a reply at all.
    """

    mechanisms: Vector
    genuine: float
    levels: Vector

    @classmethod
    def of(cls, vector: Vector) -> Graded | None:
        """Read what `JudgeNetwork.compute` gave; None where nothing in the reply can be read."""
        if not vector.size:
            return None
        mechanisms = vector[:MECHANISM_NUMBERS].reshape(len(MECHANISMS), MECHANISM_LEVELS)
        genuine, levels = float(vector[MECHANISM_NUMBERS]), vector[MECHANISM_NUMBERS + 1 :]
        return cls(mechanisms, genuine, levels.reshape(-1, LEVEL_COUNT))

    def expected(self) -> list[float | None]:
        """The mean level of each criterion, in [0, 1]; None where it is empty."""
        means = self.levels.astype(np.float64) @ np.asarray(LEVELS)
        return [None if np.isnan(mean) else min(max(round(float(mean), 6), 0.0), 1.0) for mean in means]


class JudgeNetwork:
    """The opened graphs with the criteria they have read; used from one thread."""

    def __init__(self, bundle: Bundle, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._read = open_session(bundle.path(JUDGE_READ))
        self._criterion = open_session(bundle.path(JUDGE_CRITERION))
        self._level = open_session(bundle.path(JUDGE_LEVEL))
        self._kept: OrderedDict[str, Vector] = OrderedDict()

    def knows(self, criterion: str) -> bool:
        """Whether the criterion was read lately."""
        return criterion in self._kept

    def compute(self, job: JudgedReply | CriterionText) -> Vector:
        """For `Graded.of`, flat: mechanisms, `genuine`, five shares per criterion; empty for a criterion alone."""
        if isinstance(job, CriterionText):
            self._states_of(job.text)
            return np.empty(0, dtype=np.float32)
        try:
            reading = build_reading(job.context, job.reply, self._tokenizer)
        except ReplyBlank:
            return np.empty(0, dtype=np.float32)
        return self._grade(reading, job.criteria)

    def _grade(self, reading: Reading, criteria: Sequence[str]) -> Vector:
        ids, reply_mask = _row(reading.ids), _row(reading.reply_mask)
        states, summary, mechanisms, genuine = self._read.run(
            ["states", "summary", "mechanisms", "genuine"],
            {
                "input_ids": ids,
                "attention_mask": np.ones_like(ids),
                "reply_mask": reply_mask,
                "surface": np.asarray([reading.surface], dtype=np.float32),
            },
        )
        read = {"states": states, "reply_mask": reply_mask, "summary": summary}
        attempt = 1 / (1 + np.exp(-np.asarray(genuine, dtype=np.float64)))
        rows = [
            _checked(np.exp(np.asarray(mechanisms, dtype=np.float32)).ravel()),
            _checked(attempt.astype(np.float32).ravel()),
        ]
        for text in criteria:
            criterion_states = self._states_of(text)
            if not criterion_states.size:
                rows.append(np.full(LEVEL_COUNT, np.nan, dtype=np.float32))
                continue
            (levels,) = self._level.run(["levels"], {**read, "criterion_states": criterion_states})
            rows.append(_checked(np.asarray(levels, dtype=np.float32).ravel()))
        return np.concatenate(rows)

    def _states_of(self, text: str) -> Vector:
        """[1, tokens, width]; of no size where nothing in the criterion can be read."""
        if text in self._kept:
            self._kept.move_to_end(text)
            return self._kept[text]
        ids = criterion_ids(text, self._tokenizer)
        states: Vector = np.empty(0, dtype=np.float32)
        if len(ids) > _EMPTY_CRITERION_IDS:
            row = _row(ids)
            (states,) = self._criterion.run(["states"], {"input_ids": row, "attention_mask": np.ones_like(row)})
        self._kept[text] = states
        if len(self._kept) > CRITERIA_KEPT:
            self._kept.popitem(last=False)
        return states


def sentence_spans(reply: str) -> tuple[tuple[int, int], ...]:
    """Where the reply's sentences stand, in code points; at most EVIDENCE_SENTENCES, from both ends of a longer one."""
    spans = [found.span() for found in _SENTENCE.finditer(reply)]
    if len(spans) > EVIDENCE_SENTENCES:
        half = EVIDENCE_SENTENCES // 2
        spans = [*spans[:half], *spans[-half:]]
    return tuple(spans)


def without_each(job: JudgedReply, spans: Sequence[tuple[int, int]]) -> list[JudgedReply]:
    """The reply once for every sentence, without it; nothing where it has one sentence only."""
    if len(spans) < 2:
        return []
    return [JudgedReply(job.context, job.reply[:start] + job.reply[end:], job.criteria) for start, end in spans]


def find_evidence(
    whole: Graded, without: Sequence[Graded | None], spans: Sequence[tuple[int, int]]
) -> list[tuple[int, int] | None]:
    """For every criterion the sentence without which its level falls most; None where none of them lowers it."""
    lost = [None if one is None else one.expected() for one in without]
    found: list[tuple[int, int] | None] = []
    for at, level in enumerate(whole.expected()):
        drops = [
            (level - rest, span)
            for levels, span in zip(lost, spans, strict=True)
            if levels is not None and level is not None and (rest := levels[at]) is not None
        ]
        drop, span = max(drops, key=lambda one: one[0], default=(0.0, (0, 0)))
        found.append(span if drop >= EVIDENCE_DROP_MIN else None)
    return found


def _row(numbers: Sequence[int]) -> NDArray[np.int64]:
    return np.asarray([numbers], dtype=np.int64)


def _checked(probabilities: Vector) -> Vector:
    if not np.isfinite(probabilities).all():
        raise JudgeBroken("The judge's network gave a number that is not finite.")
    return probabilities
