"""Pairs of a better and a worse reply, and what somebody who wrote none of them thinks, blind.

`sheet_lines` prints every pair with the two replies as X and Y, in an order that only the pair's id decides. The
reader's choices come back as lines of `relabels.jsonl`. Pairs on which reader and author differ are disputed and
dropped; a pair that was changed after it was read counts as unread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rubric.corpus.records import FOLDER, Conversation, CorpusInvalid, CorpusTurn, Record, Worse, read_lines
from rubric.dialogue import Role, Transcript

RELABELS = FOLDER / "relabels.jsonl"
MIN_AGREEMENT = 0.8
UTTERANCES_ON_THE_SHEET = 6
Choice = Literal["X", "Y"]


class Relabel(Record):
    """A blind reader's choice for one pair; `mark` says of which text."""

    pair: str
    mark: str
    choice: Choice
    reader: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusPair:
    """Two replies to one context; its author found `turn.reply` better than `worse`."""

    id: str  # conversation and turn from 1, "a-001.3"
    conversation: Conversation
    context: Transcript
    turn: CorpusTurn
    worse: Worse

    @property
    def better_is(self) -> Choice:
        """Under which letter the sheet shows the better reply."""
        return "X" if hashlib.sha256(f"sheet\n{self.id}".encode()).digest()[0] % 2 else "Y"

    @property
    def mark(self) -> str:
        """Eight hex digits of both replies and the message they answer: another text has another mark."""
        texts = (self.turn.visitor, self.turn.reply, self.worse.text)
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:8]

    @property
    def shown(self) -> tuple[str, str]:
        """The replies as the sheet shows them: X, Y."""
        better, worse = self.turn.reply, self.worse.text
        return (better, worse) if self.better_is == "X" else (worse, better)


def all_pairs(conversations: Iterable[Conversation]) -> Iterator[CorpusPair]:
    """Every pair as written, disputed or not."""
    for conversation in conversations:
        for index, turn in enumerate(conversation.turns):
            if turn.worse is not None:
                yield CorpusPair(
                    id=f"{conversation.id}.{index + 1}",
                    conversation=conversation,
                    context=conversation.context_of(index),
                    turn=turn,
                    worse=turn.worse,
                )


def read_relabels(path: Path = RELABELS) -> Mapping[str, Relabel]:
    """The choices by pair; nothing where nobody has read yet. Raises CorpusInvalid, also for a pair given twice."""
    relabels: dict[str, Relabel] = {}
    for number, relabel in enumerate(read_lines(path, kind=Relabel) if path.is_file() else (), start=1):
        if relabel.pair in relabels:
            raise CorpusInvalid(path=path, line=number, reason=f"{relabel.pair} stands further up already")
        relabels[relabel.pair] = relabel
    return relabels


def kept_pairs(conversations: Iterable[Conversation], *, relabels: Mapping[str, Relabel]) -> list[CorpusPair]:
    """The pairs that reader and author agree on: what trains and measures."""
    return [pair for pair in all_pairs(conversations) if agrees(pair, relabels)]


def agrees(pair: CorpusPair, relabels: Mapping[str, Relabel]) -> bool | None:
    """Whether the blind reader chose the author's better reply; None where nobody has read this text."""
    relabel = relabels.get(pair.id)
    return relabel.choice == pair.better_is if relabel and relabel.mark == pair.mark else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """How often blind readers chose as the author did."""

    read: int
    agreed: int
    unread: int

    @property
    def share(self) -> float | None:
        """In [0, 1]; None before anything was read."""
        return self.agreed / self.read if self.read else None


def agreement_of(pairs: Sequence[CorpusPair], relabels: Mapping[str, Relabel]) -> Agreement:
    """Counts over these pairs."""
    verdicts = [agrees(pair, relabels) for pair in pairs]
    unread = verdicts.count(None)
    return Agreement(read=len(pairs) - unread, agreed=verdicts.count(True), unread=unread)


def sheet_lines(pairs: Sequence[CorpusPair]) -> Iterator[str]:
    """The blind sheet: the newest utterances of each context, X and Y; no label, fault or rubric.

    All first turns come first, shuffled, then all second turns: whoever reads it once from top to bottom meets a
    better reply inside a later context only after choosing.
    """
    names = {Role.USER: "VISITOR", Role.ASSISTANT: "REPLY"}
    for pair in sorted(pairs, key=_place_on_the_sheet):
        yield f"=== {pair.id} {pair.mark}"
        for said in pair.context.utterances[-UTTERANCES_ON_THE_SHEET:]:
            yield f"{names[said.role]}: {said.text}"
        first, second = pair.shown
        yield f"X: {first}"
        yield f"Y: {second}"


def _place_on_the_sheet(pair: CorpusPair) -> tuple[int, bytes]:
    return len(pair.context), hashlib.sha256(f"order\n{pair.id}".encode()).digest()
