"""`rubric.engine_stream`: however the network cuts the bytes, the events and the characters are the same."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubric.engine_stream import MAX_EVENT_BYTES, EventSplitter, TextJoiner
from rubric.errors import EngineBroken

FAMILY = "👨‍👩‍👧‍👦"


def split(*chunks: bytes) -> list[bytes]:
    splitter = EventSplitter()
    return [payload for chunk in chunks for payload in splitter.feed(chunk)]


def read_by_the_book(stream: bytes) -> list[bytes]:
    """The event-stream format, written down slowly: whole input, one line at a time."""
    events: list[bytes] = []
    data: list[bytes] = []
    stream = stream.removeprefix(b"\xef\xbb\xbf")
    for line in re.split(b"\r\n|\n|\r", stream)[:-1]:
        if not line:
            if data:
                events.append(b"\n".join(data))
            data = []
            continue
        name, _, value = line.partition(b":")
        if name in (b"data", b"error"):
            data.append(value[1:] if value[:1] == b" " else value)
    return events


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[a:b] for a, b in pairwise(edges)]


fragments = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"data:",
        b"data: ",
        b"data",
        b": ping",
        b"event: x",
        b"error: ",
        b":",
        b" ",
        b"{}",
    ]
) | st.binary(max_size=4)
streams = st.lists(fragments, max_size=30).map(b"".join)


@given(streams)
def test_a_whole_stream_is_split_by_the_book(stream: bytes) -> None:
    # A final CR may be half of a line end: the splitter waits for its other half.
    if not stream.endswith(b"\r"):
        assert split(stream) == read_by_the_book(stream)


@given(streams, st.lists(st.integers(0, 400), max_size=8))
@settings(max_examples=300)
def test_cuts_never_change_the_events(stream: bytes, places: list[int]) -> None:
    assert split(*cut(stream, places)) == split(stream)


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\u0085", "\x1c", "\v", "\f"])
def test_line_separators_of_unicode_do_not_end_a_line(odd: str) -> None:
    payload = ('{"x":"a' + odd + 'b"}').encode()
    assert split(b"data: " + payload + b"\n\n") == [payload]


def test_an_endless_event_is_refused() -> None:
    splitter = EventSplitter()
    for _ in range(MAX_EVENT_BYTES // 4096):
        splitter.feed(b"x" * 4096)
    with pytest.raises(EngineBroken):
        splitter.feed(b"x")


def test_many_events_in_one_chunk_are_all_given() -> None:
    assert split(b"data: 1\n\ndata: 2\n\n: c\n\ndata: 3\n\n") == [b"1", b"2", b"3"]


@given(st.text(), st.lists(st.integers(0, 400), max_size=8))
def test_text_cut_in_mid_character_is_joined_from_its_bytes(text: str, places: list[int]) -> None:
    text = text.replace("\0", "").rstrip("\u200d\ufffd")
    joiner = TextJoiner()
    parts = [joiner.feed(part.decode("utf-8", "replace"), part) for part in cut(text.encode(), places)]
    assert "".join(parts) == text


@given(st.lists(st.text(), max_size=6))
def test_whole_deltas_pass_unchanged_but_for_nul_and_a_trailing_joiner(deltas: list[str]) -> None:
    joiner = TextJoiner()
    text = "".join(joiner.feed(delta) for delta in deltas)
    assert text == "".join(deltas).replace("\0", "").rstrip("\u200d\ufffd")


@given(st.lists(st.text(st.characters(codec=None) | st.sampled_from("\ud83d\udc4d\0")), max_size=6))
def test_nothing_comes_out_that_a_database_refuses(deltas: list[str]) -> None:
    joiner = TextJoiner()
    text = "".join(joiner.feed(delta) for delta in deltas)
    text.encode()
    assert "\0" not in text


def test_halves_of_a_surrogate_pair_become_one_character() -> None:
    joiner = TextJoiner()
    assert joiner.feed("a\ud83d") + joiner.feed("\udc4db") == "a👍b"


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    joiner = TextJoiner()
    assert joiner.feed("a\udc4db") + joiner.feed("\ud83d") + joiner.feed("c") == "a\ufffdb\ufffdc"


def test_a_family_in_eleven_tokens_arrives_whole() -> None:
    raw = FAMILY.encode()
    tokens = [raw[i : i + 2] for i in range(0, 20, 2)] + [raw[20:]]
    assert len(tokens) == 11
    joiner = TextJoiner()
    assert "".join(joiner.feed(token.decode("utf-8", "replace"), token) for token in tokens) == FAMILY


def test_a_reply_cut_in_mid_character_does_not_end_in_rubble() -> None:
    joiner = TextJoiner()
    assert joiner.feed("👨\u200d") + joiner.feed("\ufffd") == "👨"


def test_a_held_back_joiner_comes_with_what_follows() -> None:
    joiner = TextJoiner()
    assert [joiner.feed("👨\u200d"), joiner.feed("👩")] == ["👨", "\u200d👩"]
