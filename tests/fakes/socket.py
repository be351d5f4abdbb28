"""A visitor's page without a browser: drives an ASGI socket application in the test's own event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Self

from chat.consumers import visitor_socket

ORIGIN = "http://testserver"


class SocketClient:
    """`async with SocketClient(token) as page:` says hello; `send`, `until` and `text_of` do the rest."""

    def __init__(
        self,
        token: str | None = None,
        *,
        last_seq: int = 0,
        origin: str | None = ORIGIN,
        address: str = "10.0.0.1",
        app: Callable[..., Any] = visitor_socket,
    ) -> None:
        headers = [] if origin is None else [(b"origin", origin.encode())]
        self._scope = {"type": "websocket", "path": "/ws/chat/", "headers": headers, "client": (address, 1)}
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._outgoing: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._app = app
        self._token = token
        self._last_seq = last_seq
        self.seen: list[dict[str, Any]] = []
        self.is_reading = asyncio.Event()
        self.is_reading.set()

    async def __aenter__(self) -> Self:
        await self.connect()
        if self._token is not None:
            await self.send({"type": "hello", "token": self._token, "last_seq": self._last_seq})
            await self.until("welcome")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.disconnect()

    async def connect(self) -> None:
        self._task = asyncio.create_task(self._app(self._scope, self._incoming.get, self._take))
        await self._incoming.put({"type": "websocket.connect"})

    async def _take(self, message: dict[str, Any]) -> None:
        await self.is_reading.wait()
        await self._outgoing.put(message)

    async def disconnect(self) -> None:
        await self._incoming.put({"type": "websocket.disconnect", "code": 1006})
        await asyncio.wait_for(asyncio.gather(self._task, return_exceptions=True), timeout=5)

    async def send(self, event: Mapping[str, Any]) -> None:
        await self.send_text(json.dumps(event))

    async def send_text(self, text: str) -> None:
        await self._incoming.put({"type": "websocket.receive", "text": text})

    async def send_bytes(self, data: bytes) -> None:
        await self._incoming.put({"type": "websocket.receive", "bytes": data})

    async def next(self, timeout_s: float = 5.0) -> dict[str, Any]:
        """The next event; a close comes as {"type": "close", "code": ...}."""
        while True:
            message = await asyncio.wait_for(self._outgoing.get(), timeout=timeout_s)
            if message["type"] == "websocket.send":
                event: dict[str, Any] = json.loads(message["text"])
                self.seen.append(event)
                return event
            if message["type"] == "websocket.close":
                return {"type": "close", "code": message.get("code", 1000)}

    async def until(self, kind: str, timeout_s: float = 8.0, **fields: Any) -> dict[str, Any]:
        """The next event of this type whose fields equal these."""
        async with asyncio.timeout(timeout_s):
            while True:
                event = await self.next(timeout_s)
                if event["type"] == kind and all(event.get(key) == value for key, value in fields.items()):
                    return event

    async def say(self, text: str, client_id: str | None = None) -> dict[str, Any]:
        """Send a message and wait for its acknowledgement."""
        client_id = client_id or f"c-{len(self.seen)}-{abs(hash(text)) % 10**8}"
        await self.send({"type": "message.send", "client_id": client_id, "text": text})
        return await self.until("message.accepted", client_id=client_id)

    async def quiet(self, seconds: float) -> list[dict[str, Any]]:
        """Everything that arrives within the time."""
        events: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout(seconds):
                while True:
                    events.append(await self.next(seconds))
        except TimeoutError:
            return events

    def text_of(self, message_id: str) -> str:
        """The text that the deltas seen so far make up, applied as a page applies them."""
        text = ""
        for event in self.seen:
            if event["type"] == "welcome" and event.get("live") and event["live"]["message_id"] == message_id:
                text = event["live"]["text"]
            if event["type"] == "reply.delta" and event["message_id"] == message_id:
                assert event["offset"] <= len(text), "a gap that the page would have to ask about"
                text += event["text"][len(text) - event["offset"] :] if event["offset"] < len(text) else event["text"]
        return text
