"""Cleaning undoes what hides words and leaves plain text alone; windows cover every token."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from rubric.serve.texts import CONTENT_TOKENS, clean, embedding_windows, open_tokenizer, screening_windows
from training.recipes.minilm import package_folder


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return open_tokenizer(Path(package_folder()) / "tokenizer.json")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("su1c1de", "suicide"),
        ("k!ll my$elf", "kill myself"),
        ("d.i.e tonight", "d.i.e tonight"),
        ("d.e.a.d tonight", "dead tonight"),
        ("I want to d i s a p p e a r now", "I want to disappear now"),
        ("sooooo tired", "soo tired"),
        ("ki\u200bll", "kill"),
        ("\uff44\uff49\uff45", "die"),
        ("a\n\n  b\tc", "a b c"),
        ("lone \ud800 half", "lone \ufffd half"),
    ],
)
def test_what_hides_a_word_is_undone(written: str, read: str) -> None:
    assert clean(written) == read


@pytest.mark.parametrize(
    "plain", ["the 3rd of May at 10pm", "B12 and covid19", "I am fine, thanks!", "mail me at 5", "a b c", "it's 2am"]
)
def test_plain_text_stays_as_it_is(plain: str) -> None:
    assert clean(plain) == plain


@given(st.text())
def test_cleaning_never_fails_and_is_stable_for_the_encoder(text: str) -> None:
    assert "\n" not in clean(text)
    clean(text).encode("utf-8")


def test_a_short_text_is_one_window(tokenizer: Tokenizer) -> None:
    (window,) = screening_windows("hello there", tokenizer)
    assert len(window.ids) == 4


def test_an_empty_text_is_one_window_of_two_markers(tokenizer: Tokenizer) -> None:
    (window,) = screening_windows("", tokenizer)
    assert len(window.ids) == 2


@settings(max_examples=25)
@given(words=st.integers(min_value=1, max_value=900))
def test_windows_cover_every_token_in_order_and_stay_short(tokenizer: Tokenizer, words: int) -> None:
    text = " ".join(f"word{number % 97}" if number % 7 else "and" for number in range(words))
    whole = tokenizer.encode(clean(text)).ids[1:-1]
    windows = screening_windows(text, tokenizer)
    covered = list(windows[0].ids[1:-1])
    for window in windows[1:]:
        covered += window.ids[1:-1][32:]
    assert covered == whole
    assert all(len(window.ids) <= CONTENT_TOKENS + 2 for window in windows)


def test_embedding_windows_lie_side_by_side(tokenizer: Tokenizer) -> None:
    windows = embedding_windows("and " * 600, tokenizer)
    assert [len(window.ids) for window in windows] == [256, 256, 94]
