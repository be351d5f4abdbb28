"""The hold-back: nothing is released that was not passed, nothing is lost, and nothing waits longer than it may."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat import spans
from chat.spans import SPAN_SECONDS, SPAN_TOKENS, SpanBuffer


def filled(*pieces: str, now_s: float = 0.0) -> SpanBuffer:
    buffer = SpanBuffer()
    for piece in pieces:
        buffer.add(piece, tokens=1, now_s=now_s)
    return buffer


def test_nothing_is_due_before_a_sentence_ends() -> None:
    assert filled("I ", "hear ", "you").due(now_s=0.1) == ""


ENDS = {
    "full stop": ("I hear you. That", "I hear you."),
    "question": ("Is it hard? Tell", "Is it hard?"),
    "exclamation": ("Go on! I", "Go on!"),
    "ellipsis": ("Well… I", "Well…"),
    "closing quote": ('She said "no." Then', 'She said "no."'),
    "closing bracket": ("It hurt (a lot.) Still", "It hurt (a lot.)"),
    "line break": ("First\nsecond", "First\n"),
    "several at once": ("One. Two. Three", "One. Two."),
    "at the very end": ("That is hard.", "That is hard."),
}


@pytest.mark.parametrize(("text", "due"), ENDS.values(), ids=ENDS.keys())
def test_span_ends_at_a_sentence_end(text: str, due: str) -> None:
    assert filled(text).due(now_s=0.0) == due


@pytest.mark.parametrize("text", ["It cost 3.50 for", "see example.org now", "e-mail a.b@c and"])
def test_point_inside_a_word_ends_nothing(text: str) -> None:
    assert filled(text).due(now_s=0.0) == ""


def test_span_is_due_at_24_tokens_and_not_at_23() -> None:
    buffer = filled(*["word "] * (SPAN_TOKENS - 1))
    assert buffer.due(now_s=0.0) == ""
    buffer.add("word ", tokens=1, now_s=0.0)
    assert buffer.due(now_s=0.0) == "word " * SPAN_TOKENS


def test_piece_of_several_tokens_counts_as_several() -> None:
    buffer = SpanBuffer()
    buffer.add("a long piece of many tokens", tokens=SPAN_TOKENS, now_s=0.0)
    assert buffer.due(now_s=0.0) == "a long piece of many tokens"


def test_piece_without_token_ids_counts_as_one() -> None:
    buffer = SpanBuffer()
    for _ in range(SPAN_TOKENS):
        buffer.add("w ", tokens=0, now_s=0.0)
    assert buffer.due(now_s=0.0) == "w " * SPAN_TOKENS


def test_span_is_due_400_ms_after_its_first_piece() -> None:
    buffer = filled("Hm", now_s=10.0)
    buffer.add(" well", tokens=1, now_s=10.3)
    assert buffer.due(now_s=10.0 + SPAN_SECONDS - 0.001) == ""
    assert buffer.due(now_s=10.0 + SPAN_SECONDS) == "Hm well"
    assert buffer.wait_s(now_s=10.1) == pytest.approx(SPAN_SECONDS - 0.1)
    assert buffer.wait_s(now_s=99.0) == 0.0


def test_nothing_held_is_nothing_to_wait_for() -> None:
    buffer = SpanBuffer()
    assert buffer.wait_s(now_s=5.0) is None
    assert buffer.due(now_s=5.0) == ""
    buffer.add("Yes.", tokens=1, now_s=5.0)
    buffer.cut("Yes.", now_s=5.0)
    assert buffer.wait_s(now_s=6.0) is None
    assert buffer.due(now_s=60.0) == ""


def test_rest_after_a_cut_is_due_by_its_own_clock() -> None:
    buffer = filled("One. Two", now_s=0.0)
    buffer.cut("One.", now_s=0.2)
    assert buffer.due(now_s=0.4) == ""
    assert buffer.due(now_s=0.2 + SPAN_SECONDS) == " Two"


def test_offsets_count_code_points() -> None:
    buffer = SpanBuffer()
    buffer.add("👩‍👩‍👧‍👦.", tokens=1, now_s=0.0)
    buffer.cut(buffer.due(now_s=0.0), now_s=0.0)
    buffer.add(" Ž.", tokens=1, now_s=0.0)
    buffer.cut(buffer.due(now_s=0.0), now_s=0.0)
    assert [buffer.release(), buffer.release()] == [(0, "👩‍👩‍👧‍👦."), (8, " Ž.")]
    assert buffer.released == "👩‍👩‍👧‍👦. Ž."


def test_white_space_before_the_first_word_is_dropped_and_kept_later() -> None:
    buffer = filled("\n", "  ", " Well", " \n", "then.")
    assert buffer.held == "Well \nthen."


def test_nul_is_dropped_wherever_it_stands() -> None:
    buffer = filled("\x00", " \x00I h\x00ear", "\x00")
    assert buffer.held == "I hear"


@pytest.mark.parametrize("span", ["you. ", "I hear you. That is", "i", "hear"])
def test_what_is_not_the_beginning_of_the_held_text_is_never_cut(span: str) -> None:
    buffer = filled("I hear you. ")
    with pytest.raises(ValueError, match="not what is held"):
        buffer.cut(span, now_s=0.0)
    assert (buffer.released, buffer.waiting, buffer.held) == ("", [], "I hear you. ")


def test_screen_reads_each_span_with_what_stood_before_it() -> None:
    buffer = filled("You should. ")
    buffer.cut("You should.", now_s=0.0)
    buffer.release()
    buffer.add("Do it.", tokens=1, now_s=0.0)
    buffer.cut(" Do it.", now_s=0.0)
    buffer.add(" Now.", tokens=1, now_s=0.0)
    buffer.cut(" Now.", now_s=0.0)
    assert buffer.to_screen(most=4) == ["You should. Do it.", "You should. Do it. Now."]
    assert buffer.to_screen(most=4, context_chars=4) == ["uld. Do it.", " it. Now."]
    assert buffer.to_screen(most=1, context_chars=0) == [" Do it."]


steps = st.lists(
    st.tuples(
        st.text(alphabet="ab .!?\n\"')😀\u0301", max_size=6),  # a piece
        st.integers(0, 30),  # its tokens
        st.floats(0, 0.6),  # seconds until it came
        st.integers(0, 3),  # spans that the screen passes after it
    ),
    max_size=40,
)


@given(steps)
def test_released_and_held_are_always_the_whole_text(run: list[tuple[str, int, float, int]]) -> None:
    buffer, now_s, given_text, shown = SpanBuffer(), 0.0, "", ""
    for piece, tokens, gap_s, passes in run:
        now_s += gap_s
        buffer.add(piece, tokens=tokens, now_s=now_s)
        given_text += piece
        for _ in range(passes):
            before = buffer.released
            span = buffer.due(now_s=now_s)
            if not span:
                assert buffer.released == before
                break
            assert buffer.held.startswith(span)
            buffer.cut(span, now_s=now_s)
            assert buffer.release() == (len(shown), span)
            shown += span
        assert buffer.released == shown
        assert buffer.released + buffer.held == given_text.lstrip()


@given(steps)
def test_nothing_is_held_beyond_its_tokens_or_its_time(run: list[tuple[str, int, float, int]]) -> None:
    buffer, now_s = SpanBuffer(), 0.0
    for piece, tokens, gap_s, _ in run:
        now_s += gap_s
        buffer.add(piece, tokens=tokens, now_s=now_s)
        while span := buffer.due(now_s=now_s):
            buffer.cut(span, now_s=now_s)
        assert buffer.held_tokens < SPAN_TOKENS
        waits_s = buffer.wait_s(now_s=now_s)
        assert (waits_s is None) is (not buffer.held)
        if waits_s is not None:
            assert waits_s <= SPAN_SECONDS + 1e-6
            assert buffer.due(now_s=now_s + waits_s + 1e-6) == buffer.held


@given(st.lists(st.text(alphabet="ab .!?…\n\"')", max_size=4), max_size=20))
def test_what_was_searched_before_is_not_searched_again_and_nothing_is_missed(pieces: list[str]) -> None:
    buffer = SpanBuffer()
    for piece in pieces:
        buffer.add(piece, tokens=1, now_s=0.0)
        whole = SpanBuffer(held=buffer.held, held_tokens=1, held_since_s=0.0)
        span = buffer.due(now_s=0.0)
        assert span == (buffer.held if buffer.held_tokens >= SPAN_TOKENS else whole.due(now_s=0.0))
        if span:
            buffer.cut(span, now_s=0.0)


class CountingPattern:
    """The pattern of a sentence end, with how many characters it was asked to read."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern, self.characters = pattern, 0

    def finditer(self, text: str, begin: int = 0) -> Iterator[re.Match[str]]:
        self.characters += len(text) - begin
        return self._pattern.finditer(text, begin)


def test_long_pieces_are_read_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = CountingPattern(spans._SENTENCE_END)
    monkeypatch.setattr(spans, "_SENTENCE_END", pattern)
    buffer = SpanBuffer()
    for _ in range(SPAN_TOKENS - 1):
        buffer.add("a" * 1000, tokens=1, now_s=0.0)
        assert buffer.due(now_s=0.0) == ""
    assert pattern.characters == (SPAN_TOKENS - 1) * 1000
