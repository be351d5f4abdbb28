"""Episode files: whatever was written is read back equal, and one line is one conversation."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.dialogue import Transcript
from rubric.episode import Episode, Rollout, Turn, from_line, read_episodes, to_line
from rubric.errors import EpisodeInvalid
from rubric.fallback import fallback_rubric
from tests.rubric.rubrics import golden_rubric, graded, score_of

GOLDEN = score_of({"C1": 1.0, "C2": 0.5, "A1": 0.75, "A2": 0.25, "P1": 0.0, "P2": 1.0})
FIRST = Turn(visitor="hi", reply="hello", policy="policy-000000000000", reply_id="m1")
SECOND = Turn(visitor="nobody spoke to me", reply="That stings.", rubric=golden_rubric(), score=GOLDEN)
EPISODE = Episode(conversation_id="c1", visitor_key="v1", split_bucket=42, turns=(FIRST, SECOND))
ROLLOUT = Rollout(rollout_id="r1", simulator="simulator-1", group_key="profile-17", seed=3, turns=(SECOND,))

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]))


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    rubric, levels = draw(graded())
    chosen = draw(st.sampled_from([None, rubric, fallback_rubric("invalid")]))
    score = score_of(levels) if chosen is rubric and draw(st.booleans()) else None
    return Turn(
        visitor=draw(texts),
        reply=draw(texts),
        policy=draw(st.none() | texts),
        reply_id=draw(st.none() | texts),
        rubric=chosen,
        score=score,
    )


@given(st.lists(turns(), max_size=3), texts, st.integers(0, 99))
def test_an_episode_is_read_back_equal_from_one_line(made: list[Turn], name: str, bucket: int) -> None:
    episode = Episode(conversation_id=name, visitor_key=name, split_bucket=bucket, turns=tuple(made))
    line = to_line(episode)
    assert line.splitlines() == [line]
    assert from_line(line) == episode


@given(st.lists(turns(), max_size=3), texts, st.integers())
def test_a_rollout_is_read_back_as_a_rollout(made: list[Turn], name: str, seed: int) -> None:
    rollout = Rollout(rollout_id=name, simulator=name, group_key=name, seed=seed, turns=tuple(made))
    assert from_line(to_line(rollout)) == rollout


def test_the_context_of_a_turn_ends_before_its_reply() -> None:
    assert EPISODE.context_of(0) == Transcript.of(("user", "hi"))
    assert EPISODE.context_of(1) == Transcript.of(
        ("user", "hi"), ("assistant", "hello"), ("user", "nobody spoke to me")
    )
    for index in (-1, 2):
        with pytest.raises(IndexError):
            EPISODE.context_of(index)


def test_a_turn_knows_its_reward_or_that_there_is_none() -> None:
    assert FIRST.reward is None
    assert SECOND.reward is not None
    assert SECOND.reward.value == pytest.approx(0.70, abs=1e-9)


def test_a_file_is_read_line_by_line_past_blank_lines_and_odd_line_ends() -> None:
    odd = Turn(visitor="a\u2028b\u0085c\nd", reply="e")
    third = Episode(conversation_id="c3", visitor_key="v3", split_bucket=0, turns=(odd,))
    file = io.StringIO(f"{to_line(EPISODE)}\n\n{to_line(ROLLOUT)}\n{to_line(third)}\n")
    assert list(read_episodes(file)) == [EPISODE, ROLLOUT, third]


def test_a_damaged_line_is_named_by_its_number_and_not_quoted() -> None:
    with pytest.raises(EpisodeInvalid, match="line 2") as caught:
        list(read_episodes([to_line(EPISODE), to_line(ROLLOUT)[:-20]]))
    assert "nobody spoke" not in str(caught.value)


@pytest.mark.parametrize("text", ["\ud83d", "ok \udc00"])
def test_a_text_that_no_file_can_hold_makes_no_turn(text: str) -> None:
    with pytest.raises(EpisodeInvalid):
        Turn(visitor=text, reply="ok")
    with pytest.raises(EpisodeInvalid):
        Turn(visitor="ok", reply=text)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["schema"], "rapport-episode/0"),
        (["kind"], "dream"),
        (["conversation_id"], 5),
        (["split_bucket"], 100),
        (["split_bucket"], True),
        (["turns"], {}),
        (["turns", 1], "x"),
        (["turns", 1, "reply"], None),
        (["turns", 1, "rubric"], []),
        (["turns", 1, "rubric", "weights", "cognitive"], 0.9),
        (["turns", 1, "score", "judgements", 0, "level"], 1.5),
        (["turns", 1, "score", "judgements", 0, "level"], None),
        (["turns", 1, "score", "judgements", 0, "evidence"], [3, 1]),
        (["turns", 1, "score", "judgements", 0, "evidence"], [1]),
        (["turns", 1, "score", "judgements", 0], 7),
        (["turns", 1, "score", "attempts"], 1.5),
        (["turns", 1, "score", "latency_ms"], "slow"),
    ],
)
def test_an_episode_with_a_wrong_part_is_refused(path: list[Any], value: Any) -> None:
    fields = json.loads(to_line(EPISODE))
    node = fields
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    with pytest.raises(EpisodeInvalid):
        from_line(json.dumps(fields))
