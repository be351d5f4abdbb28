"""The endpoint directory in Redis: which version is served where, which cannot be and why, and whether all is ready.

The keeper writes it, `chat.policies` reads it. It is rewritten whole every round, so a Redis that was restarted heals.
Beside it lies the word that wakes the keeper (`chat.store.wake_keeper`), a hint like all that travels through Redis.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any, Final

import redis.asyncio
from redis.exceptions import RedisError

from chat.store import ENDPOINTS_KEY, ENGINE_READY_KEY, ENGINE_REFUSED_KEY, KEEPER_WAKE_KEY
from rubric import Endpoint

READY_TTL_S: Final = 6
SOCKET_TIMEOUT_S: Final = 2.0
HEED_S: Final = 1.0  # one question for the word; shorter than the socket's own timeout


class EndpointDirectory:
    """The hash of endpoints by version, and for 6 s at a time the hash of refusals (name -> why) and the ready key."""

    def __init__(self, redis_url: str) -> None:
        self._redis = redis.asyncio.Redis.from_url(
            redis_url,
            decode_responses=True,
            socket_timeout=SOCKET_TIMEOUT_S,
            socket_connect_timeout=SOCKET_TIMEOUT_S,
        )

    async def write(
        self, endpoints: Mapping[str, Endpoint], *, is_ready: bool, refusals: Mapping[str, str] | None = None
    ) -> bool:
        """Replace the directory in one step; False where Redis is away (the next round writes it again)."""
        rows: Any = {name: endpoint.to_json() for name, endpoint in endpoints.items()}
        whys: Any = dict(refusals or {})
        try:
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.delete(ENDPOINTS_KEY, ENGINE_REFUSED_KEY)
                if rows:
                    pipe.hset(ENDPOINTS_KEY, mapping=rows)
                if whys:
                    pipe.hset(ENGINE_REFUSED_KEY, mapping=whys)
                    pipe.expire(ENGINE_REFUSED_KEY, READY_TTL_S)
                if is_ready:
                    pipe.set(ENGINE_READY_KEY, "1", ex=READY_TTL_S)
                else:
                    pipe.delete(ENGINE_READY_KEY)
                await pipe.execute()
        except (RedisError, OSError):
            return False
        return True

    async def read(self) -> dict[str, Endpoint]:
        """What an earlier keeper wrote; {} where Redis is away. Rows that cannot be read are left out."""
        try:
            rows = await self._redis.hgetall(ENDPOINTS_KEY)
        except (RedisError, OSError):
            return {}
        found = {}
        for name, row in rows.items():
            try:
                found[str(name)] = Endpoint.from_json(row)
            except (ValueError, TypeError):
                continue
        return found

    async def heed(self, wake: asyncio.Event) -> None:
        """Set `wake` whenever somebody says that the versions changed. Runs until it is cancelled."""
        while True:
            try:
                if await self._redis.blpop([KEEPER_WAKE_KEY], timeout=HEED_S):
                    wake.set()
            except (RedisError, OSError):
                await asyncio.sleep(HEED_S)

    async def close(self) -> None:
        """Say that nobody keeps the engine any more, and let go."""
        with contextlib.suppress(RedisError, OSError):
            await self._redis.delete(ENGINE_READY_KEY)
        await self._redis.aclose()
