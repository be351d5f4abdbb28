"""A model server that speaks at a fixed pace, for benchmarks: what the product adds is all that can differ.

    python -m tests.bench.paced_engine --port N

`POST /v1/chat/completions` streams tokens on an absolute schedule (a late one does not move those after it), each with
an id and a log-probability as llama.cpp sends them; `POST /pace {"tokens", "per_s", "first_s", "pad"}` sets the
pace of the requests that follow. It is written on the bare loop: it must cost less than whatever reads it.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from tests.bench.loopback import run_at_port
from training.bench.paced_text import token_text

_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    b"Connection: keep-alive\r\n\r\n"
)


@dataclass(frozen=True, slots=True)
class Pace:
    """How the next requests are answered."""

    tokens: int = 100
    per_s: float = 50.0
    first_s: float = 0.02
    pad: int = 0  # characters more per token, for readers that shall fall behind


def _chunk(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def _event(value: object) -> bytes:
    return _chunk(b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n")


def token_chunk(index: int, *, pad: int = 0) -> bytes:
    """One token's event as it goes on the wire."""
    text = token_text(index) + "o" * pad
    entry = {"id": 1000 + index % 1000, "token": text, "bytes": list(text.encode()), "prob": 0.6, "top_probs": []}
    choice = {"finish_reason": None, "index": 0, "delta": {"content": text}, "logprobs": {"content": [entry]}}
    head = {"created": 1, "id": "chatcmpl-paced", "model": "paced", "object": "chat.completion.chunk"}
    return _event({"choices": [choice], **head})


def last_chunks(tokens: int) -> bytes:
    """The finish reason, the counts, the end."""
    usage = {"prompt_tokens": 40, "completion_tokens": tokens, "total_tokens": tokens + 40}
    finish = {"choices": [{"finish_reason": "stop", "index": 0, "delta": {}}]}
    return _event(finish) + _event({"choices": [], "usage": usage}) + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


_CHUNKS = tuple(token_chunk(index) for index in range(1000))


class Metronome:
    """All streams of the process on one timer: (moment, number, stream) in a heap."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Stream]] = []
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, moment_s: float, stream: Stream) -> None:
        self._number += 1
        heapq.heappush(self._due, (moment_s, self._number, stream))
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._due:
            wait_s = max(0.0, self._due[0][0] - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._tick)

    def _tick(self) -> None:
        now_s = time.monotonic() + 0.0005
        while self._due and self._due[0][0] <= now_s:
            moment_s, _, stream = heapq.heappop(self._due)
            if (next_s := stream.step(moment_s)) is not None:
                self._number += 1
                heapq.heappush(self._due, (next_s, self._number, stream))
        self._arm()


class Stream:
    """One reply under way."""

    def __init__(self, transport: asyncio.Transport, pace: Pace) -> None:
        self._transport, self._pace = transport, pace
        self._index = 0

    def step(self, moment_s: float) -> float | None:
        """Write the token that is due; the moment of the next, None at the end."""
        if self._transport.is_closing():
            return None
        if self._index >= self._pace.tokens:
            self._transport.write(last_chunks(self._pace.tokens))
            return None
        pad = self._pace.pad
        self._transport.write(token_chunk(self._index, pad=pad) if pad else _CHUNKS[self._index % 1000])
        self._index += 1
        return moment_s + 1.0 / self._pace.per_s


class PacedEngine:
    """The server; `pace` may be changed between requests."""

    def __init__(self) -> None:
        self.pace = Pace()
        self.metronome = Metronome()

    def connect(self) -> asyncio.Protocol:
        """A protocol for one connection."""
        return _Connection(self)


class _Connection(asyncio.Protocol):
    def __init__(self, engine: PacedEngine) -> None:
        self._engine = engine
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            size = next((int(row[15:]) for row in head.split(b"\r\n") if row.startswith(b"content-length:")), 0)
            if len(self._buffer) < end + 4 + size:
                return
            body, self._buffer = self._buffer[end + 4 : end + 4 + size], self._buffer[end + 4 + size :]
            self._answer(head.split(b" ", 2)[1], body)

    def _answer(self, path: bytes, body: bytes) -> None:
        if path == b"/pace":
            self._engine.pace = Pace(**json.loads(body))
            self._say(b"{}")
        elif path == b"/v1/models":
            self._say(b'{"data":[{"id":"paced"}]}')
        elif json.loads(body).get("stream"):
            self._transport.write(_HEAD)
            pace = self._engine.pace
            self._engine.metronome.add(time.monotonic() + pace.first_s, Stream(self._transport, pace))
        else:
            self._say(b'{"choices":[{"index":0,"message":{"content":" ok"},"finish_reason":"length"}],"usage":{}}')

    def _say(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)


def main(arguments: Sequence[str] | None = None) -> None:
    """Until the process ends."""
    run_at_port(PacedEngine().connect, prog="python -m tests.bench.paced_engine", arguments=arguments)


if __name__ == "__main__":
    main()
