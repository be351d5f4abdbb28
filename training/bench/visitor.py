"""A visitor under load, on the lean socket: says hello, sends, puts deltas together, and notes when what came.

Moments are `time.monotonic()`, which all processes of one machine share on Linux.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import orjson

from training.bench.wire_client import LeanSocket, open_socket

PATIENCE_S = 150.0  # for a reply on a machine that has other things to do


@dataclass(frozen=True, kw_only=True, slots=True)
class Seat:
    """A conversation that the bench may talk in."""

    token: str
    conversation: str
    visitor: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    """Where a product's sockets are."""

    url: str  # ws://127.0.0.1:8000/ws/chat/
    origin: str


@dataclass(slots=True)
class Heard:
    """One reply as the page heard it."""

    sent_s: float
    accepted_s: float = 0.0
    text: str = ""
    deltas: list[tuple[float, int, int]] = field(default_factory=list)  # when, offset, characters
    final_text: str = ""
    status: str = ""
    gaps: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Visitor:
    """One page. `say` begins a turn; `finished` waits for its end."""

    def __init__(self, seat: Seat, door: Door) -> None:
        self.seat, self.door = seat, door
        self.heard = Heard(sent_s=0.0)
        self.last_seq = 0
        self.errors: list[str] = []
        self.welcomes: list[float] = []
        self.live_text: str | None = None
        self._socket: LeanSocket | None = None
        self._waits: dict[str, asyncio.Future[dict[str, Any]]] = {}

    @property
    def is_open(self) -> bool:
        """Whether its socket lives."""
        return self._socket is not None and self._socket.is_open

    @property
    def socket(self) -> LeanSocket:
        """The open socket. Raises RuntimeError before `open`."""
        if self._socket is None:
            raise RuntimeError("Open it first.")
        return self._socket

    async def open(self, *, from_address: str = "", receive_bytes: int = 0) -> dict[str, Any]:
        """Connect and say hello; returns the welcome."""
        self._socket = await open_socket(
            self.door.url,
            self._take,
            origin=self.door.origin,
            from_address=from_address,
            receive_bytes=receive_bytes,
        )
        return await self.hello()

    async def hello(self) -> dict[str, Any]:
        """Say hello (again)."""
        welcome = self.wait("welcome")
        self.send({"type": "hello", "token": self.seat.token, "last_seq": self.last_seq})
        return await welcome

    def send(self, event: dict[str, Any]) -> None:
        """Send one event."""
        self.socket.send(orjson.dumps(event))

    def wait(self, kind: str, *, timeout_s: float = PATIENCE_S) -> asyncio.Future[dict[str, Any]]:
        """The next event of a kind. Raises TimeoutError."""
        waiting: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waits[kind] = waiting
        waited = asyncio.ensure_future(asyncio.wait_for(waiting, timeout_s))
        waited.add_done_callback(_heed)  # whoever does not look at it does not miss it
        return waited

    def say(self, text: str) -> asyncio.Future[dict[str, Any]]:
        """Begin a turn; the future is its `reply.finished`."""
        self.heard = Heard(sent_s=time.monotonic())
        finished = self.wait("reply.finished", timeout_s=PATIENCE_S)
        self.send({"type": "message.send", "client_id": uuid4().hex, "text": text})
        return finished

    def close(self) -> None:
        """Leave as a page does."""
        if self._socket is not None:
            self._socket.close()

    def _take(self, frame: bytes) -> None:
        now_s = time.monotonic()
        event = orjson.loads(frame)
        kind = event["type"]
        if kind == "reply.delta":
            self._apply(event, now_s)
        elif kind == "message.accepted":
            self.heard.accepted_s = now_s
        elif kind == "reply.finished":
            message = event["message"]
            self._end(message)
            self.last_seq = max(self.last_seq, message["changed_seq"])
        elif kind == "welcome":
            self._welcomed(event, now_s)
        elif kind == "error":
            self.errors.append(str(event["code"]))
        waiting = self._waits.pop(kind, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(event)

    def _apply(self, event: dict[str, Any], now_s: float) -> None:
        """As a page does: cut an overlap, count a gap and leave it out."""
        offset, text = event["offset"], event["text"]
        self.heard.deltas.append((now_s, offset, len(text)))
        if offset > len(self.heard.text):
            self.heard.gaps += 1
            self.send({"type": "hello", "token": self.seat.token, "last_seq": self.last_seq})
            return
        self.heard.text += text[len(self.heard.text) - offset :]

    def _welcomed(self, event: dict[str, Any], now_s: float) -> None:
        self.welcomes.append(now_s)
        live = event["live"]
        if live is not None:
            self.heard.text = live["text"]
        self.live_text = live["text"] if live else None
        for message in event["changes"]:
            self.last_seq = max(self.last_seq, message["changed_seq"])
            if message["kind"] == "reply" and message["status"] not in {"running", "queued"}:
                self._end(message)

    def _end(self, message: dict[str, Any]) -> None:
        self.heard.final_text, self.heard.status = message["text"], message["status"]
        self.heard.over.set()


def _heed(done: asyncio.Future[dict[str, Any]]) -> None:
    if not done.cancelled():
        done.exception()
