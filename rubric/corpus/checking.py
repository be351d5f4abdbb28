"""What must be true of a file of conversations before it joins the corpus: `python -m rubric.corpus check FILE...`.

Problems are sentences for the author, by conversation and turn; a text is never repeated in them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from rubric.corpus.measures import pair_figures, repeated_replies, shared_openings, word_runs, words_of
from rubric.corpus.records import Conversation, CorpusInvalid, MatrixRow, read_conversations

MIN_PAIRS_OF_CONVERSATION = 5
SHORTER_SHARE = (0.4, 0.6)
MAX_REPLY_WORDS = 110
LEAK_WORDS = 12  # domain.md 1.3: a criterion with so many neighbouring words of the reply was copied from it


def check_files(paths: Sequence[Path], *, rows: Mapping[str, MatrixRow], bank_ids: Collection[str]) -> list[str]:
    """Every problem of these files, those between them too."""
    problems: list[str] = []
    conversations: list[Conversation] = []
    for path in paths:
        try:
            conversations += read_conversations(path)
        except CorpusInvalid as error:
            problems.append(str(error))
    for conversation in conversations:
        problems += _plan_problems(conversation, row=rows.get(conversation.id))
        problems += _turn_problems(conversation, bank_ids=bank_ids)
    problems += [f"{one} and {other} open with the same three words." for one, other in shared_openings(conversations)]
    problems += [f"{identifier} repeats a reply to the letter." for identifier in repeated_replies(conversations)]
    problems += _balance_problems(conversations)
    return problems


def _plan_problems(conversation: Conversation, *, row: MatrixRow | None) -> Iterator[str]:
    if row is None:
        yield f"{conversation.id} is not in the matrix."
        return
    for field in ("author", "split", "emotion", "area", "manner"):
        if getattr(conversation, field) != getattr(row, field):
            yield f"{conversation.id}: {field} differs from the matrix."
    if bool(conversation.missed) is not row.has_repair:
        yield f"{conversation.id}: a repair is {'missing' if row.has_repair else 'not planned'}."
    if len(conversation.turns) != row.turns:
        yield f"{conversation.id}: {len(conversation.turns)} turns, the matrix says {row.turns}."
    if conversation.profile.id != f"p-{conversation.id}":
        yield f"{conversation.id}: the profile's id must be p-{conversation.id}."
    pairs = sum(turn.worse is not None for turn in conversation.turns)
    if pairs < MIN_PAIRS_OF_CONVERSATION:
        yield f"{conversation.id}: {pairs} turns have a worse reply; at least {MIN_PAIRS_OF_CONVERSATION} are wanted."


def _turn_problems(conversation: Conversation, *, bank_ids: Collection[str]) -> Iterator[str]:
    for number, turn in enumerate(conversation.turns, start=1):
        where = f"{conversation.id}, turn {number}"
        unknown = sorted(identifier for identifier in turn.criteria if identifier not in bank_ids)
        if unknown:
            yield f"{where}: not in the bank: {', '.join(unknown)}."
        if len(words_of(turn.reply)) > MAX_REPLY_WORDS:
            yield f"{where}: the reply is over {MAX_REPLY_WORDS} words."
        if turn.worse and words_of(turn.worse.text) == words_of(turn.reply):
            yield f"{where}: the worse reply is the reply."
        if any(_shares_run(own.text, turn.reply) for own in turn.own):
            yield f"{where}: an own criterion copies the reply."


def _shares_run(one: str, other: str) -> bool:
    runs = set(word_runs(other, length=LEAK_WORDS))
    return any(run in runs for run in word_runs(one, length=LEAK_WORDS))


def _balance_problems(conversations: Sequence[Conversation]) -> Iterator[str]:
    figures = pair_figures(conversations)
    low, high = SHORTER_SHARE
    if figures.count and not low <= figures.better_is_shorter <= high:
        share = f"{figures.better_is_shorter:.0%} of {figures.count} pairs"
        yield f"In {share} the better reply is the shorter; between {low:.0%} and {high:.0%} is wanted."
