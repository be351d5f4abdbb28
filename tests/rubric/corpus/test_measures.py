"""Figures of the corpus, on small texts whose figures one can count."""

from __future__ import annotations

import math

import pytest

from rubric.corpus.measures import (
    empty_cells,
    length_spread,
    near_duplicates,
    pair_figures,
    shared_openings,
    type_token_ratio,
    words_of,
)
from rubric.states import Area, Emotion
from tests.rubric.corpus.conversations import conversation, row, turn


def test_words_keep_their_apostrophes_and_lose_their_capitals() -> None:
    assert words_of("Don’t, she said: 2 times!") == ["don't", "she", "said", "2", "times"]


def test_conversations_that_open_alike_are_named() -> None:
    twin = conversation(id="a-002")
    assert shared_openings([conversation(), twin]) == [("a-001", "a-002")]


def test_the_same_conversation_is_a_near_duplicate_and_another_is_none() -> None:
    twin = conversation(id="a-002")
    other = conversation(
        id="a-003",
        turns=[
            turn(number)
            | {"visitor": f"Something else {number}.", "reply": f"Not the same words at all here {number}."}
            for number in range(6)
        ],
    )
    assert near_duplicates([conversation(), twin, other]) == [("a-001", "a-002", 1.0)]


def test_a_cell_that_nobody_covers_is_named() -> None:
    assert (Emotion.SADNESS, Area.LOW_MOOD) not in empty_cells([row()])
    assert (Emotion.PRIDE, Area.GOOD_NEWS) in empty_cells([row()])
    assert len(empty_cells([])) == 11 * 12 + 3


def test_pairs_are_counted_with_the_share_of_shorter_better_replies() -> None:
    figures = pair_figures([conversation()])
    assert (figures.count, figures.better_is_shorter) == (6, 1.0)
    assert math.isnan(pair_figures([]).better_is_shorter)


def test_types_per_token_of_one_word_repeated_is_one_in_a_window() -> None:
    assert type_token_ratio(["word " * 1_000]) == pytest.approx(1 / 500)
    assert math.isnan(type_token_ratio(["too short"]))


def test_length_spread_counts_words() -> None:
    spread = length_spread(["w " * count for count in range(1, 12)])
    assert (spread.low, spread.median, spread.high) == (2, 6, 10)
    with pytest.raises(ValueError, match="no text"):
        length_spread([])
