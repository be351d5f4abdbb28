"""What visitors of the corpus say, as harmless lines of the crisis screen: it must leave ordinary trouble alone.

The corpus stays short of danger by its brief; the darkest messages are left out all the same, since one hand wrote them
and nobody labelled them for the screen. Only the train split: dev and test measure how often a card comes up in vain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rubric.corpus.records import Conversation, CorpusTurn, Split
from rubric.states import Emotion
from training.data.screen_lines import ScreenLine

TOO_DARK_FROM = 0.6  # intensity, of a message whose feeling is depression


def talk_lines(conversations: Iterable[Conversation], *, split: Split) -> Iterator[ScreenLine]:
    """A line labelled none per message of that split, without the darkest; a conversation is one family."""
    for conversation in conversations:
        if conversation.split != split:
            continue
        for number, turn in enumerate(conversation.turns, start=1):
            if not is_too_dark(turn):
                yield ScreenLine(
                    id=f"talk-{conversation.id}.{number}",
                    label="none",
                    family=f"talk-{conversation.id}",
                    text=turn.visitor,
                    author=f"talk-{conversation.author}",
                    direction="visitor",
                )


def is_too_dark(turn: CorpusTurn) -> bool:
    """Whether a card might be right here."""
    return turn.emotion is Emotion.DEPRESSION and turn.intensity >= TOO_DARK_FROM
