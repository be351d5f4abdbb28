"""Our own text as records like those of the public data sets: the corpus, and files of episodes or rollouts.

Both have readers of their own (`rubric.corpus.records`, `rubric.episode`) which recipes may use directly; here they get
what every data set has: id, group, whole files only, and a manifest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rubric import Episode, EpisodeInvalid, Rollout, from_line
from rubric.corpus.records import CONVERSATIONS, Conversation
from training.data.reading import DataFileInvalid, Loader, Row, jsonl_rows, open_text
from training.data.sources import Source, Use

OWN_CORPUS = Source(
    name="own_corpus",
    licence="Apache-2.0",
    use=Use.SHIP,
    files=tuple(path.name for path in sorted(CONVERSATIONS.glob("*.jsonl"))),
)


@dataclass(frozen=True, slots=True)
class OwnConversation:
    """A conversation of the corpus."""

    conversation: Conversation

    @property
    def id(self) -> str:
        """The conversation's."""
        return self.conversation.id

    @property
    def group(self) -> str:
        """The person who writes."""
        return self.conversation.profile.id


@dataclass(frozen=True, slots=True)
class OwnEpisode:
    """A line of an episode file."""

    episode: Episode | Rollout

    @property
    def id(self) -> str:
        """The conversation's or the rollout's."""
        return self.episode.conversation_id if isinstance(self.episode, Episode) else self.episode.rollout_id

    @property
    def group(self) -> str:
        """The visitor, or what the simulator keeps together: splits never cut through it."""
        return self.episode.visitor_key if isinstance(self.episode, Episode) else self.episode.group_key


def _corpus_record(row: Row, _number: int) -> OwnConversation:
    return OwnConversation(Conversation.model_validate(row))


def _episode_rows(path: Path) -> Iterator[Row]:
    with open_text(path) as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                try:
                    yield {"episode": from_line(line)}
                except EpisodeInvalid as error:
                    raise DataFileInvalid(path=path, row=number, reason=error.reason) from error


def _episode_record(row: Row, _number: int) -> OwnEpisode:
    episode = row["episode"]
    assert isinstance(episode, Episode | Rollout)  # noqa: S101 - `_episode_rows` yields nothing else
    return OwnEpisode(episode)


CORPUS = Loader(rows=jsonl_rows, record=_corpus_record)
EPISODES = Loader(rows=_episode_rows, record=_episode_record)
