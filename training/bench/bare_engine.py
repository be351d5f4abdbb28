"""The bare engine: the same requests straight to it, by a client that only counts tokens as they arrive."""

from __future__ import annotations

import asyncio
import time
from typing import cast
from urllib.parse import urlsplit

import orjson

_TOKEN = b'data: {"choices":[{"finish_reason":null'
_END = b"data: [DONE]"


class BareStream(asyncio.Protocol):
    """One request; `stamps_s` are the moments of its tokens."""

    def __init__(self) -> None:
        self.sent_s = 0.0
        self.stamps_s: list[float] = []
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        now_s = time.monotonic()
        data = self._tail + data
        seen = data.rfind(b"\n") + 1
        self._tail = data[seen:]
        self.stamps_s += [now_s] * data.count(_TOKEN, 0, seen)
        if _END in data and not self.over.done():
            self.over.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        if not self.over.done():
            self.over.set_exception(ConnectionError("the engine ended the stream early"))

    def ask(self, host: str) -> None:
        """Send the request on the open connection."""
        body = orjson.dumps({"model": "paced", "stream": True, "messages": [{"role": "user", "content": "Hello."}]})
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        self.sent_s = time.monotonic()
        self.transport.write(head + body)


async def open_stream(address: str) -> BareStream:
    """Connect; `ask` begins."""
    parts = urlsplit(address)
    loop = asyncio.get_running_loop()
    _, stream = await loop.create_connection(BareStream, parts.hostname or "127.0.0.1", parts.port or 80)
    return stream


async def run_streams(address: str, *, count: int, spread_s: float = 0.0) -> list[BareStream]:
    """So many at once, begun over `spread_s`; connected when asked, as the product does, and read to their ends."""

    async def one(number: int) -> BareStream:
        await asyncio.sleep(spread_s * number / count)
        began_s = time.monotonic()
        stream = await open_stream(address)
        stream.ask(address)
        stream.sent_s = began_s
        await stream.over
        stream.transport.close()
        return stream

    return list(await asyncio.gather(*(one(number) for number in range(count))))
