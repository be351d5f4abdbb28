"""What `python -m rubric.corpus report` prints: counts, coverage, balance, agreement, near-duplicates."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rubric.corpus.likeness import MAX_COSINE, embed, twins
from rubric.corpus.measures import (
    MAX_JACCARD,
    empty_cells,
    length_spread,
    near_duplicates,
    pair_figures,
    shared_openings,
    type_token_ratio,
)
from rubric.corpus.pairs import agreement_of, all_pairs, read_relabels
from rubric.corpus.records import Conversation, read_corpus, read_matrix

ENCODER_VARIABLE = "RAPPORT_ENCODER_FOLDER"


def report_lines() -> Iterator[str]:
    """The report of the corpus in this checkout."""
    conversations = read_corpus()
    rows = read_matrix()
    if not conversations:
        yield f"No conversation yet; {len(rows)} are planned."
        return
    yield from _counts(conversations, planned=len(rows))
    yield from _coverage(conversations)
    yield from _pairs(conversations)
    yield from _likeness(conversations)


def _counts(conversations: Sequence[Conversation], *, planned: int) -> Iterator[str]:
    turns = sum(len(conversation.turns) for conversation in conversations)
    yield f"conversations {len(conversations)} of {planned} planned, turns {turns}"
    for field in ("author", "split", "manner"):
        yield f"  by {field}: {_tally(Counter(str(getattr(each, field)) for each in conversations))}"
    said = [turn.visitor for conversation in conversations for turn in conversation.turns]
    replies = [turn.reply for conversation in conversations for turn in conversation.turns]
    for name, texts in (("visitor", said), ("reply", replies)):
        spread = length_spread(texts)
        ratio = type_token_ratio(texts)
        lengths = f"{spread.low:g} / {spread.median:g} / {spread.high:g} (10, 50, 90 %)"
        yield f"  words of a {name}: {lengths}; types per token {ratio:.3f}"


def _coverage(conversations: Sequence[Conversation]) -> Iterator[str]:
    empty = empty_cells(conversations)
    yield f"cells of the matrix without a conversation: {len(empty)}"
    for field in ("emotion", "stage", "need", "unstated"):
        turns = [turn for conversation in conversations for turn in conversation.turns]
        yield f"  turns by {field}: {_tally(Counter(str(getattr(turn, field)) for turn in turns))}"


def _pairs(conversations: Sequence[Conversation]) -> Iterator[str]:
    figures = pair_figures(conversations)
    yield f"pairs {figures.count}, the better one shorter in {figures.better_is_shorter:.1%}"
    yield f"  by fault: {_tally(Counter({str(fault): count for fault, count in figures.faults.items()}))}"
    agreement = agreement_of(list(all_pairs(conversations)), read_relabels())
    share = "nobody has read yet" if agreement.share is None else f"{agreement.share:.1%} agree with the author"
    disputed = agreement.read - agreement.agreed
    yield f"  read blind: {agreement.read} ({share}), disputed and dropped {disputed}, unread {agreement.unread}"


def _likeness(conversations: Sequence[Conversation]) -> Iterator[str]:
    yield f"openings that share three words: {len(shared_openings(conversations))}"
    yield f"pairs with a 5-gram Jaccard of {MAX_JACCARD} or more: {len(near_duplicates(conversations))}"
    encoder = os.environ.get(ENCODER_VARIABLE)
    if encoder is None:
        yield f"cosine between conversations: not measured; {ENCODER_VARIABLE} names no encoder export"
        return
    alike = twins(conversations, embed(conversations, encoder=Path(encoder)), over=-1.0)
    over = sum(cosine >= MAX_COSINE for _, _, cosine in alike)
    most = max((cosine for _, _, cosine in alike), default=float("nan"))
    yield f"pairs with a cosine of {MAX_COSINE} or more: {over}; the highest is {most:.3f}"


def _tally(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())
