"""The Python half of the wire's examples: `frontend/wire-examples.json` is what `chat.protocol` reads and writes.

The TypeScript half is `frontend/tests/protocol.test.ts`; an event that only one side knows fails on the other.
"""

import json
import types
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import orjson
import pytest

from chat import protocol
from chat.protocol import CLIENT_EVENT_TYPES, ErrorCode, ProtocolError, ServerEvent, encode, parse_client_event

EXAMPLES = json.loads((Path(__file__).parents[2] / "frontend" / "wire-examples.json").read_text())
SERVER_CLASSES = {cls.__dataclass_fields__["type"].default: cls for cls in get_args(ServerEvent)}


def frame_of(example: dict[str, Any]) -> str:
    return (
        str(example["frame"])
        + str(example.get("repeat", "")) * int(example.get("times", 0))
        + str(example.get("end", ""))
    )


def build(kind: Any, content: Any) -> Any:
    """The value of an annotated type that JSON stands for; an error where a field is too many or too few."""
    if get_origin(kind) in {Union, types.UnionType}:
        if content is None:
            return None
        return build(next(part for part in get_args(kind) if part is not type(None)), content)
    if get_origin(kind) is tuple:
        return tuple(build(get_args(kind)[0], item) for item in content)
    if is_dataclass(kind):
        hints = get_type_hints(kind, vars(protocol))
        assert isinstance(kind, type)
        return kind(**{name: build(hints[name], value) for name, value in content.items()})
    return UUID(content) if kind is UUID else content


def plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("example", EXAMPLES["client"], ids=lambda example: example["type"])
def test_a_client_event_is_read_with_every_field(example: dict[str, Any]) -> None:
    event = parse_client_event(json.dumps(example, ensure_ascii=False))
    read = {field.name: plain(getattr(event, field.name)) for field in fields(event)}
    assert {"type": example["type"], **read} == example


@pytest.mark.parametrize("example", EXAMPLES["server"], ids=lambda example: example["type"])
def test_a_server_event_is_written_as_its_example(example: dict[str, Any]) -> None:
    event = build(SERVER_CLASSES[example["type"]], example)
    assert orjson.loads(encode(event)) == example


@pytest.mark.parametrize("example", EXAMPLES["bad_client"], ids=lambda example: example["why"])
def test_a_bad_frame_is_refused_with_its_code(example: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError) as refused:
        parse_client_event(frame_of(example))
    assert refused.value.code == ErrorCode(example["code"])


def test_every_event_of_both_sides_has_an_example() -> None:
    assert {example["type"] for example in EXAMPLES["client"]} == CLIENT_EVENT_TYPES
    assert {example["type"] for example in EXAMPLES["server"]} == set(SERVER_CLASSES)
