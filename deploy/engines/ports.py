"""A free port of the loopback, for a server that is about to be started."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port that nobody listens on now; the caller uses it at once."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
