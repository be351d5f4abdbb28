"""A web process without a process: a hub of its own, with its own owner, in the test's event loop.

    async with WebProcess() as other, other.page(token) as page: ...

Hubs share the loop's Redis client and channel layer but nothing else, so what one tells the other goes through Redis.
The hub that started last hears of commits (`events.use_publisher`), as the process that made the commit would.
"""

from __future__ import annotations

import asyncio
from typing import Any, Self

from chat import events, live
from chat.consumers import VisitorSocket, client_address
from chat.layer import end_tasks
from chat.live import Hub
from tests.fakes.socket import SocketClient


class WebProcess:
    """`die` is a SIGKILL: nothing is said, nothing is written. Leaving the context is an orderly stop."""

    def __init__(self) -> None:
        self.hub = Hub()
        self._is_dead = False

    async def __aenter__(self) -> Self:
        await self.hub.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_dead:
            await self.hub.stop()

    def page(self, token: str, **options: Any) -> SocketClient:
        return SocketClient(token, app=self._serve, **options)

    def serve_this_loop(self) -> None:
        """Be the process that `SocketClient` and `room.page()` reach by themselves."""
        live._hubs[asyncio.get_running_loop()] = self.hub
        events.use_publisher(self.hub._publish_from_thread)

    async def die(self) -> None:
        self._is_dead = True
        await end_tasks([*self.hub._tasks, *self.hub.link._tasks])

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        socket = VisitorSocket(self.hub, send, address=client_address(scope))
        try:
            await socket.serve(receive)
        finally:
            socket.leave()
