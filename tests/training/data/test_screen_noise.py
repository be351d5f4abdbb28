"""Noise changes the form of a line, never empties it, and is repeated exactly by the same dice."""

import random

from hypothesis import given
from hypothesis import strategies as st

from training.data.screen_noise import Noise, mistyped, slip, varied

EVERYTHING = Noise(lower=1, no_marks=1, slips=1, joined=1)
NOTHING = Noise(lower=0, no_marks=0, slips=0, joined=0)


@given(st.text(alphabet=st.characters(categories=["L"]), min_size=3, max_size=12), st.integers())
def test_a_slip_changes_at_most_one_letters_worth(word: str, seed: int) -> None:
    assert abs(len(slip(word, dice=random.Random(seed))) - len(word)) <= 1


def test_words_of_two_letters_stay() -> None:
    assert slip("my", dice=random.Random(1)) == "my"


def test_without_noise_a_text_stays_as_it_is() -> None:
    assert varied("As it IS!", company=["other"], noise=NOTHING, dice=random.Random(1)) == "As it IS!"


def test_small_letters_and_no_marks() -> None:
    noise = Noise(lower=1, no_marks=1, slips=0, joined=0)
    assert mistyped("Don't. Stop, NOW!", noise=noise, dice=random.Random(1)) == "dont stop now"


def test_company_is_joined_by_line_breaks_and_the_line_stays_in() -> None:
    noise = Noise(lower=0, no_marks=0, slips=0, joined=1)
    for seed in range(20):
        parts = varied("own", company=["other"], noise=noise, dice=random.Random(seed)).split("\n")
        assert parts.count("own") == 1
        assert 2 <= len(parts) <= 4


def test_a_line_without_company_is_not_joined() -> None:
    assert "\n" not in varied("own words here", company=[], noise=EVERYTHING, dice=random.Random(1))


@given(st.text(min_size=1, max_size=60), st.integers())
def test_the_same_dice_give_the_same_text(text: str, seed: int) -> None:
    first = varied(text, company=["a b c"], noise=EVERYTHING, dice=random.Random(seed))
    assert first == varied(text, company=["a b c"], noise=EVERYTHING, dice=random.Random(seed))
