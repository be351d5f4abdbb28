"""The channel layer: Redis pub/sub whose waits have a limit, and which knows when a connection was cut.

Its library takes up the subscriptions again by itself and tells nobody; what was published meanwhile is gone (B3).
`layer` and the staff's sockets ask `cuts_here`, and drop connections on which nothing is heard any more.
"""

import asyncio
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary, WeakSet

from channels_redis.pubsub import RedisPubSubChannelLayer
from redis.asyncio import Connection

from chat.store import SOCKET_TIMEOUT_S


@dataclass(eq=False, slots=True)
class _Links:
    """The connections of one event loop: one that listens, one that publishes."""

    made: WeakSet[Connection] = field(default_factory=WeakSet)
    cuts: int = 0


class PubSubLayer(RedisPubSubChannelLayer):  # type: ignore[misc]  # the library has no types
    """channels_redis' layer; `hosts` are URLs."""

    def __init__(self, *, hosts: list[str]) -> None:
        self._links: WeakKeyDictionary[asyncio.AbstractEventLoop, _Links] = WeakKeyDictionary()
        limits = {
            "socket_timeout": SOCKET_TIMEOUT_S,
            "socket_connect_timeout": SOCKET_TIMEOUT_S,
            "driver_info": None,
        }
        super().__init__(hosts=[{"address": url, "redis_connect_func": self._note, **limits} for url in hosts])

    def cuts_here(self) -> int:
        """How often a connection of the running loop had to be made again: each time something may be lost."""
        return self._links_here().cuts

    async def reconnect_here(self) -> None:
        """Drop the running loop's connections; they are made again at once, with their subscriptions."""
        for connection in list(self._links_here().made):
            await connection.disconnect(nowait=True)

    async def listen_at_once_here(self) -> None:
        """Redis answers again: let a listener without a connection try now. The library lets it sleep for a second.

        One that has its connection back is left alone: it may hold what was published since.
        """
        for shard in self._get_layer()._shards:
            sleeping, link = shard._receive_task, shard._pubsub and shard._pubsub.connection
            if sleeping is None or link is None or link.is_connected:
                continue
            shard._receive_task = None
            sleeping.cancel()
            await asyncio.gather(sleeping, return_exceptions=True)
            shard._ensure_receiver()

    def _links_here(self) -> _Links:
        return self._links.setdefault(asyncio.get_running_loop(), _Links())

    async def _note(self, connection: Connection) -> None:
        """Log in, as a connection does by itself where nobody asks to be called."""
        await connection.on_connect()
        links = self._links_here()
        links.cuts += connection in links.made
        links.made.add(connection)
