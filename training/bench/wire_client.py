"""A lean WebSocket client for load: 10,000 of them in one process, and a few microseconds a frame.

The product's own page and the tests use whole clients; here the client must cost far less than what it measures. It
speaks what the product speaks: text frames, no extensions, no fragments.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import struct
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

_TEXT, _CLOSE, _PING, _PONG = 0x1, 0x8, 0x9, 0xA
INTERNET_SEGMENT_BYTES = 1_440
OnText = Callable[[bytes], None]


class HandshakeRefused(ConnectionError):
    """The server did not switch to WebSocket; holds its status line."""


def masked_frame(opcode: int, payload: bytes) -> bytes:
    """One whole client frame. The mask is zero, which leaves the payload as it is and costs nothing."""
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB4x", 0x80 | opcode, 0x80 | size)
    elif size < 65536:
        head = struct.pack("!BBH4x", 0x80 | opcode, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ4x", 0x80 | opcode, 0x80 | 127, size)
    return head + payload


class LeanSocket(asyncio.Protocol):
    """One socket; `on_text` gets every text frame's bytes as it arrives."""

    def __init__(self, on_text: OnText, *, host: str, path: str, origin: str) -> None:
        self.on_text = on_text
        self.close_code: int | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._buffer = b""
        self._is_open = False
        self._transport: asyncio.Transport | None = None
        key = base64.b64encode(os.urandom(16)).decode()
        self._request = (
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        ).encode()

    @property
    def is_open(self) -> bool:
        """Whether frames can go both ways."""
        return self._is_open and not self.closed.done()

    async def opened(self) -> None:
        """Wait for the handshake. Raises HandshakeRefused."""
        await self._opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass
        self._transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        if not self._opened.done():
            self._opened.set_exception(HandshakeRefused("the connection ended before the handshake"))
        if not self.closed.done():
            self.closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._buffer = self._buffer + data if self._buffer else data
        if not self._is_open and not self._finish_handshake():
            return
        self._take_frames()

    def _finish_handshake(self) -> bool:
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return False
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            self._opened.set_exception(HandshakeRefused(head.split(b"\r\n", 1)[0].decode("latin-1")))
            self.cut()
            return False
        self._buffer, self._is_open = rest, True
        if not self._opened.done():
            self._opened.set_result(None)
        return True

    def _take_frames(self) -> None:
        buffer, at = self._buffer, 0
        while len(buffer) - at >= 2:
            opcode, size, begin = buffer[at] & 0x0F, buffer[at + 1] & 0x7F, at + 2
            if size == 126:
                if len(buffer) - at < 4:
                    break
                size, begin = int.from_bytes(buffer[at + 2 : at + 4]), at + 4
            elif size == 127:
                if len(buffer) - at < 10:
                    break
                size, begin = int.from_bytes(buffer[at + 2 : at + 10]), at + 10
            if len(buffer) < begin + size:
                break
            at = begin + size
            self._take(opcode, buffer[begin:at])
        self._buffer = buffer[at:]

    def _take(self, opcode: int, payload: bytes) -> None:
        if opcode == _TEXT:
            self.on_text(payload)
        elif opcode == _PING:
            self._write(masked_frame(_PONG, payload))
        elif opcode == _CLOSE:
            self.close_code = int.from_bytes(payload[:2]) if len(payload) >= 2 else 1005
            self.close()

    def send(self, payload: bytes) -> None:
        """Send one text frame."""
        self._write(masked_frame(_TEXT, payload))

    def _write(self, frame: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame)

    def pause(self) -> None:
        """Stop reading: the page that hangs."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        if self._transport is not None:
            self._transport.resume_reading()

    def close(self) -> None:
        """Say goodbye and let go."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(masked_frame(_CLOSE, struct.pack("!H", 1000)))
            self._transport.close()

    def cut(self) -> None:
        """Drop the connection without a word, as a network does."""
        if self._transport is not None:
            self._transport.abort()


async def open_socket(
    url: str, on_text: OnText, *, origin: str, from_address: str = "", receive_bytes: int = 0
) -> LeanSocket:
    """Open `ws://host:port/path`. `from_address` is a loopback address to come from (one has 28,000 ports).

    `receive_bytes` makes the kernel's buffers small, so that a reader who pauses is felt soon: here by that, and at the
    server by segments as on the Internet (those of the loopback get it two megabytes for a connection).
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    loop = asyncio.get_running_loop()
    line = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    line.setblocking(False)
    if receive_bytes:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, INTERNET_SEGMENT_BYTES)
    if from_address:
        line.bind((from_address, 0))
    await loop.sock_connect(line, (host, port))
    _, client = await loop.create_connection(
        lambda: LeanSocket(on_text, host=f"{host}:{port}", path=parts.path or "/", origin=origin), sock=line
    )
    await client.opened()
    return client
