"""Conversations as data: what the workshop trains on and the benchmarks read, one JSON object per line.

An `Episode` was held with a real visitor, a `Rollout` against a simulator; a rollout says which, an episode says whose
split it belongs to. The two are different types so that nothing simulated passes for real. Exports write files of
them, recipes and benchmarks read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from rubric.criteria import Rubric
from rubric.dialogue import Role, Transcript, Utterance
from rubric.errors import EpisodeInvalid, RubricInvalid, ScoreInvalid
from rubric.json_text import JsonRefused, has_surrogate, read_object
from rubric.json_types import JsonObject, JsonValue
from rubric.reward import Reward, reward_of
from rubric.score import Score

SCHEMA = "rapport-episode/1"
MAX_LINE_CHARS = 16_777_216
SPLIT_BUCKETS = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """A visitor's message and the reply to it, with the rubric made before the reply and the score given after.

    `policy` names the version that replied, `reply_id` the row it came from. Raises EpisodeInvalid for a text that
    cannot be written as UTF-8.
    """

    visitor: str
    reply: str
    policy: str | None = None
    reply_id: str | None = None
    rubric: Rubric | None = None
    score: Score | None = None

    def __post_init__(self) -> None:
        if has_surrogate(self.visitor) or has_surrogate(self.reply):
            raise EpisodeInvalid(reason="a lone surrogate in a text")

    @property
    def reward(self) -> Reward | None:
        """The reward under the turn's own rubric; None where rubric or score is missing, or a dimension is ungraded."""
        if self.rubric is None or self.score is None:
            return None
        return reward_of(self.score, self.rubric)


@dataclass(frozen=True, kw_only=True, slots=True)
class Episode:
    """A conversation with a real visitor. `split_bucket`, 0 to 99, is the visitor's: splits never cut between turns."""

    conversation_id: str
    visitor_key: str  # salted hash; all episodes of a visitor share it
    split_bucket: int
    turns: tuple[Turn, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.split_bucket < SPLIT_BUCKETS:
            raise EpisodeInvalid(reason=f"split_bucket must lie between 0 and {SPLIT_BUCKETS - 1}")

    def context_of(self, index: int) -> Transcript:
        """What a rubric of the turn may see: everything up to and with its visitor's message, without its reply."""
        return context_before_reply(self.turns, index)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollout:
    """A conversation with a simulator; it never trains as a visitor's. `group_key` is what splits keep together."""

    rollout_id: str
    simulator: str
    group_key: str
    seed: int
    turns: tuple[Turn, ...]

    def context_of(self, index: int) -> Transcript:
        """What a rubric of the turn may see: everything up to and with its visitor's message, without its reply."""
        return context_before_reply(self.turns, index)


Conversation: TypeAlias = Episode | Rollout


class SaidTurn(Protocol):
    """A visitor's message and the reply to it, of whatever record."""

    @property
    def visitor(self) -> str:
        """What the visitor wrote."""

    @property
    def reply(self) -> str:
        """What was answered."""


def context_before_reply(turns: Sequence[SaidTurn], index: int) -> Transcript:
    """The transcript up to and with the visitor's message of turn `index`. Raises IndexError for no such turn."""
    if not 0 <= index < len(turns):
        raise IndexError(f"turn {index} of {len(turns)}")
    said: list[Utterance] = []
    for turn in turns[:index]:
        said += [Utterance(Role.USER, turn.visitor), Utterance(Role.ASSISTANT, turn.reply)]
    return Transcript((*said, Utterance(Role.USER, turns[index].visitor)))


def to_line(conversation: Conversation) -> str:
    """One line of an episode file, without its line end; ASCII, so that no reader finds a line end inside it."""
    fields: JsonObject = {"schema": SCHEMA, "kind": _kind_of(conversation)}
    if isinstance(conversation, Episode):
        fields |= {
            "conversation_id": conversation.conversation_id,
            "visitor_key": conversation.visitor_key,
            "split_bucket": conversation.split_bucket,
        }
    else:
        fields |= {
            "rollout_id": conversation.rollout_id,
            "simulator": conversation.simulator,
            "group_key": conversation.group_key,
            "seed": conversation.seed,
        }
    fields["turns"] = [_turn_json(turn) for turn in conversation.turns]
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def from_line(line: str) -> Conversation:
    """Read what `to_line` wrote. Raises EpisodeInvalid for anything else."""
    try:
        fields = read_object(line, max_chars=MAX_LINE_CHARS)
    except JsonRefused as error:
        raise EpisodeInvalid(reason=f"JSON: {error}") from error
    if fields.get("schema") != SCHEMA:
        raise EpisodeInvalid(reason=f"schema must be {SCHEMA}")
    turns = tuple(_read_turn(row) for row in _rows(fields.get("turns")))
    if fields.get("kind") == "episode":
        return Episode(
            conversation_id=_text(fields, "conversation_id"),
            visitor_key=_text(fields, "visitor_key"),
            split_bucket=_whole(fields, "split_bucket"),
            turns=turns,
        )
    if fields.get("kind") == "rollout":
        return Rollout(
            rollout_id=_text(fields, "rollout_id"),
            simulator=_text(fields, "simulator"),
            group_key=_text(fields, "group_key"),
            seed=_whole(fields, "seed"),
            turns=turns,
        )
    raise EpisodeInvalid(reason="kind must be episode or rollout")


def read_episodes(lines: Iterable[str]) -> Iterator[Conversation]:
    """Read an open file line by line; blank lines are passed over. Raises EpisodeInvalid with the line's number."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield from_line(line)
        except EpisodeInvalid as error:
            raise EpisodeInvalid(reason=f"line {number}: {error.reason}") from error


def _kind_of(conversation: Conversation) -> Literal["episode", "rollout"]:
    return "episode" if isinstance(conversation, Episode) else "rollout"


def _turn_json(turn: Turn) -> JsonObject:
    return {
        "visitor": turn.visitor,
        "reply": turn.reply,
        "policy": turn.policy,
        "reply_id": turn.reply_id,
        "rubric": turn.rubric.to_json() if turn.rubric else None,
        "score": turn.score.to_json() if turn.score else None,
    }


def _read_turn(row: JsonValue) -> Turn:
    if not isinstance(row, dict):
        raise EpisodeInvalid(reason="a turn is no object")
    rubric, score = row.get("rubric"), row.get("score")
    try:
        return Turn(
            visitor=_text(row, "visitor"),
            reply=_text(row, "reply"),
            policy=_optional_text(row, "policy"),
            reply_id=_optional_text(row, "reply_id"),
            rubric=None if rubric is None else Rubric.from_json(_object(rubric, name="rubric")),
            score=None if score is None else Score.from_json(_object(score, name="score")),
        )
    except RubricInvalid as error:
        raise EpisodeInvalid(reason=f"a turn's rubric has {len(error.problems)} problems") from error
    except ScoreInvalid as error:
        raise EpisodeInvalid(reason="a turn's score cannot be read") from error


def _rows(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list):
        raise EpisodeInvalid(reason="turns must be a list")
    return value


def _object(value: JsonValue, *, name: str) -> JsonObject:
    if not isinstance(value, dict):
        raise EpisodeInvalid(reason=f"a turn's {name} is no object")
    return value


def _text(fields: JsonObject, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise EpisodeInvalid(reason=f"{name} must be a text")
    return value


def _optional_text(fields: JsonObject, name: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name)


def _whole(fields: JsonObject, name: str) -> int:
    value = fields.get(name)
    if type(value) is not int:
        raise EpisodeInvalid(reason=f"{name} must be a whole number")
    return value
