"""Waits until the product says that it is ready. Used by `supervise` and `product`; standard library only."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import Callable
from urllib.parse import urlsplit

PAUSE_S = 1.0


def look(address: str, *, timeout_s: float = 8.0) -> str | None:
    """None where `GET /readyz` answers 200, else what is missing in one line."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeout_s)
    try:
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        return f"no answer yet ({type(error).__name__})"
    finally:
        connection.close()
    return None if response.status == 200 else f"status {response.status}: {_missing_parts(body)}"


def _missing_parts(body: bytes) -> str:
    """What is not well, and why: `engine: the keeper is away; worker: no answer within 2 s`."""
    try:
        missing = [f"{part['name']}: {part['why']}" for part in json.loads(body)["parts"] if not part["ok"]]
    except (ValueError, TypeError, KeyError):
        return f"{len(body)} bytes that are no answer of ours"
    return "; ".join(missing)[:500]


async def wait_until_ready(address: str, *, tell: Callable[[str], None], tell_every_s: float = 10.0) -> None:
    """Returns once the address is ready; `tell` hears now and then what is still missing."""
    started = told = time.monotonic()
    while (missing := await asyncio.to_thread(look, address)) is not None:
        now = time.monotonic()
        if now - told >= tell_every_s:
            told = now
            tell(f"not ready after {now - started:.0f} s: {missing}")
        await asyncio.sleep(PAUSE_S)
