"""Runs a protocol of ours as a process of its own at a loopback port: what the benchmarks' doubles have in common."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Sequence


def run_at_port(protocol: Callable[[], asyncio.Protocol], *, prog: str, arguments: Sequence[str] | None) -> None:
    """`--port N`: serve until the process ends."""
    import uvloop

    parser = argparse.ArgumentParser(prog=prog)
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(_serve(protocol, parser.parse_args(arguments).port))


async def _serve(protocol: Callable[[], asyncio.Protocol], port: int) -> None:
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()
