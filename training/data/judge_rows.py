"""What the encoder judge learns from: turns of the corpus' authors A to C, each with its replies, criteria and levels.

Every reply counts with the levels that its author gave, a good one, a worse one and one that misses alike. A criterion
carries its opposite where the corpus has one, and its share in the turn's reward, so that better and worse can be
compared under the turn's own rubric. Author D is the examiner's and never comes in here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rubric.bank import load_bank
from rubric.bank.criterion import CUE_MARK
from rubric.corpus.opposed import OpposedTalk
from rubric.corpus.pairs import Relabel, agrees, all_pairs
from rubric.corpus.records import Author, Conversation, CorpusTurn, Mechanisms
from rubric.corpus.rubrics import levels_of, rubric_of
from rubric.criteria import Polarity, Rubric
from rubric.serve.readings import context_text

AUTHORS: Final[tuple[Author, ...]] = ("A", "B", "C")


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedReply:
    """A reply, its level per criterion of the turn (in [0, 1]), and its mechanism levels where they are known."""

    text: str
    levels: tuple[float, ...]
    mechanisms: Mechanisms | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedCriterion:
    """A criterion's text, its opposite's where there is one, and by how much its level moves the turn's reward.

    `share` is below zero for what a reply should leave: reward = constant + sum of share * level.
    """

    text: str
    opposite: str | None
    share: float
    names_fault: bool
    is_own: bool = False  # in its author's own words, tied to this conversation


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeTurn:
    """A context with one or two judged replies under one rubric.

    `is_pair`: the first reply is better than the second, which its author and a blind reader both say.
    """

    id: str  # conversation and turn from 1, "a-001.3"
    group: str  # what folds keep together
    visitor: str
    context: str
    criteria: tuple[AskedCriterion, ...]
    replies: tuple[JudgedReply, ...]
    is_pair: bool


def corpus_turns(
    conversations: Iterable[Conversation], *, relabels: Mapping[str, Relabel], opposites: Mapping[str, str]
) -> Iterator[JudgeTurn]:
    """Every turn of authors A to C, in order."""
    ours = [conversation for conversation in conversations if conversation.author in AUTHORS]
    kept = {pair.id for pair in all_pairs(ours) if agrees(pair, relabels)}
    for conversation in ours:
        for index, turn in enumerate(conversation.turns):
            identifier = f"{conversation.id}.{index + 1}"
            yield JudgeTurn(
                id=identifier,
                group=conversation.id,
                visitor=turn.visitor,
                context=context_text(conversation.context_of(index)),
                criteria=asked_criteria(rubric_of(turn), turn=identifier, opposites=opposites),
                replies=_replies(turn),
                is_pair=identifier in kept,
            )


def asked_criteria(rubric: Rubric, *, turn: str, opposites: Mapping[str, str]) -> tuple[AskedCriterion, ...]:
    """The rubric's criteria, in order, with the shares that `rubric.reward` gives them.

    `opposites` are by the bank's ids, and by turn and criterion ("a-001.3.own-1") for an author's own sentences.
    A criterion whose cue is not filled has no opposite: nothing can be put into that either.
    """
    known = load_bank().by_id
    asked = []
    for criterion in rubric:
        among = rubric.criteria_of(criterion.dimension)
        weight = criterion.weight / sum(one.weight for one in among)
        is_avoid = criterion.polarity is Polarity.AVOID
        is_own = criterion.id not in known
        opposite = opposites.get(f"{turn}.{criterion.id}" if is_own else criterion.id)
        asked.append(
            AskedCriterion(
                text=criterion.text,
                opposite=None if opposite is None or CUE_MARK in opposite else opposite,
                share=rubric.weights.of(criterion.dimension) * weight * (-1 if is_avoid else 1),
                names_fault=is_avoid,
                is_own=is_own,
            )
        )
    return tuple(asked)


def opposed_turns(talks: Iterable[OpposedTalk]) -> Iterator[JudgeTurn]:
    """Turns without a rubric: each reply's sentences, both sides of every pair, of which one holds and one does not."""
    for talk in talks:
        yield JudgeTurn(
            id=talk.id,
            group=talk.id,
            visitor=talk.context[-1],
            context=context_text(talk.transcript),
            criteria=tuple(
                AskedCriterion(text=text, opposite=None, share=0.0, names_fault=False)
                for sentence, opposite, _ in talk.criteria
                for text in (sentence, opposite)
            ),
            replies=tuple(
                JudgedReply(text=reply, levels=tuple(_both_levels(talk, number)))
                for number, reply in enumerate(talk.replies)
            ),
            is_pair=False,
        )


def _both_levels(talk: OpposedTalk, reply: int) -> Iterator[float]:
    for _, _, truths in talk.criteria:
        yield from (1.0, 0.0) if truths[reply] == "1" else (0.0, 1.0)


def _replies(turn: CorpusTurn) -> tuple[JudgedReply, ...]:
    found = [JudgedReply(text=turn.reply, levels=_whole(levels_of(turn, "reply")), mechanisms=turn.levels)]
    if turn.worse is not None:
        levels = _whole(levels_of(turn, "worse"))
        found.append(JudgedReply(text=turn.worse.text, levels=levels, mechanisms=turn.worse.levels))
    return tuple(found)


def _whole(levels: Iterable[float | None]) -> tuple[float, ...]:
    """The levels of a reply that is there, all given; the corpus' own check holds that."""
    return tuple(level for level in levels if level is not None)
