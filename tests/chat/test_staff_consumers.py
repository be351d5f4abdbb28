"""The staff's socket, frame by frame, over a real channel layer."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.test import Client

from chat.events import conversation_group, layer_message, lost_message
from chat.live import stop_hub_here
from chat.models import User
from chat.services.staff import post_staff_message
from chat.staff_consumers import staff_socket
from chat.store import close_redis_here
from tests.factories import make_conversation, make_message, make_user
from tests.fakes.socket import SocketClient

pytestmark = pytest.mark.redis


@pytest.fixture(autouse=True)
async def _closed_afterwards(transactional_db: None, clean_redis: None) -> AsyncIterator[None]:
    yield
    await stop_hub_here()
    await close_redis_here()


def log_in(user: User) -> str:
    client = Client()
    client.force_login(user)
    return str(client.cookies["sessionid"].value)


class StaffPage(SocketClient):
    """A staff page without a browser."""

    def __init__(self, cookie: str, *, origin: str | None = "http://testserver") -> None:
        super().__init__(None, origin=origin, app=staff_socket)
        if cookie:
            self._scope["headers"].append((b"cookie", f"sessionid={cookie}; theme=dark".encode()))  # type: ignore[attr-defined]


@asynccontextmanager
async def page_of(role: str = "reviewer", **options: Any) -> AsyncIterator[StaffPage]:
    user = await sync_to_async(make_user)(role, **options)
    async with StaffPage(await sync_to_async(log_in)(user)) as page:
        yield page


async def tell(conversation_id: UUID, event: dict[str, Any], *, is_for_visitor: bool = True) -> None:
    message = layer_message(conversation_id, json.dumps(event), is_for_visitor=is_for_visitor)
    await get_channel_layer().group_send(conversation_group(conversation_id), message)


async def follow(page: StaffPage, conversation_id: UUID) -> str:
    topic = f"conversation:{conversation_id}"
    await page.send({"type": "subscribe", "topic": topic})
    await page.until("subscribed", topic=topic)
    return topic


async def test_follower_gets_the_conversations_events_redacted() -> None:
    conversation = await sync_to_async(make_conversation)()
    await sync_to_async(make_message)(conversation, "My name is Anna.")
    async with page_of() as page:
        topic = await follow(page, conversation.pk)
        await tell(conversation.pk, {"type": "message.changed", "message": {"id": "m1", "text": "Anna: a@example.org"}})
        await tell(conversation.pk, {"type": "turn.graded", "message_id": "m1"}, is_for_visitor=False)
        changed = await page.until("topic.event", topic=topic)
        graded = await page.until("topic.event", topic=topic)
    assert changed["event"]["message"]["text"] == "[name_1]: [email_1]"
    assert graded["event"] == {"type": "turn.graded", "message_id": "m1"}


async def test_unfollowed_conversations_stay_silent() -> None:
    one, other = await sync_to_async(make_conversation)(), await sync_to_async(make_conversation)()
    async with page_of() as page:
        topic = await follow(page, one.pk)
        await tell(other.pk, {"type": "turn.graded"})
        await page.send({"type": "unsubscribe", "topic": topic})
        await page.until("unsubscribed", topic=topic)
        await tell(one.pk, {"type": "turn.graded"})
        await page.send({"type": "ping"})
        assert (await page.next())["type"] == "pong"
        with pytest.raises(TimeoutError):
            await page.next(timeout_s=0.3)


async def test_a_staff_message_reaches_those_who_follow() -> None:
    conversation, author = await sync_to_async(make_conversation)(), await sync_to_async(make_user)()
    async with page_of() as page:
        topic = await follow(page, conversation.pk)
        await sync_to_async(post_staff_message)(conversation.pk, user=author, client_id="c1", text="I am here.")
        event = (await page.until("topic.event", topic=topic))["event"]
    assert (event["type"], event["message"]["text"]) == ("message.changed", "I am here.")


async def test_inbox_hears_of_alerts() -> None:
    async with page_of() as page:
        await page.send({"type": "subscribe", "topic": "inbox"})
        await page.until("subscribed", topic="inbox")
        event = {"type": "alert.raised", "id": 1}
        await get_channel_layer().group_send(
            "inbox", {"type": "topic.event", "topic": "inbox", "event": json.dumps(event)}
        )
        assert (await page.until("topic.event", topic="inbox"))["event"] == event


async def test_typing_is_shown_to_others_and_not_to_oneself() -> None:
    conversation = await sync_to_async(make_conversation)()
    async with page_of(display_name="Robin") as robin, page_of(display_name="Kim") as kim:
        topic = await follow(robin, conversation.pk)
        await follow(kim, conversation.pk)
        await robin.send({"type": "typing", "topic": topic})
        event = (await kim.until("topic.event"))["event"]
        assert event == {"who": "Robin", "is_typing": True, "type": "presence"}
        with pytest.raises(TimeoutError):
            await robin.next(timeout_s=0.3)


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", None, "http://sub.testserver", "http://testserver:81", "https://testserver"],
)
async def test_foreign_origin_is_refused_before_the_handshake_even_with_a_good_cookie(origin: str | None) -> None:
    cookie = await sync_to_async(lambda: log_in(make_user()))()
    async with StaffPage(cookie, origin=origin) as page:
        assert await page._outgoing.get() == {"type": "websocket.close", "code": 4403}


@pytest.mark.parametrize(("role", "code"), [("trainer", 4403), ("promoter", 4403), ("", 4403)])
async def test_a_role_without_the_right_is_closed_with_4403(role: str, code: int) -> None:
    async with page_of(role) as page:
        assert await page.next() == {"type": "close", "code": code}


@pytest.mark.parametrize("cookie", ["", "nonsense", "x" * 5_000, '"; =;;'])
async def test_without_a_log_in_the_socket_is_closed_with_4401(cookie: str) -> None:
    async with StaffPage(cookie) as page:
        assert await page.next() == {"type": "close", "code": 4401}


async def test_a_visitor_token_opens_nothing_here(transactional_db: None) -> None:
    async with StaffPage("") as page:
        await page.send({"type": "hello", "token": "r1.a.b", "last_seq": 0})
        assert await page.next() == {"type": "close", "code": 4401}


@pytest.mark.parametrize(("change", "code"), [({"is_active": False}, 4401), ({"role": "trainer"}, 4403)])
async def test_rights_that_ended_end_the_next_subscription(change: dict[str, Any], code: int) -> None:
    conversation = await sync_to_async(make_conversation)()
    user = await sync_to_async(make_user)()
    async with StaffPage(await sync_to_async(log_in)(user)) as page:
        await page.send({"type": "ping"})
        await page.until("pong")
        await User.objects.filter(pk=user.pk).aupdate(**change)
        await page.send({"type": "subscribe", "topic": f"conversation:{conversation.pk}"})
        assert await page.next() == {"type": "close", "code": code}


async def test_unknown_topics_are_an_error_and_the_socket_lives_on() -> None:
    async with page_of() as page:
        for topic in ("conversation:5f6b2f0e-7d0e-4b6e-9a55-0d2f6f0a1b2c", "run:1", "", "x" * 500):
            await page.send({"type": "subscribe", "topic": topic})
            assert (await page.next())["code"] == "not_found"
        await page.send({"type": "ping"})
        assert (await page.next())["type"] == "pong"


async def test_three_malformed_frames_are_forgiven_and_the_fourth_closes() -> None:
    async with page_of() as page:
        for frame in ("{", "[1]", '{"type": "dance"}'):
            await page.send_text(frame)
            assert (await page.next())["code"] == "malformed"
        await page.send_bytes(b"\x00")
        assert await page.next() == {"type": "close", "code": 4400}


@pytest.mark.parametrize("frame", ["[" * 100_000, "x" * 70_000, '{"type": NaN}', '{"type": 5}', '"\\ud83d"'])
async def test_any_frame_is_an_answer_and_never_a_crash(frame: str) -> None:
    async with page_of() as page:
        await page.send_text(frame)
        assert (await page.next())["code"] == "malformed"
        await page.send({"type": "ping"})
        assert (await page.next())["type"] == "pong"


async def test_after_redis_was_replaced_every_topic_is_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """B3: pub/sub replays nothing, so what was published meanwhile must be fetched."""
    monkeypatch.setattr("chat.staff_consumers.WATCH_S", 0.05)
    conversation = await sync_to_async(make_conversation)()
    runs = iter(["one", "one", "two"])

    class Redis:
        async def info(self, _section: str) -> dict[str, str]:
            return {"run_id": next(runs, "two")}

    monkeypatch.setattr("chat.staff_consumers.redis_here", Redis)
    async with page_of() as page:
        await page.send({"type": "subscribe", "topic": f"conversation:{conversation.pk}"})
        assert (await page.until("topic.resync"))["topic"] == f"conversation:{conversation.pk}"


async def test_after_a_connection_of_the_layer_was_cut_every_topic_is_loaded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("chat.staff_consumers.WATCH_S", 0.05)
    conversation = await sync_to_async(make_conversation)()
    async with page_of() as page:
        topic = await follow(page, conversation.pk)
        await get_channel_layer().reconnect_here()
        await page.until("topic.resync", topic=topic)


async def test_event_that_went_nowhere_has_its_topic_loaded_again() -> None:
    conversation = await sync_to_async(make_conversation)()
    async with page_of() as page:
        topic = await follow(page, conversation.pk)
        message = lost_message(conversation.pk, origin="elsewhere")
        await get_channel_layer().group_send(conversation_group(conversation.pk), message)
        await page.until("topic.resync", topic=topic)


async def test_topics_are_left_when_the_socket_goes() -> None:
    conversation = await sync_to_async(make_conversation)()
    async with page_of() as page:
        await follow(page, conversation.pk)
    await asyncio.sleep(0.1)
    assert not await _subscribers(conversation_group(conversation.pk))


async def _subscribers(group: str) -> int:
    from chat.store import redis_here

    channels = await redis_here().pubsub_channels(f"*{group}*")
    return len(channels)
