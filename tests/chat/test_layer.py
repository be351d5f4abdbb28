"""The hub's link: hints from process to process over a real Redis, in order, never waited for, and tidily ended."""

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from channels.layers import get_channel_layer

from chat import layer as layers
from chat.events import conversation_group, layer_message
from chat.layer import end_tasks, process_group
from chat.store import close_redis_here, live_key, redis_here
from tests.fakes.listener import TALK, Listener

pytestmark = pytest.mark.redis


@pytest.fixture(autouse=True)
async def clean(clean_redis: None) -> AsyncIterator[None]:
    yield
    await close_redis_here()


async def test_events_arrive_elsewhere_in_order_and_not_at_their_sender() -> None:
    async with Listener() as one, Listener() as other:
        one.link.join(TALK)
        await other.until_joined(one)
        for number in range(50):
            one.link.send(TALK, str(number))
        await other.until_heard(50)
        assert other.events == [(TALK, str(number)) for number in range(50)]
        assert one.events == []


async def test_150_messages_at_once_all_arrive_at_a_process_that_is_busy() -> None:
    """B2, A6: the other layer of Redis keeps 100 for a subscriber that does not read, and drops the rest silently."""

    async def say_all() -> None:
        layer = get_channel_layer()
        for number in range(150):
            await layer.group_send(conversation_group(TALK), layer_message(TALK, str(number), origin="elsewhere"))

    async with Listener() as one, Listener() as other:
        await other.until_joined(one)
        speaker = threading.Thread(target=asyncio.run, args=(say_all(),))
        speaker.start()
        speaker.join(timeout=10)  # this loop reads nothing meanwhile
        await other.until_heard(150)
        assert other.frames == [str(number) for number in range(150)]


async def test_5000_events_to_a_process_that_is_busy_all_arrive() -> None:
    async with Listener() as one, Listener() as other:
        await other.until_joined(one)
        for number in range(5_000):
            one.link.send(TALK, str(number))
        time.sleep(0.2)  # nobody in this loop reads
        await other.until_heard(5_000, timeout_s=15)
        assert other.frames == [str(number) for number in range(5_000)]


async def test_event_for_staff_alone_never_reaches_a_visitor() -> None:
    async with Listener() as one, Listener() as other:
        await other.until_joined(one)
        one.link.send(TALK, "note", is_for_visitor=False)
        one.link.send(TALK, "reply")
        await other.until_heard(1)
        assert other.frames == ["reply"]


async def test_event_of_a_task_or_command_reaches_every_process() -> None:
    async with Listener() as one, Listener() as other:
        await one.until_joined(other)
        await other.until_joined(one)
        await get_channel_layer().group_send(conversation_group(TALK), layer_message(TALK, "from a task"))
        await asyncio.gather(one.until_heard(1), other.until_heard(1))
        assert one.frames == other.frames == ["from a task"]


async def test_nothing_arrives_before_joining_or_after_parting() -> None:
    async with Listener() as one, Listener() as other:
        one.link.send(TALK, "too early")
        await other.until_joined(one)
        one.link.send(TALK, "in time")
        await other.until_heard(1)
        other.link.part(TALK)
        other.link.part(TALK)
        await asyncio.sleep(0.1)
        one.link.send(TALK, "too late")
        await asyncio.sleep(0.2)
        assert other.frames == ["in time"]


async def test_stop_reaches_the_process_that_was_named_and_no_other() -> None:
    message_id = uuid4()
    async with Listener("host:1:aa") as one, Listener("host:2:bb") as other, Listener("host:1:ab") as third:
        await asyncio.sleep(0.2)
        await third.link.ask_to_stop(one.owner, message_id)
        async with asyncio.timeout(3):
            while not one.stops:
                await asyncio.sleep(0.01)
        assert one.stops == [message_id]
        assert other.stops == third.stops == []


@pytest.mark.parametrize("owner", ["host:1:ab", "a" * 200, "host name/1:2", "box.local:77:00ff"])
def test_group_of_a_process_is_a_name_that_every_layer_takes(owner: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_.-]{1,99}", process_group(owner))


async def test_text_so_far_is_kept_for_a_while() -> None:
    async with Listener() as one:
        one.link.keep_live_text(TALK, "so far", ttl_s=30)
        one.link.keep_live_text(TALK, "so far and on", ttl_s=30)
        async with asyncio.timeout(3):
            while await redis_here().get(live_key(TALK)) != "so far and on":
                await asyncio.sleep(0.01)
        assert 0 < await redis_here().ttl(live_key(TALK)) <= 30


async def test_waiting_sends_are_bounded_and_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "MAX_WAITING", 10)
    async with Listener() as one, Listener() as other:
        await other.until_joined(one)
        for number in range(100):
            one.link.send(TALK, str(number))
        await other.until_heard(10)
        await asyncio.sleep(0.1)
        assert other.frames == [str(number) for number in range(90, 100)]


async def test_stopped_link_leaves_no_task_and_hears_nothing() -> None:
    async with Listener() as one:
        async with Listener() as other:
            await other.until_joined(one)
        assert all(task.done() for task in other.link._tasks)
        one.link.send(TALK, "anybody")
        await asyncio.sleep(0.2)
        assert other.events == []


async def test_tasks_end_even_if_a_cancellation_gets_lost() -> None:
    async def stubborn() -> None:
        lost = 0
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                lost += 1
                if lost > 1:
                    raise

    tasks = [asyncio.create_task(stubborn()) for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.wait_for(end_tasks(tasks), 3)
    assert all(task.cancelled() for task in tasks)
    await end_tasks([])
