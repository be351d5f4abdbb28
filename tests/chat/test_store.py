"""The client of Redis: one that hangs costs its timeout once, not at every question."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from chat import store
from chat.store import RedisError, close_redis_here, redis_here
from deploy.local.services import PrivateRedis

pytestmark = pytest.mark.redis


@pytest.fixture(autouse=True)
async def closed_again() -> AsyncIterator[None]:
    yield
    await close_redis_here()


async def test_redis_that_hangs_is_waited_for_once_and_asked_again_a_second_later(own_redis: PrivateRedis) -> None:
    assert await redis_here().set("answer", "42")
    with own_redis.hanging():
        for most_s in (2.5, *[0.01] * 20):
            started_s = time.monotonic()
            with pytest.raises(RedisError):
                await redis_here().get("answer")
            assert time.monotonic() - started_s < most_s
    await asyncio.sleep(store.SILENT_S)
    assert await redis_here().get("answer") == "42"
    assert await redis_here().get("answer") == "42"


async def test_one_call_finds_out_whether_it_still_hangs_and_the_others_do_not_wait(
    own_redis: PrivateRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "SOCKET_TIMEOUT_S", 0.3)
    monkeypatch.setattr(store, "SILENT_S", 0.1)
    with own_redis.hanging():
        with pytest.raises(RedisError):
            await redis_here().ping()
        await asyncio.sleep(0.1)
        finding_out: asyncio.Future[bool] = asyncio.ensure_future(redis_here().ping())
        await asyncio.sleep(0)
        started_s = time.monotonic()
        for _ in range(10):
            with pytest.raises(RedisError):
                await redis_here().ping()
        assert time.monotonic() - started_s < 0.1
        with pytest.raises(RedisError):
            await finding_out
