"""Redis: one asynchronous client per event loop, one synchronous client per process, and the names of our keys.

Redis only carries hints and short-lived state (rule 5): every caller here can live without it for a while.
"""

import asyncio
import time
from contextlib import suppress
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import redis
import redis.asyncio
from django.conf import settings

ENDPOINTS_KEY = "rapport:endpoints"
ENGINE_READY_KEY = "rapport:engine:ready"
ENGINE_REFUSED_KEY = "rapport:engine:refused"
KEEPER_WAKE_KEY = "rapport:engine:wake"  # a list of at most one word: the versions changed
WAKE_TTL_S = 10
SOCKET_TIMEOUT_S = 2.0
SILENT_S = 1.0
# `driver_info=None` below: else each connection looks up the library's version among the installed packages and tells
# it to Redis, a millisecond of CPU for each of the 60 that a burst of messages opens.

RedisError = redis.RedisError


class ImpatientRedis(redis.asyncio.Redis):
    """Waits once: after a call that ran into its timeout the next ones fail at once, for a second each time.

    A message and its reply ask Redis about ten times; one that hangs would take two seconds of each.
    """

    _silent_until_s = 0.0

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Raises RedisError, at once where Redis was silent a moment ago; one call a second finds out if it is."""
        if self._silent_until_s:
            if time.monotonic() < self._silent_until_s:
                raise redis.TimeoutError("Redis did not answer a moment ago")
            self._silent_until_s = time.monotonic() + SOCKET_TIMEOUT_S + SILENT_S
        try:
            answer = await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except redis.TimeoutError:
            self._silent_until_s = time.monotonic() + SILENT_S
            raise
        self._silent_until_s = 0.0
        return answer


_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, redis.asyncio.Redis] = WeakKeyDictionary()


def live_key(message_id: object) -> str:
    """Where the text so far of a running reply lies, for followers in other processes."""
    return f"rapport:live:{message_id}"


def redis_here() -> redis.asyncio.Redis:
    """The client of the running event loop."""
    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None:
        client = ImpatientRedis.from_url(
            settings.REDIS_URL,
            decode_responses=True,
            socket_timeout=SOCKET_TIMEOUT_S,
            socket_connect_timeout=SOCKET_TIMEOUT_S,
            max_connections=64,
            driver_info=None,
        )
        _clients[loop] = client
    return client


async def close_redis_here() -> None:
    """Close the running loop's client; called when the loop is about to end."""
    client = _clients.pop(asyncio.get_running_loop(), None)
    if client is not None:
        await client.aclose()


@cache
def redis_sync() -> redis.Redis:
    """The synchronous client of this process, for tasks and commands."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        decode_responses=True,
        socket_timeout=SOCKET_TIMEOUT_S,
        socket_connect_timeout=SOCKET_TIMEOUT_S,
    )


def wake_keeper(**_: Any) -> None:
    """Tell the engine's keeper that the versions changed; where Redis is away it sees so within two seconds itself."""
    with suppress(RedisError, OSError), redis_sync().pipeline() as pipe:
        pipe.lpush(KEEPER_WAKE_KEY, "versions")
        pipe.ltrim(KEEPER_WAKE_KEY, 0, 0)
        pipe.expire(KEEPER_WAKE_KEY, WAKE_TTL_S)
        pipe.execute()
