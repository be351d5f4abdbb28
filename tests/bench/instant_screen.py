"""An encoder process that lets everything pass at once, for benchmarks that count up to the output screen.

    python -m tests.bench.instant_screen --port N

G3 to G7 are measured to the hand-over to the screen; the real encoder's own time is a line of its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import cast

from tests.bench.loopback import run_at_port

_HEALTH = b'{"encoder_version":"e","screen_version":"s","judge_version":"j","waiting_windows":0}'
_READING = b'{"probability":0.01,"level":"none","is_covered":true}'


def answer(body: bytes) -> bytes:
    """One harmless reading per text."""
    readings = b",".join([_READING] * len(json.loads(body)["texts"]))
    return b'{"version":"screen-instant","readings":[%b]}' % readings


class _Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            size = next((int(row[15:]) for row in head.split(b"\r\n") if row.startswith(b"content-length:")), 0)
            if len(self._buffer) < end + 4 + size:
                return
            body, self._buffer = self._buffer[end + 4 : end + 4 + size], self._buffer[end + 4 + size :]
            content = answer(body) if body else _HEALTH
            start = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(content)
            self._transport.write(start + content)


def main(arguments: Sequence[str] | None = None) -> None:
    """Until the process ends."""
    run_at_port(_Connection, prog="python -m tests.bench.instant_screen", arguments=arguments)


if __name__ == "__main__":
    main()
