"""One merged log: every line of every process behind its name. The arbiter feeds it; `supervise` asks for last lines.

Circus hands a stream the bytes that it read from a process's pipe, in pieces that may end in mid-line and in
mid-character; lines are put together here and written whole, so two processes never share one.
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Mapping
from typing import BinaryIO

NAME_WIDTH = 12
MAX_LINE_BYTES = 16_384
LINES_KEPT = 20
COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)


class PrefixStream:
    """A circus stream (`{"class": "deploy.local.stream.PrefixStream", "name": ...}`) for one watcher's two pipes."""

    def __init__(self, *, name: str, out: BinaryIO | None = None, is_coloured: bool | None = None) -> None:
        self._out = out or sys.stdout.buffer
        coloured = self._out.isatty() if is_coloured is None else is_coloured
        colour = COLOURS[sum(name.encode()) % len(COLOURS)]
        # `engine-policy-0123456789ab` becomes `engine-789ab`.
        label = f"{name:<{NAME_WIDTH}}" if len(name) <= NAME_WIDTH else name[:7] + name[7 - NAME_WIDTH :]
        self._prefix = (f"\033[{colour}m{label}\033[0m | " if coloured else f"{label} | ").encode()
        self._parts: dict[tuple[int, str], bytes] = {}
        self._last: deque[str] = deque(maxlen=LINES_KEPT)

    def __call__(self, data: Mapping[str, object]) -> None:
        """Takes one piece: `data` (bytes or str), `pid` and `name` (stdout or stderr)."""
        piece = data["data"]
        raw = piece.encode() if isinstance(piece, str) else bytes(piece) if isinstance(piece, bytes) else b""
        source = (int(str(data.get("pid", 0))), str(data.get("name", "")))
        *lines, rest = (self._parts.pop(source, b"") + raw).split(b"\n")
        while len(rest) > MAX_LINE_BYTES:
            lines.append(rest[:MAX_LINE_BYTES])
            rest = rest[MAX_LINE_BYTES:]
        if rest:
            self._parts[source] = rest
        self._write(lines)

    def close(self) -> None:
        """Writes what came without a line end."""
        rest, self._parts = list(self._parts.values()), {}
        self._write(rest)

    def end_of(self, pid: int) -> None:
        """Writes what a process that ended left without a line end."""
        self._write([self._parts.pop(source) for source in list(self._parts) if source[0] == pid])

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The newest lines, oldest first."""
        return tuple(self._last)

    def _write(self, lines: list[bytes]) -> None:
        for line in lines:
            self._last.append(line.rstrip(b"\r").decode(errors="replace"))
        text = b"".join(self._prefix + line.rstrip(b"\r") + b"\n" for line in lines)
        # A terminal that hung up must not end the processes in disorder.
        with contextlib.suppress(OSError, ValueError):
            self._out.write(text)
            self._out.flush()
