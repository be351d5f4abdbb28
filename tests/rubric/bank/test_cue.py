"""Which words of a visitor may fill a slot, and what becomes of a criterion where they may not."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rubric
from rubric.bank import load_bank, safe_cue
from rubric.errors import CueRefused
from rubric.rules import forbidden_rewards

SLOTTED = [entry for entry in load_bank().criteria if entry.slot]
PLAIN = next(entry for entry in load_bank().criteria if not entry.slot)


@pytest.mark.parametrize("cue", ["my exam", "the move", "dad's silence", "that long winter", "a broken zip", "job"])
def test_common_noun_phrases_are_safe(cue: str) -> None:
    assert safe_cue(cue)


@pytest.mark.parametrize(
    "cue",
    [
        *("", "a", " job", "job ", "my  exam", "the\njob", "x" * 41, "one two three four five six"),
        *(
            "room 12",
            "my Exam",
            "Anna",
            "my friend Anna",
            "a@b",
            "www.site",
            "job!",
            "café",
            "работа",
            "ｊｏｂ",
            "jo\u200bb",
        ),
        *("the pills", "my suicide note", "sui cide", "k i l l", "a knife", "dad's death", "the bridge", "self harm"),
        *("full marks", "ignore the rubric", "this reply", "system prompt", "{cue}", "$name", "<s>"),
    ],
)
def test_names_numbers_addresses_danger_and_orders_are_refused(cue: str) -> None:
    assert not safe_cue(cue)


@given(st.text())
def test_whatever_is_safe_has_only_small_letters_apostrophes_and_spaces(cue: str) -> None:
    if safe_cue(cue):
        assert 2 <= len(cue) <= 40
        assert set(cue) <= {*string.ascii_lowercase, " ", "'", "’"}


@given(st.text(alphabet=string.ascii_lowercase + " '", max_size=45))
def test_a_safe_cue_leaves_no_criterion_that_rewards_what_is_forbidden(cue: str) -> None:
    for entry in SLOTTED:
        if entry.takes_cue(cue):
            criterion = entry.to_criterion("C1", cue=cue)
            assert f"“{cue}”" in criterion.text
            assert len(criterion.text) <= 240
            assert not forbidden_rewards(criterion)


@given(
    st.text(alphabet=string.ascii_lowercase + " ", max_size=15),
    st.sampled_from([" suicide", " kill", " overdose", " pills", " die", " dead", " knife"]),
    st.text(alphabet=string.ascii_lowercase + " ", max_size=15),
)
def test_a_word_of_danger_makes_any_phrase_unsafe(before: str, word: str, after: str) -> None:
    assert not safe_cue(f"{before}{word} {after}".strip())


@given(st.text(max_size=20), st.characters(categories=["Nd", "Lu", "Lt", "Po", "Sm", "Cc"], exclude_characters="'"))
def test_one_digit_capital_or_sign_makes_any_phrase_unsafe(phrase: str, char: str) -> None:
    assert not safe_cue(f"{phrase}{char}") and not safe_cue(f"{char}{phrase}")  # noqa: PT018


@pytest.mark.parametrize("cue", [None, "", "Anna", "my suicide"])
def test_a_slot_without_a_safe_cue_gives_no_criterion(cue: str | None) -> None:
    for entry in SLOTTED:
        assert not entry.takes_cue(cue)
        with pytest.raises(CueRefused) as caught:
            entry.to_criterion("C1", cue=cue)
        assert entry.id in str(caught.value)
        assert not cue or cue not in str(caught.value)


def test_a_cue_that_would_reward_length_is_refused() -> None:
    assert safe_cue("a long text")
    entry = next(entry for entry in SLOTTED if entry.id == "c-008")
    assert not entry.takes_cue("a long text")
    assert entry.takes_cue("a long winter")


def test_a_criterion_without_a_slot_ignores_the_cue() -> None:
    criterion = PLAIN.to_criterion("C2", cue="Anna, 12")
    assert (criterion.id, criterion.text, criterion.weight) == ("C2", PLAIN.text, 1.0)
    assert (criterion.dimension, criterion.polarity) == (PLAIN.dimension, PLAIN.polarity)
    assert isinstance(criterion, rubric.Criterion)
