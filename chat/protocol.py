"""The wire: every event that travels on a socket, parsed and written here and nowhere else.

`consumers` parses what a visitor sends with `parse_client_event` and writes with `encode`; `frontend/src/protocol.ts`
mirrors this file, and both parse `frontend/wire-examples.json`. Offsets count Unicode code points.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

import orjson

MAX_FRAME_BYTES = 64 * 1024
MAX_TEXT_CHARS = 8_000
MAX_CLIENT_ID_CHARS = 64
MAX_TOKEN_CHARS = 2_048
MAX_COMMENT_CHARS = 2_000
MAX_REASONS = 8
MAX_CHANGES = 500  # in one welcome, oldest first; a page that is further behind says hello again


class CloseCode:
    """Why a socket was closed. The page decides from it whether to come back."""

    MALFORMED = 4400
    TOKEN = 4401
    ORIGIN = 4403
    IDLE = 4408
    REPLACED = 4409
    TOO_LARGE = 4413
    RATE = 4429
    SLOW_READER = 4430
    RESTART = 1012
    OVERLOADED = 1013


class ErrorCode(StrEnum):
    """What an `error` event says; the page has one sentence for each."""

    MALFORMED = "malformed"
    UNKNOWN_EVENT = "unknown_event"
    BINARY = "binary"
    TOO_LARGE = "too_large"
    EMPTY_TEXT = "empty_text"
    TEXT_TOO_LONG = "text_too_long"
    TEXT_INVALID = "text_invalid"
    NOT_FOUND = "not_found"
    CLOSED = "closed"
    NOT_RUNNING = "not_running"
    BUSY = "busy"
    RATE = "rate"
    BUDGET = "budget"
    TOKEN = "token"  # noqa: S105 - the name of a code, not a secret
    HELLO_FIRST = "hello_first"
    UNAVAILABLE = "unavailable"


class ProtocolError(Exception):
    """A frame that is not a valid event; carries a code and the field, never the text that was sent."""

    def __init__(self, code: ErrorCode, *, field: str = "") -> None:
        super().__init__(f"{code}: field {field!r}" if field else str(code))
        self.code = code
        self.field = field


# --- what a visitor sends -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Hello:
    """First event on every socket; `last_seq` is the newest change the page already shows (0 = none)."""

    token: str
    last_seq: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SendMessage:
    """A visitor's message. The same `client_id` is the same message, however often and wherever it is sent."""

    client_id: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StopReply:
    """Stop the running reply; its text so far is kept."""

    message_id: UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class RegenerateReply:
    """Ask for a sibling of this reply (also Retry after a failed one)."""

    message_id: UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectReply:
    """Choose this sibling: it is shown and goes into later context."""

    message_id: UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class SetFeedback:
    """Thumbs on a reply: 1 up, -1 down, 0 taken back."""

    message_id: UUID
    value: int
    reasons: tuple[str, ...]
    comment: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AcknowledgeSafety:
    """The visitor says the card was a misunderstanding: lowers the concern, never clears it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Typing:
    """The visitor is typing; shown to staff, stored nowhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ping:
    """Keeps the socket alive; answered by `pong` at once."""


ClientEvent = (
    Hello | SendMessage | StopReply | RegenerateReply | SelectReply | SetFeedback | AcknowledgeSafety | Typing | Ping
)


def clean_text(text: str, *, max_chars: int = MAX_TEXT_CHARS) -> str:
    """The text as both databases can keep it, stripped at its ends; ProtocolError where it cannot be kept.

    NUL and lone surrogates are refused on every database alike (SQLite would take what PostgreSQL refuses).
    """
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ProtocolError(ErrorCode.TEXT_INVALID, field="text")
    stripped = text.strip()
    if not stripped or not any(character.isprintable() and not character.isspace() for character in stripped):
        raise ProtocolError(ErrorCode.EMPTY_TEXT, field="text")
    if len(stripped) > max_chars:
        raise ProtocolError(ErrorCode.TEXT_TOO_LONG, field="text")
    return stripped


def parse_client_event(frame: str | bytes) -> ClientEvent:
    """One text frame as an event. Raises ProtocolError and nothing else, whatever arrives."""
    size = len(frame) if isinstance(frame, bytes) else len(frame.encode("utf-8", "surrogatepass"))
    if size > MAX_FRAME_BYTES:
        raise ProtocolError(ErrorCode.TOO_LARGE)
    try:
        content = orjson.loads(frame)
    except (
        ValueError,
        RecursionError,
    ) as error:  # orjson's own error is a ValueError; it also refuses NaN and surrogates
        raise ProtocolError(ErrorCode.MALFORMED) from error
    return _parse_content(content)


def _parse_content(content: object) -> ClientEvent:
    if not isinstance(content, dict):
        raise ProtocolError(ErrorCode.MALFORMED)
    kind = content.get("type")
    parse = _CLIENT_PARSERS.get(kind) if isinstance(kind, str) else None
    if parse is None:
        raise ProtocolError(ErrorCode.UNKNOWN_EVENT, field="type")
    return parse(content)


def parse_send(content: object) -> SendMessage:
    """The fields of a `message.send` that came through another door than the socket. Raises ProtocolError."""
    if not isinstance(content, dict):
        raise ProtocolError(ErrorCode.MALFORMED)
    return _parse_send(content)


_Content = Mapping[str, Any]  # a decoded JSON object, before its fields are checked


def _text(content: _Content, field: str, *, max_chars: int, may_be_empty: bool = False) -> str:
    value = content.get(field, "" if may_be_empty else None)
    if not isinstance(value, str) or len(value) > max_chars or (not value and not may_be_empty) or "\x00" in value:
        raise ProtocolError(ErrorCode.MALFORMED, field=field)
    return value


def _integer(content: _Content, field: str, *, low: int, high: int) -> int:
    value = content.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ProtocolError(ErrorCode.MALFORMED, field=field)
    return value


def _message_id(content: _Content) -> UUID:
    try:
        return UUID(_text(content, "message_id", max_chars=36))
    except ValueError as error:
        raise ProtocolError(ErrorCode.MALFORMED, field="message_id") from error


def _parse_send(content: _Content) -> SendMessage:
    text = content.get("text")
    if not isinstance(text, str):
        raise ProtocolError(ErrorCode.MALFORMED, field="text")
    client_id = _text(content, "client_id", max_chars=MAX_CLIENT_ID_CHARS)
    return SendMessage(client_id=client_id, text=clean_text(text))


def _parse_feedback(content: _Content) -> SetFeedback:
    reasons = content.get("reasons", [])
    if not isinstance(reasons, list) or len(reasons) > MAX_REASONS:
        raise ProtocolError(ErrorCode.MALFORMED, field="reasons")
    checked = tuple(_text({"reason": reason}, "reason", max_chars=40) for reason in reasons)
    return SetFeedback(
        message_id=_message_id(content),
        value=_integer(content, "value", low=-1, high=1),
        reasons=checked,
        comment=_text(content, "comment", max_chars=MAX_COMMENT_CHARS, may_be_empty=True),
    )


_CLIENT_PARSERS: Mapping[str, Callable[[_Content], ClientEvent]] = {
    "hello": lambda c: Hello(
        token=_text(c, "token", max_chars=MAX_TOKEN_CHARS), last_seq=_integer(c, "last_seq", low=0, high=2**53)
    ),
    "message.send": _parse_send,
    "reply.stop": lambda c: StopReply(message_id=_message_id(c)),
    "reply.regenerate": lambda c: RegenerateReply(message_id=_message_id(c)),
    "reply.select": lambda c: SelectReply(message_id=_message_id(c)),
    "feedback.set": _parse_feedback,
    "safety.ack": lambda c: AcknowledgeSafety(),
    "typing": lambda c: Typing(),
    "ping": lambda c: Ping(),
}
CLIENT_EVENT_TYPES = frozenset(_CLIENT_PARSERS)


# --- what the server sends ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageView:
    """A message as a page sees it. `code` says why a reply ended early; `feedback` is the visitor's own thumb."""

    id: UUID
    seq: int
    changed_seq: int
    kind: str  # visitor, reply, staff, safety; to staff also note
    status: str  # queued, running, complete, stopped, failed, interrupted, blocked
    text: str
    parent: UUID | None
    sibling_index: int
    sibling_count: int
    selected: bool
    created_at: str
    client_id: str | None = None
    code: str | None = None
    retryable: bool = False
    feedback: int = 0
    author: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """One helpline of the card; the operator's table says when it was checked and where."""

    name: str
    phone: str
    text: str
    url: str
    hours: str
    country: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveReply:
    """A reply that is running now: its text so far; `offset` is the length of that text in code points."""

    message_id: UUID
    text: str
    offset: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversationView:
    """What the page knows of its conversation."""

    id: UUID
    state: str
    control: str
    last_seq: int
    site: str
    consent: bool
    policy: str
    card: str  # none, watch, high: whether a safety card is standing
    resources: tuple[Resource, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Welcome:
    conversation: ConversationView
    changes: tuple[MessageView, ...]
    live: LiveReply | None = None
    type: Literal["welcome"] = "welcome"


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageAccepted:
    client_id: str
    message: MessageView
    type: Literal["message.accepted"] = "message.accepted"


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageChanged:
    message: MessageView
    type: Literal["message.changed"] = "message.changed"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyQueued:
    message_id: UUID
    place: int
    expected_wait_s: float
    type: Literal["reply.queued"] = "reply.queued"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyStarted:
    message_id: UUID
    parent: UUID | None = None
    type: Literal["reply.started"] = "reply.started"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyDelta:
    message_id: UUID
    offset: int
    text: str
    type: Literal["reply.delta"] = "reply.delta"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyFinished:
    message: MessageView
    sha256: str
    type: Literal["reply.finished"] = "reply.finished"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyFailed:
    """Why a reply ended early; its row, with whatever text it has, stays and may be regenerated where `retryable`."""

    message_id: UUID
    code: str
    retryable: bool
    type: Literal["reply.failed"] = "reply.failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class SafetyCard:
    level: str
    resources: tuple[Resource, ...]
    staffed: bool = False
    type: Literal["safety.card"] = "safety.card"


@dataclass(frozen=True, kw_only=True, slots=True)
class Handover:
    control: str
    assignee: str | None = None
    type: Literal["handover"] = "handover"


@dataclass(frozen=True, kw_only=True, slots=True)
class Presence:
    who: str
    is_typing: bool
    type: Literal["presence"] = "presence"


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionChanged:
    policy: str
    type: Literal["version.changed"] = "version.changed"


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorEvent:
    code: str
    retry_after: float | None = None
    trace: str = ""
    client_id: str | None = None
    type: Literal["error"] = "error"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pong:
    type: Literal["pong"] = "pong"


ServerEvent = (
    Welcome
    | MessageAccepted
    | MessageChanged
    | ReplyQueued
    | ReplyStarted
    | ReplyDelta
    | ReplyFinished
    | ReplyFailed
    | SafetyCard
    | Handover
    | Presence
    | VersionChanged
    | ErrorEvent
    | Pong
)


def encode(event: ServerEvent | MessageView) -> str:
    """The event (or a message by itself, for REST) as one JSON text."""
    return orjson.dumps(event).decode()


def encode_delta(message_id: str, *, offset: int, text: str) -> str:
    """`encode` of a ReplyDelta, for the event that is sent most: a sixth of the CPU."""
    content = {"message_id": message_id, "offset": offset, "text": text, "type": "reply.delta"}
    return orjson.dumps(content).decode()
