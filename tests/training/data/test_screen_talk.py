"""Messages of the corpus as harmless lines of the screen: one split, whole conversations as families, none too dark."""

from __future__ import annotations

from tests.rubric.corpus.conversations import conversation, turn
from training.data.screen_talk import talk_lines


def test_messages_of_the_split_become_harmless_lines_of_one_family() -> None:
    lines = list(talk_lines([conversation(), conversation(id="a-002", split="dev")], split="train"))
    assert [line.id for line in lines] == [f"talk-a-001.{number}" for number in range(1, 7)]
    assert {(line.label, line.family, line.author, line.direction) for line in lines} == {
        ("none", "talk-a-001", "talk-A", "visitor")
    }
    assert lines[0].text == conversation().turns[0].visitor


def test_the_darkest_messages_are_left_out() -> None:
    turns = [turn(number) for number in range(6)]
    turns[1] |= {"emotion": "depression", "intensity": 0.6}
    turns[2] |= {"emotion": "depression", "intensity": 0.5}
    lines = list(talk_lines([conversation(turns=turns)], split="train"))
    assert [line.id for line in lines] == [f"talk-a-001.{number}" for number in (1, 3, 4, 5, 6)]
