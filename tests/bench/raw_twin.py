"""The raw ASGI twin: what the same server costs without a product. Benchmarks divide by it.

A text frame comes back as it is; `{"type":"stream","seconds":S,"per_s":P}` is answered by deltas at that pace.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

TEXT = " w017"
ID = "0190c9a0-0000-7000-8000-000000000000"


async def application(scope: Any, receive: Any, send: Any) -> None:
    """The ASGI application."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})
        return
    if scope["type"] != "websocket":
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        if message["text"].startswith('{"type":"stream"'):
            await stream(send, **{k: v for k, v in orjson.loads(message["text"]).items() if k != "type"})
        else:
            await send({"type": "websocket.send", "text": message["text"]})


async def stream(send: Any, *, seconds: float, per_s: float) -> None:
    """One delta per tick of an absolute schedule."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    for index in range(int(seconds * per_s)):
        await asyncio.sleep(max(0.0, began + index / per_s - loop.time()))
        event = {"message_id": ID, "offset": index * len(TEXT), "text": TEXT, "type": "reply.delta"}
        await send({"type": "websocket.send", "text": orjson.dumps(event).decode()})
