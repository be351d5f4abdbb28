"""The wire: whatever arrives, only a ProtocolError leaves the parser; what is kept can be kept by both databases."""

import dataclasses
import json
import types
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID, uuid4

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat import protocol
from chat.protocol import (
    CLIENT_EVENT_TYPES,
    MAX_CLIENT_ID_CHARS,
    MAX_COMMENT_CHARS,
    MAX_FRAME_BYTES,
    MAX_REASONS,
    MAX_TEXT_CHARS,
    ErrorCode,
    Hello,
    ProtocolError,
    ReplyDelta,
    SendMessage,
    ServerEvent,
    SetFeedback,
    clean_text,
    encode,
    encode_delta,
    parse_client_event,
)

ID = "0b8f1d52-7c3f-4c19-9a3e-2f6f1f4f7a10"
SERVER_CLASSES = get_args(ServerEvent)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
FIELDS = ("token", "last_seq", "client_id", "text", "message_id", "value", "reasons", "comment")


@st.composite
def nearly_events(draw: st.DrawFn) -> str:
    """Frames that name a real event, with fields of any type in place of its own."""
    content: dict[str, Any] = {"type": draw(st.sampled_from(sorted(CLIENT_EVENT_TYPES)))}
    for field in draw(st.lists(st.sampled_from(FIELDS), unique=True)):
        content[field] = draw(json_values | st.just(ID) | st.text(alphabet="\x00\ud800a \u200b", max_size=6))
    return json.dumps(content, ensure_ascii=draw(st.booleans()))


def refusal(frame: str | bytes) -> ProtocolError | None:
    """The ProtocolError of a frame, None where it is an event; any other error is the test's."""
    try:
        parse_client_event(frame)
    except ProtocolError as error:
        return error
    return None


@given(st.text() | st.binary() | nearly_events() | json_values.map(json.dumps))
def test_whatever_arrives_only_a_protocol_error_leaves(frame: str | bytes) -> None:
    error = refusal(frame)
    assert error is None or isinstance(error.code, ErrorCode)


@given(st.text(min_size=12, alphabet=st.characters(min_codepoint=97, max_codepoint=0x1F600)))
def test_error_never_carries_what_was_sent(text: str) -> None:
    error = refusal(json.dumps({"type": "message.send", "client_id": 7, "text": text}))
    assert error is not None
    assert text not in str(error)


@pytest.mark.parametrize(
    "frame",
    [
        "[" * 100_000,
        '{"a":' * 10_000,
        '{"type":"ping","n":' + "9" * 5_000 + "}",
        '{"type":"ping","n":NaN}',
        "",
        "\ud800",
    ],
    ids=["brackets", "objects", "digits", "nan", "nothing", "surrogate"],
)
def test_hostile_json_is_malformed_or_harmless(frame: str) -> None:
    error = refusal(frame)
    assert error is None or error.code in {ErrorCode.MALFORMED, ErrorCode.TOO_LARGE}


def test_frame_of_64_kib_passes_and_one_more_byte_does_not() -> None:
    def frame(size: int) -> str:
        return '{"type":"ping"' + " " * (size - 15) + "}"

    assert refusal(frame(MAX_FRAME_BYTES)) is None
    too_large = refusal(frame(MAX_FRAME_BYTES + 1))
    assert too_large is not None
    assert too_large.code is ErrorCode.TOO_LARGE


def test_frame_is_measured_in_bytes_not_characters() -> None:
    error = refusal('{"type":"ping","x":"' + "ž" * (MAX_FRAME_BYTES // 2) + '"}')
    assert error is not None
    assert error.code is ErrorCode.TOO_LARGE


CLEAN = {
    "plain": ("hello", "hello"),
    "stripped at its ends": (" \n hello there \t", "hello there"),
    "four-byte text": ("fine 😀", "fine 😀"),
    "joined family": ("👩‍👩‍👧‍👦", "👩‍👩‍👧‍👦"),
    "line separators inside": ("a\u2028b", "a\u2028b"),
    "right to left": ("\u202eabc", "\u202eabc"),
    "the longest": ("x" * MAX_TEXT_CHARS, "x" * MAX_TEXT_CHARS),
    "the longest within white space": (" " + "x" * MAX_TEXT_CHARS + " ", "x" * MAX_TEXT_CHARS),
    "the longest of wide characters": ("😀" * MAX_TEXT_CHARS, "😀" * MAX_TEXT_CHARS),
}


@pytest.mark.parametrize(("text", "kept"), CLEAN.values(), ids=CLEAN.keys())
def test_text_that_can_be_kept_is_kept_but_for_its_ends(text: str, kept: str) -> None:
    assert clean_text(text) == kept


REFUSED = {
    "nothing": ("", ErrorCode.EMPTY_TEXT),
    "white space": (" \n\t\u00a0\u2003", ErrorCode.EMPTY_TEXT),
    "invisible characters": ("\u200b\u200d\ufeff", ErrorCode.EMPTY_TEXT),
    "control characters": ("\x07\x1b", ErrorCode.EMPTY_TEXT),
    "one too many": ("x" * (MAX_TEXT_CHARS + 1), ErrorCode.TEXT_TOO_LONG),
    "NUL": ("a\x00b", ErrorCode.TEXT_INVALID),
    "NUL at the end": ("a\x00", ErrorCode.TEXT_INVALID),
    "a high surrogate": ("a\ud83d", ErrorCode.TEXT_INVALID),
    "a low surrogate": ("\ude00a", ErrorCode.TEXT_INVALID),
    "a split pair": ("\ud83d\ude00", ErrorCode.TEXT_INVALID),
}


@pytest.mark.parametrize(("text", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_text_that_cannot_be_kept_is_refused_by_name(text: str, code: ErrorCode) -> None:
    with pytest.raises(ProtocolError) as refused:
        clean_text(text)
    assert refused.value.code is code


@given(st.text(alphabet=st.characters(), max_size=60))
def test_kept_text_is_encodable_bounded_and_keeps_its_inside(text: str) -> None:
    try:
        kept = clean_text(text, max_chars=40)
    except ProtocolError:
        return
    assert kept == text.strip()
    assert 0 < len(kept) <= 40
    assert "\x00" not in kept.encode().decode()


@given(client_id=st.text(min_size=1, max_size=MAX_CLIENT_ID_CHARS), text=st.text(min_size=1, max_size=200))
def test_sent_message_is_read_as_it_was_written(client_id: str, text: str) -> None:
    frame = json.dumps({"type": "message.send", "client_id": client_id, "text": text})
    refused = refusal(frame)
    is_kept = bool(text.strip()) and any(c.isprintable() and not c.isspace() for c in text)
    is_storable = "\x00" not in client_id + text
    assert (refused is None) is (is_kept and is_storable)
    if refused is None:
        assert parse_client_event(frame) == SendMessage(client_id=client_id, text=text.strip())


@given(
    value=st.integers(-3, 3),
    reasons=st.lists(st.text(min_size=1, max_size=45), max_size=MAX_REASONS + 1),
    comment=st.text(max_size=50),
)
def test_feedback_is_read_within_its_bounds_only(value: int, reasons: list[str], comment: str) -> None:
    frame = json.dumps(
        {"type": "feedback.set", "message_id": ID, "value": value, "reasons": reasons, "comment": comment}
    )
    is_good = (
        -1 <= value <= 1
        and len(reasons) <= MAX_REASONS
        and all(len(reason) <= 40 for reason in reasons)
        and not any("\x00" in text for text in (*reasons, comment))
    )
    if is_good:
        expected = SetFeedback(message_id=UUID(ID), value=value, reasons=tuple(reasons), comment=comment)
        assert parse_client_event(frame) == expected
    else:
        assert refusal(frame) is not None


WRONG_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"type": "hello", "token": "", "last_seq": 0}, "token"),
    ({"type": "hello", "token": "x" * 2_049, "last_seq": 0}, "token"),
    ({"type": "hello", "token": "x", "last_seq": -1}, "last_seq"),
    ({"type": "hello", "token": "x", "last_seq": True}, "last_seq"),
    ({"type": "hello", "token": "x", "last_seq": 1.0}, "last_seq"),
    ({"type": "hello", "token": "x", "last_seq": 2**53 + 1}, "last_seq"),
    ({"type": "hello", "token": "x"}, "last_seq"),
    ({"type": "message.send", "client_id": "", "text": "a"}, "client_id"),
    ({"type": "message.send", "client_id": "x" * 65, "text": "a"}, "client_id"),
    ({"type": "message.send", "client_id": "x", "text": ["a"]}, "text"),
    ({"type": "reply.stop", "message_id": "none"}, "message_id"),
    ({"type": "reply.stop", "message_id": None}, "message_id"),
    ({"type": "reply.regenerate"}, "message_id"),
    ({"type": "reply.select", "message_id": ID + "0"}, "message_id"),
    ({"type": "feedback.set", "message_id": ID, "value": 2}, "value"),
    ({"type": "feedback.set", "message_id": ID, "value": 1, "reasons": "rude"}, "reasons"),
    ({"type": "feedback.set", "message_id": ID, "value": 1, "reasons": [1]}, "reason"),
    ({"type": "feedback.set", "message_id": ID, "value": 1, "comment": "x" * (MAX_COMMENT_CHARS + 1)}, "comment"),
]


@pytest.mark.parametrize(("content", "field"), WRONG_FIELDS, ids=lambda value: value if isinstance(value, str) else "")
def test_wrong_field_is_named(content: dict[str, Any], field: str) -> None:
    error = refusal(json.dumps(content))
    assert error is not None
    assert (error.code, error.field) == (ErrorCode.MALFORMED, field)


@pytest.mark.parametrize("kind", [None, 7, True, ["hello"], {"hello": 1}, "no.such", "Hello", "welcome"])
def test_unknown_event_is_refused_by_name(kind: object) -> None:
    error = refusal(json.dumps({"type": kind}))
    assert error is not None
    assert error.code is ErrorCode.UNKNOWN_EVENT


def test_largest_last_seq_is_read_exactly() -> None:
    frame = json.dumps({"type": "hello", "token": "t", "last_seq": 2**53})
    assert parse_client_event(frame) == Hello(token="t", last_seq=2**53)


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of an annotated type of the wire."""
    origin = get_origin(kind)
    if origin in {Union, types.UnionType}:
        return st.one_of(*(values_of(part) for part in get_args(kind)))
    if origin is tuple:
        return st.lists(values_of(get_args(kind)[0]), max_size=2).map(tuple)
    if dataclasses.is_dataclass(kind):
        assert isinstance(kind, type)
        hints = get_type_hints(kind, vars(protocol))
        return st.builds(kind, **{name: values_of(hint) for name, hint in hints.items() if name != "type"})
    plain: dict[Any, st.SearchStrategy[Any]] = {
        str: st.text(max_size=20),
        int: st.integers(0, 2**53),
        float: st.floats(0, 1e6),
        bool: st.booleans(),
        UUID: st.uuids(),
        type(None): st.none(),
    }
    return plain[kind]


def plain_of(value: Any) -> Any:
    """What JSON makes of it."""
    if dataclasses.is_dataclass(value):
        return {field.name: plain_of(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [plain_of(item) for item in value]
    return str(value) if isinstance(value, UUID) else value


@pytest.mark.parametrize("event_class", SERVER_CLASSES, ids=lambda event_class: event_class.__name__)
@given(data=st.data())
def test_server_event_survives_the_wire_with_every_field(event_class: type, data: st.DataObject) -> None:
    event = data.draw(values_of(event_class))
    frame = encode(event)
    assert orjson.loads(frame) == plain_of(event)
    frame.encode("utf-8")


def test_offsets_count_code_points() -> None:
    frame = encode(ReplyDelta(message_id=uuid4(), offset=len("👩‍👩‍👧"), text="ž"))
    assert json.loads(frame)["offset"] == 5


def test_every_server_event_has_a_type_of_its_own() -> None:
    kinds = [event_class.__dataclass_fields__["type"].default for event_class in SERVER_CLASSES]
    assert len(set(kinds)) == len(SERVER_CLASSES)
    assert not set(kinds) & CLIENT_EVENT_TYPES


@given(text=st.text(), offset=st.integers(min_value=0, max_value=2**53 - 1))
def test_the_short_way_of_a_delta_writes_the_same(text: str, offset: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    reply = uuid4()
    long_way = encode(ReplyDelta(message_id=reply, offset=offset, text=text))
    assert encode_delta(str(reply), offset=offset, text=text) == long_way
