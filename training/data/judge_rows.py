"""What the encoder judge learns from: turns of the corpus' authors A to C, each with its replies, criteria and levels.

Every reply counts with the levels that its author gave, a good one, a worse one and one that misses alike. A criterion
carries its opposite where the corpus has one, and its share in the turn's reward, so that better and worse can be
compared under the turn's own rubric. Author D is the examiner's and never comes in here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rubric.bank import load_bank
from rubric.bank.criterion import CUE_MARK
from rubric.corpus.pairs import Relabel, agrees, all_pairs
from rubric.corpus.records import FOLDER, Author, Conversation, CorpusTurn, Mechanisms, read_lines
from rubric.corpus.rubrics import levels_of, rubric_of
from rubric.criteria import Polarity, Rubric
from rubric.serve.readings import context_text
from training.data.judge_probes import OpposedCriteria

AUTHORS: Final[tuple[Author, ...]] = ("A", "B", "C")
OPPOSED: Final = FOLDER / "opposed_train.jsonl"


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
                criteria=asked_criteria(rubric_of(turn), opposites=opposites),
                replies=_replies(turn),
                is_pair=identifier in kept,
            )


def asked_criteria(rubric: Rubric, *, opposites: Mapping[str, str]) -> tuple[AskedCriterion, ...]:
    """The rubric's criteria, in order, with the shares that `rubric.reward` gives them.

    A criterion whose cue is not filled has no opposite: nothing can be put into that either.
    """
    known = load_bank().by_id
    asked = []
    for criterion in rubric:
        among = rubric.criteria_of(criterion.dimension)
        weight = criterion.weight / sum(one.weight for one in among)
        is_avoid = criterion.polarity is Polarity.AVOID
        opposite = opposites.get(criterion.id) if criterion.id in known else None
        asked.append(
            AskedCriterion(
                text=criterion.text,
                opposite=None if opposite is None or CUE_MARK in opposite else opposite,
                share=rubric.weights.of(criterion.dimension) * weight * (-1 if is_avoid else 1),
                names_fault=is_avoid,
                is_own=criterion.id not in known,
            )
        )
    return tuple(asked)


def opposed_turns(lines: Sequence[OpposedCriteria]) -> Iterator[JudgeTurn]:
    """Turns without a rubric: each reply's sentences, of which one holds and the other does not."""
    by_reply: dict[tuple[tuple[str, ...], str], list[OpposedCriteria]] = {}
    for line in lines:
        by_reply.setdefault((line.context, line.reply), []).append(line)
    for (said, reply), together in by_reply.items():
        yield JudgeTurn(
            id=together[0].id,
            group=together[0].id,
            visitor=said[-1],
            context=context_text(together[0].transcript),
            criteria=tuple(
                AskedCriterion(text=one.criterion, opposite=one.opposite, share=0.0, names_fault=False)
                for one in together
            ),
            replies=(JudgedReply(text=reply, levels=tuple(float(one.true == "criterion") for one in together)),),
            is_pair=False,
        )


def read_opposed(path: Path = OPPOSED) -> tuple[OpposedCriteria, ...]:
    """Every line. Raises CorpusInvalid."""
    return tuple(read_lines(path, kind=OpposedCriteria))


def _replies(turn: CorpusTurn) -> tuple[JudgedReply, ...]:
    found = [JudgedReply(text=turn.reply, levels=_whole(levels_of(turn, "reply")), mechanisms=turn.levels)]
    if turn.worse is not None:
        levels = _whole(levels_of(turn, "worse"))
        found.append(JudgedReply(text=turn.worse.text, levels=levels, mechanisms=turn.worse.levels))
    return tuple(found)


def _whole(levels: Iterable[float | None]) -> tuple[float, ...]:
    """The levels of a reply that is there, all given; the corpus' own check holds that."""
    return tuple(level for level in levels if level is not None)
