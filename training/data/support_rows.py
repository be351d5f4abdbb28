"""Turn-level supervision from ESConv: what human supporters did next, as one of three dimensions.

One row per supporter utterance that directly follows a seeker's; `Others` is dropped (it still counts as a strategy
before). Stage goes by how many replies came before, never by the final length, which leaks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rubric import Dimension, Role, Stage, Transcript, Utterance
from rubric.corpus.records import SupportStrategy
from training.data.esconv import SupportConversation, SupportUtterance

# Replies before this one from which a stage begins.
STAGE_BEGINS = ((Stage.CLOSING, 12), (Stage.WORKING, 6), (Stage.EXPLORATION, 2), (Stage.OPENING, 0))


@dataclass(frozen=True, kw_only=True, slots=True)
class SupportRow:
    """A context and the dimension that the supporter's next utterance serves."""

    conversation: str
    utterance: int  # index of the supporter's utterance in the conversation
    replies_before: int
    stage: Stage
    previous: tuple[SupportStrategy, ...]  # the supporter's strategies so far, oldest first
    context: Transcript  # neighbouring utterances of one person joined; ends with the seeker's
    strategy: SupportStrategy
    dimension: Dimension


def stage_of(replies_before: int) -> Stage:
    """The stage of a conversation in which so many replies were given."""
    return next(stage for stage, begins in STAGE_BEGINS if replies_before >= begins)


def support_rows(conversation: SupportConversation) -> Iterator[SupportRow]:
    """The rows of one conversation, in order."""
    previous: list[SupportStrategy] = []
    replies_before = 0
    said = conversation.utterances
    for index, utterance in enumerate(said):
        if utterance.strategy is None:
            continue
        if index > 0 and said[index - 1].speaker == "seeker":
            if utterance.strategy.dimension is not None:
                yield SupportRow(
                    conversation=conversation.id,
                    utterance=index,
                    replies_before=replies_before,
                    stage=stage_of(replies_before),
                    previous=tuple(previous),
                    context=transcript_of(said[:index]),
                    strategy=utterance.strategy,
                    dimension=utterance.strategy.dimension,
                )
            replies_before += 1
        previous.append(utterance.strategy)


def transcript_of(said: tuple[SupportUtterance, ...]) -> Transcript:
    """The utterances as a transcript; what one person wrote in a row becomes one."""
    roles = {"seeker": Role.USER, "supporter": Role.ASSISTANT}
    return Transcript(tuple(Utterance(roles[each.speaker], each.text.strip()) for each in said)).merged()
