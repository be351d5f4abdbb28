"""The strict parser: a clear 400 for what no database could keep, the same on both (B9, B10)."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import ParseError

from chat.api.parsers import MAX_DEPTH, BodyTooLarge, StrictJSONParser, parse_strict_json
from chat.protocol import MAX_FRAME_BYTES

BAD_BODIES = {
    "not json": b"{",
    "nothing": b"",
    "nan": b'{"stars": NaN}',
    "infinity": b'{"stars": -Infinity}',
    "lone surrogate": b'{"comment": "\\ud83d"}',
    "lone surrogate key": b'{"\\udc00": 1}',
    "nul": b'{"comment": "a\\u0000b"}',
    "nul key": b'{"a\\u0000": 1}',
    "latin-1": '{"comment": "é"}'.encode("latin-1"),
    "utf-16": '{"a": 1}'.encode("utf-16"),
    "deep brackets": b"[" * 100_00 + b"]" * 100_00,
    "deep objects": b'{"a":' * 40 + b"1" + b"}" * 40,
    "long number": b'{"stars": ' + b"9" * 5_000 + b"}",
    "large number": b'{"stars": 9007199254740993}',
    "huge exponent": b'{"stars": 1e400}',
    "trailing": b"{} {}",
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_bad_body_is_a_parse_error(name: str) -> None:
    with pytest.raises(ParseError):
        parse_strict_json(BAD_BODIES[name])


def test_four_byte_text_and_pairs_of_surrogates_are_fine() -> None:
    assert parse_strict_json('{"comment": "👩‍👩‍👧 \\ud83d\\ude00"}'.encode()) == {"comment": "👩‍👩‍👧 😀"}


def test_body_over_the_limit_is_refused_before_it_is_parsed() -> None:
    parser = StrictJSONParser()
    with pytest.raises(BodyTooLarge):
        parser.parse(io.BytesIO(b'"' + b"x" * MAX_FRAME_BYTES + b'"'))
    assert parser.parse(io.BytesIO(b'"' + b"x" * (MAX_FRAME_BYTES - 2) + b'"')) == "x" * (MAX_FRAME_BYTES - 2)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_parse_error(body: bytes) -> None:
    try:
        parse_strict_json(body)
    except ParseError:
        return


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.text(st.characters(exclude_characters="\x00", codec="utf-8")),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.text(st.characters(exclude_characters="\x00", codec="utf-8"), max_size=5), inner, max_size=3
            )
        ),
        max_leaves=8,
    )
)
def test_values_within_the_limits_come_through_unchanged(value: object) -> None:
    if _depth(value) < MAX_DEPTH:
        assert parse_strict_json(json.dumps(value).encode()) == value


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max((_depth(inner) for inner in value.values()), default=1)
    return 1 + max((_depth(inner) for inner in value), default=0) if isinstance(value, list) else 0
