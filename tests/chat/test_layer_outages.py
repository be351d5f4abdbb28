"""The hub's link while Redis is away, hangs or lost its listeners: nothing waits, and followers catch up afterwards."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from channels.layers import get_channel_layer

from chat.events import conversation_group, layer_message
from chat.store import close_redis_here, redis_here
from deploy.local.services import PrivateRedis
from tests.fakes.listener import TALK, Listener

pytestmark = pytest.mark.redis


@pytest.fixture(autouse=True)
async def clean(clean_redis: None) -> AsyncIterator[None]:
    yield
    await close_redis_here()


async def test_sending_never_waits_and_never_raises_while_redis_is_away(own_redis: PrivateRedis) -> None:
    async with Listener() as one:
        await asyncio.sleep(0.1)
        own_redis.stop(signal.SIGKILL)
        started_s = time.monotonic()
        for number in range(500):
            one.link.send(TALK, str(number))
            one.link.join(uuid4())
            one.link.keep_live_text(TALK, "text", ttl_s=5)
        await one.link.ask_to_stop("somebody", TALK)
        assert time.monotonic() - started_s < 0.5
        await asyncio.sleep(0.3)


@pytest.mark.parametrize("away_s", [0.1, 0.7, 1.15, 2.0])
async def test_after_redis_was_away_nothing_is_lost_once_followers_were_told(
    own_redis: PrivateRedis, away_s: float
) -> None:
    async with Listener() as one, Listener() as other:
        await other.until_joined(one)
        own_redis.stop(signal.SIGKILL)
        await asyncio.sleep(away_s)
        own_redis.start()
        back_s = time.monotonic()
        await asyncio.wait_for(asyncio.gather(one.recovered.wait(), other.recovered.wait()), 5)
        assert time.monotonic() - back_s < 2.0
        one.link.send(TALK, "first words after the outage")
        await other.until_heard(1, timeout_s=1.0)
        assert other.frames == ["first words after the outage"]


async def test_followers_are_told_as_soon_as_redis_answers_though_the_library_sleeps(own_redis: PrivateRedis) -> None:
    async with Listener() as one, Listener() as other:
        await other.until_joined(one)
        own_redis.stop(signal.SIGKILL)
        await asyncio.sleep(1.1)  # every listener has just failed for the second time and sleeps for a second
        own_redis.start()
        back_s = time.monotonic()
        await asyncio.wait_for(asyncio.gather(one.recovered.wait(), other.recovered.wait()), 5)
        assert time.monotonic() - back_s < 0.5


async def test_conversation_joined_while_redis_is_away_is_heard_afterwards(own_redis: PrivateRedis) -> None:
    async with Listener() as one, Listener() as other:
        await asyncio.sleep(0.1)
        own_redis.stop(signal.SIGKILL)
        await asyncio.sleep(0.2)
        other.link.join(TALK)
        await asyncio.sleep(0.6)
        own_redis.start()
        await asyncio.wait_for(other.recovered.wait(), 5)
        one.link.send(TALK, "heard")
        await other.until_heard(1)


async def test_process_that_started_while_redis_was_away_hears_afterwards(own_redis: PrivateRedis) -> None:
    own_redis.stop(signal.SIGKILL)
    async with Listener() as one, Listener() as other:
        other.link.join(TALK)
        await asyncio.sleep(0.3)
        own_redis.start()
        await asyncio.wait_for(other.recovered.wait(), 5)
        one.link.send(TALK, "heard")
        await other.until_heard(1)


async def test_another_server_under_the_same_address_is_noticed(own_redis: PrivateRedis) -> None:
    async with Listener() as one, Listener() as other:
        await other.until_joined(one)
        own_redis.stop(signal.SIGKILL)
        own_redis.start()  # quicker than the link looks
        await asyncio.wait_for(other.recovered.wait(), 5)


async def test_quiet_link_tells_nobody_to_catch_up() -> None:
    async with Listener() as one:
        await asyncio.sleep(1.3)
        assert not one.recovered.is_set()


async def test_loop_that_was_busy_for_a_while_tells_nobody_to_catch_up() -> None:
    async with Listener() as one:
        await asyncio.sleep(0.3)
        time.sleep(0.8)
        await asyncio.sleep(0.6)
        assert not one.recovered.is_set()


async def test_subscription_that_was_cut_is_noticed() -> None:
    async with Listener() as one, Listener() as other:
        await other.until_joined(one)
        await asyncio.sleep(0.6)
        layer = get_channel_layer()
        (shard,) = layer._get_layer()._shards
        await shard._pubsub.unsubscribe()  # as if the server had forgotten us, without a word
        await asyncio.sleep(0.6)
        await shard._pubsub.subscribe(*shard._subscribed_to)
        await asyncio.wait_for(other.recovered.wait(), 3)


async def test_event_that_fell_between_a_cut_and_the_next_subscription_is_noticed(own_redis: PrivateRedis) -> None:
    """Echoes go out each half second: a subscription that is taken up sooner loses an event and no echo."""
    async with Listener() as one, Listener() as other:
        await other.until_joined(one)
        heard = other.link._echo_heard
        async with asyncio.timeout(2):
            while other.link._echo_heard == heard:
                await asyncio.sleep(0.005)
        await redis_here().client_kill_filter(_type="pubsub")
        await get_channel_layer().group_send(conversation_group(TALK), layer_message(TALK, "lost", origin=one.owner))
        await asyncio.sleep(0.02)
        other.link.join(uuid4())  # makes the connection again at once
        await asyncio.wait_for(other.recovered.wait(), 3)
        assert other.frames == []
        one.link.send(TALK, "afterwards")
        await other.until_heard(1)


async def test_connection_that_is_dead_and_does_not_know_it_is_made_again() -> None:
    async with Listener() as one, Listener() as other:
        await other.until_joined(one)
        (shard,) = get_channel_layer()._get_layer()._shards
        await shard._pubsub.connection.send_command("UNSUBSCRIBE")  # our side still believes that it listens
        await asyncio.wait_for(other.recovered.wait(), 6)
        one.link.send(TALK, "heard")
        await other.until_heard(1)


async def test_send_that_failed_is_made_known_to_those_who_missed_it_alone() -> None:
    async with Listener() as one, Listener() as other:
        await other.until_joined(one)

        async def fail() -> None:
            raise ConnectionError

        one.link._later(fail(), about=TALK)
        one.link._later(fail())  # no event: nobody misses it
        await asyncio.wait_for(other.recovered.wait(), 2)
        assert not one.recovered.is_set()
        assert one.link._unsent == set()


async def test_redis_that_hangs_ends_every_wait_and_followers_catch_up(own_redis: PrivateRedis) -> None:
    async with Listener() as one, Listener() as other:
        await other.until_joined(one)
        with own_redis.hanging():
            one.link.send(TALK, "never sent, or very late")
            async with asyncio.timeout(3.5):
                while not one.link._unsent:
                    await asyncio.sleep(0.05)
        await asyncio.wait_for(asyncio.gather(one.recovered.wait(), other.recovered.wait()), 4)
        other.events.clear()
        one.link.send(TALK, "first words afterwards")
        await other.until_heard(1)
        assert other.frames == ["first words afterwards"]
