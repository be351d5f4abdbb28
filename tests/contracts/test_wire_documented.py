"""docs/wire.md names every event, code and field of the wire; whoever changes `chat/protocol.py` changes the page."""

import dataclasses
import re
import typing
from pathlib import Path

import pytest

from chat import protocol

PAGE = (Path(__file__).parents[2] / "docs" / "wire.md").read_text()
SERVER_EVENTS = {event.__dataclass_fields__["type"].default: event for event in typing.get_args(protocol.ServerEvent)}


@pytest.mark.parametrize("kind", sorted({*protocol.CLIENT_EVENT_TYPES, *SERVER_EVENTS}))
def test_every_event_is_on_the_page(kind: str) -> None:
    assert f"| `{kind}` |" in PAGE


@pytest.mark.parametrize("kind", sorted(SERVER_EVENTS))
def test_every_field_of_a_server_event_stands_in_its_row(kind: str) -> None:
    row = re.search(rf"^\| `{re.escape(kind)}` \|(.*)$", PAGE, re.MULTILINE)
    assert row is not None
    for field in dataclasses.fields(SERVER_EVENTS[kind]):
        assert field.name == "type" or f"`{field.name}`" in row[1]


@pytest.mark.parametrize("code", sorted(protocol.ErrorCode))
def test_every_error_code_is_on_the_page(code: str) -> None:
    assert f"`{code}`" in PAGE


@pytest.mark.parametrize("code", sorted(value for name, value in vars(protocol.CloseCode).items() if name.isupper()))
def test_every_close_code_is_on_the_page(code: int) -> None:
    assert str(code) in PAGE
