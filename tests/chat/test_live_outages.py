"""Running replies and their followers while Redis is away or hangs."""

import asyncio
import signal
import time

import pytest
import redis

from chat.store import ENDPOINTS_KEY, SOCKET_TIMEOUT_S
from deploy.local.services import PrivateRedis
from tests.chat.conftest import Room
from tests.chat.talks import is_whole, talk
from tests.fakes.engine import Script
from tests.fakes.web import WebProcess

pytestmark = pytest.mark.redis


def start(server: PrivateRedis, room: Room) -> None:
    """Redis again, and the directory in it, which the engine's keeper writes anew every two seconds."""
    server.start()
    with redis.Redis.from_url(server.url) as client:
        client.hset(ENDPOINTS_KEY, room.policy.name, room.engine.endpoint(slots=2).to_json())


async def test_redis_away_for_two_seconds_closes_no_socket_and_loses_no_word(
    own_redis: PrivateRedis, room: Room, elsewhere: WebProcess
) -> None:
    room.engine.script = Script(tokens=talk(150), gap_s=0.03)
    async with room.page() as page, elsewhere.page(room.token) as tab:
        await page.say("Tell me a lot.")
        await tab.until("reply.delta")
        own_redis.stop(signal.SIGKILL)
        away_s = time.monotonic()
        while time.monotonic() - away_s < 2.0:  # the reply goes on for its own socket
            await page.until("reply.delta", timeout_s=1.0)
        start(own_redis, room)
        back_s = time.monotonic()
        await tab.until("welcome")
        await tab.until("reply.delta")
        assert time.monotonic() - back_s < 2.0
        finished = await page.until("reply.finished", timeout_s=10)
        assert is_whole(finished, page)
        assert (await tab.until("reply.finished"))["sha256"] == finished["sha256"]
        for one in (page, tab):
            assert not [event for event in one.seen if event["type"] == "error"]
            await one.send({"type": "ping"})
            await one.until("pong")


@pytest.mark.parametrize("later_s", [0.2, 0.6])
async def test_reply_that_ends_soon_after_redis_is_back_ends_for_the_follower_elsewhere_too(
    own_redis: PrivateRedis, room: Room, elsewhere: WebProcess, later_s: float
) -> None:
    room.engine.script = Script(tokens=talk(2_000), gap_s=0.02)
    async with room.page() as page, elsewhere.page(room.token) as tab:
        await page.say("Tell me a lot.")
        started = await page.until("reply.started")
        await tab.until("reply.delta")
        own_redis.stop(signal.SIGKILL)
        await asyncio.sleep(1.1)  # the layer looks every second: it is the last to hear that Redis is back
        start(own_redis, room)
        await asyncio.sleep(later_s)
        await page.send({"type": "reply.stop", "message_id": started["message_id"]})
        finished = await page.until("reply.finished")
        async with asyncio.timeout(3):
            while True:
                event = await tab.next()
                if event["type"] == "reply.finished":
                    assert event["sha256"] == finished["sha256"]
                    return
                changes = event.get("changes") or [event.get("message") or {}]
                if any(change.get("status") == "stopped" for change in changes):
                    assert finished["message"] in changes
                    return


async def test_message_sent_while_redis_is_away_is_stored_and_answered(own_redis: PrivateRedis, room: Room) -> None:
    async with room.page() as page:
        await page.say("Before.")
        await page.until("reply.finished")
        own_redis.stop(signal.SIGKILL)
        started_s = time.monotonic()
        await page.say("Meanwhile.")
        finished = await page.until("reply.finished")
        assert finished["message"]["status"] == "complete"
        assert time.monotonic() - started_s < 3
        start(own_redis, room)


async def test_redis_that_hangs_delays_a_message_and_its_reply_by_its_timeout_once(
    own_redis: PrivateRedis, room: Room, elsewhere: WebProcess
) -> None:
    async with room.page() as page, elsewhere.page(room.token) as tab:
        await page.say("Hello.")
        await tab.until("reply.finished")
        with own_redis.hanging():
            started_s = time.monotonic()
            await page.say("Meanwhile.")
            finished = await page.until("reply.finished", timeout_s=5)
            assert finished["message"]["status"] == "complete"
            assert time.monotonic() - started_s < SOCKET_TIMEOUT_S + 2
        async with asyncio.timeout(5):  # in an event that Redis carried late, or by catching up
            while True:
                event = await tab.next()
                if finished["message"] in (event.get("message"), *event.get("changes", ())):
                    return


async def test_page_may_come_while_redis_is_away(own_redis: PrivateRedis, room: Room) -> None:
    async with room.page() as page:
        await page.say("Before.")
        await page.until("reply.finished")
    own_redis.stop(signal.SIGKILL)
    async with room.page() as late:
        welcome = next(event for event in late.seen if event["type"] == "welcome")
        assert len(welcome["changes"]) == 2
        start(own_redis, room)
