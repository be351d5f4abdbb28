"""What waits to be written to one socket: order kept, deltas of one reply joined while the reader is slow.

`put` never blocks; what waits is sent in the loop's next step. A paused reader costs the memory of the text it has not
read, not a frame for every token (A6), and after the pause the text is complete.
"""

import asyncio
import time
import types
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chat.protocol import encode_delta

Send = Callable[[dict[str, object]], Awaitable[None]]
MAX_WAITING_CHARS = 4_000_000  # a reader this far behind is closed with 4430


@dataclass(slots=True)
class _Delta:
    message_id: UUID
    offset: int
    text: str


class Outbox:
    """Frames for one socket, sent in order. A task lives only while the reader keeps the server waiting."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: deque[str | _Delta] = deque()
        self._waiting_chars = 0
        self._is_due = False  # the next step of the loop sends
        self._writer: asyncio.Task[None] | None = None
        self._named: UUID | None = None  # the reply whose id `_name` spells
        self._name = ""
        self.blocked_since_s: float | None = None
        self.is_closed = False

    @property
    def is_overfull(self) -> bool:
        return self._waiting_chars > MAX_WAITING_CHARS

    def put(self, frame: str) -> None:
        """Queue a whole frame; a closed outbox keeps nothing."""
        if self.is_closed:
            return
        self._waiting.append(frame)
        self._waiting_chars += len(frame)
        self._wake()

    def put_delta(self, message_id: UUID, *, offset: int, text: str) -> None:
        """Queue a piece of a reply; joined to the one before it where that has not been sent yet."""
        if self.is_closed:
            return
        last = self._waiting[-1] if self._waiting else None
        if isinstance(last, _Delta) and last.message_id == message_id and last.offset + len(last.text) == offset:
            last.text += text
        else:
            self._waiting.append(_Delta(message_id, offset, text))
        self._waiting_chars += len(text)
        self._wake()

    def close(self, code: int | None = None) -> None:
        """Send what waits no more; with a code, send the close instead."""
        if self.is_closed:
            return
        self.is_closed = True
        self._waiting.clear()
        if self._writer is not None and not self._writer.done():
            self._writer.cancel()
        if code is not None:
            self._writer = asyncio.get_running_loop().create_task(self._write_close(code))

    async def drain(self) -> None:
        """Wait until everything queued so far was handed to the server."""
        while (self._is_due or self._is_writing) and not self.is_closed:
            await (asyncio.shield(self._writer) if self._writer is not None and self._is_writing else asyncio.sleep(0))

    @property
    def _is_writing(self) -> bool:
        return self._writer is not None and not self._writer.done()

    def _wake(self) -> None:
        if not self._is_due and not self._is_writing:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """Send without a task of its own, which costs as much as the frame; one goes on where the reader is slow."""
        self._is_due = False
        if self.is_closed:
            return
        work = self._write()
        try:
            waited = work.send(None)
        except StopIteration:
            return
        self._writer = asyncio.get_running_loop().create_task(_go_on(work, waited))

    async def _write(self) -> None:
        try:
            while self._waiting and not self.is_closed:
                entry = self._waiting.popleft()
                self._waiting_chars -= len(entry) if isinstance(entry, str) else len(entry.text)
                frame = entry if isinstance(entry, str) else self._encode(entry)
                self.blocked_since_s = time.monotonic()
                await self._send({"type": "websocket.send", "text": frame})
                self.blocked_since_s = None
        except (OSError, RuntimeError):  # the peer is gone; the receive side hears of it too
            self.is_closed = True

    def _encode(self, entry: _Delta) -> str:
        if entry.message_id is not self._named:
            self._named, self._name = entry.message_id, str(entry.message_id)
        return encode_delta(self._name, offset=entry.offset, text=entry.text)

    async def _write_close(self, code: int) -> None:
        try:
            await self._send({"type": "websocket.close", "code": code})
        except (OSError, RuntimeError):
            return


async def _go_on(work: Coroutine[Any, Any, None], waited: object) -> None:
    """Run on what was begun outside a task and waits for `waited`."""
    await _resume(work, waited)


@types.coroutine
def _resume(work: Coroutine[Any, Any, None], waited: object) -> Generator[object, Any, None]:
    try:
        while True:
            try:
                sent = yield waited
            except BaseException as error:
                waited = work.throw(error)
            else:
                waited = work.send(sent)
    except StopIteration:
        return
