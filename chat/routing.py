"""Which socket path leads to which consumer, and what a web process does when it starts and stops."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from channels.routing import URLRouter
from django.urls import path

from chat.checks import OriginsUnsafe, refuse_unsafe_origins
from chat.consumers import visitor_socket
from chat.live import hub_here, stop_hub_here
from chat.services.database import run_db
from chat.staff_consumers import staff_socket
from chat.talk import close_loop

_ROUTES: tuple[tuple[str, Any], ...] = (("ws/chat/", visitor_socket), ("ws/staff/", staff_socket))
sockets = URLRouter([path(route, application) for route, application in _ROUTES])


async def lifespan(
    scope: Mapping[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Start the hub with the process, and end it with its replies' texts kept."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                await run_db(refuse_unsafe_origins)
            except OriginsUnsafe as error:
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await hub_here()
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await stop_hub_here()
            await close_loop()
            await send({"type": "lifespan.shutdown.complete"})
            return
