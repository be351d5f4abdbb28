"""Running replies over two web processes: followed, stopped, found again, taken over, and with Redis away."""

import asyncio
from itertools import pairwise
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from chat import live
from chat.live import Hub
from chat.models import Generation, Message
from chat.models.conversations import MessageKind
from chat.reply import RunningReply
from chat.services import endings
from chat.services.database import run_db
from chat.services.endings import ReplyOutcome
from chat.services.erasure import erase_visitor
from chat.store import live_key, redis_here
from tests.chat.conftest import Room, new_conversation
from tests.chat.talks import hear, is_whole, status_of, talk, until
from tests.fakes.engine import Script
from tests.fakes.socket import SocketClient
from tests.fakes.web import WebProcess

pytestmark = pytest.mark.redis


# --- followed from another process ----------------------------------------------------------------------------------


async def test_follower_elsewhere_sees_the_words_and_the_ending(room: Room, elsewhere: WebProcess) -> None:
    room.engine.script = Script(tokens=talk(30), gap_s=0.03)
    async with room.page() as page, elsewhere.page(room.token) as tab:
        await page.say("Tell me.")
        await tab.until("reply.started")
        first = await tab.until("reply.delta")
        assert first["offset"] == 0
        finished = await tab.until("reply.finished")
    assert is_whole(finished, tab)
    deltas = [event for event in tab.seen if event["type"] == "reply.delta"]
    assert 2 <= len(deltas) < 15  # a coarse copy, not a frame for every token


async def test_page_that_comes_in_mid_answer_elsewhere_finds_the_text_so_far(room: Room, elsewhere: WebProcess) -> None:
    room.engine.script = Script(tokens=talk(60), gap_s=0.03)
    async with room.page() as page:
        await page.say("Tell me.")
        await hear(page, 300)
        async with elsewhere.page(room.token) as late:
            welcome = next(event for event in late.seen if event["type"] == "welcome")
            assert welcome["live"]["text"].startswith("Sentence 0. Sentence 1.")
            assert welcome["live"]["offset"] == len(welcome["live"]["text"])
            assert is_whole(await late.until("reply.finished"), late)


async def test_visitors_message_is_seen_elsewhere(room: Room, elsewhere: WebProcess) -> None:
    async with room.page() as page, elsewhere.page(room.token) as tab:
        await page.say("Hello from here.")
        assert (await tab.until("message.changed"))["message"]["text"] == "Hello from here."
        await tab.say("And from there.")
        changed = await page.until("message.changed")
        while changed["message"]["text"] != "And from there.":
            changed = await page.until("message.changed")


async def test_follower_of_another_conversation_hears_nothing(room: Room, elsewhere: WebProcess) -> None:
    _, token = await sync_to_async(new_conversation)()
    async with room.page() as page, elsewhere.page(token) as stranger:
        await page.say("Private.")
        await page.until("reply.finished")
        assert await stranger.quiet(0.4) == []


async def test_messages_at_two_processes_at_once_are_all_answered_and_never_two_replies_at_once(
    room: Room, elsewhere: WebProcess
) -> None:
    room.engine.script = Script(tokens=("Yes. ",), first_s=0.05)
    async with room.page() as page, elsewhere.page(room.token) as tab:
        for number in range(10):
            sender = (page, tab)[number % 2]
            await sender.send({"type": "message.send", "client_id": f"n{number}", "text": f"Number {number}."})
        visitor = Message.objects.filter(conversation=room.conversation, kind=MessageKind.VISITOR)
        await until(lambda: visitor.count() == 10 and not Generation.objects.filter(finished_at=None).exists())
    stored = await sync_to_async(lambda: list(visitor.order_by("seq")))()
    assert sorted(message.client_id or "" for message in stored) == [f"n{number}" for number in range(10)]
    rows = Generation.objects.filter(message__conversation=room.conversation).order_by("id")
    generations = await sync_to_async(lambda: list(rows))()
    assert max(row.context_to_seq for row in generations) == stored[-1].seq
    spans = sorted((row.created_at, row.finished_at) for row in generations if row.finished_at)
    assert len(spans) == len(generations)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


# --- stopped from another process -----------------------------------------------------------------------------------


async def test_stop_asked_elsewhere_stops_here_and_ends_the_engines_work(room: Room, elsewhere: WebProcess) -> None:
    room.engine.script = Script(tokens=talk(400), gap_s=0.02)
    async with room.page() as page, elsewhere.page(room.token) as tab:
        await page.say("Tell me a lot.")
        first = await tab.until("reply.delta")
        await tab.send({"type": "reply.stop", "message_id": first["message_id"]})
        finished = await tab.until("reply.finished", timeout_s=3)
        at_stop = room.engine.generated_tokens
        await page.until("reply.finished")
        await asyncio.sleep(0.3)
    assert finished["message"]["status"] == "stopped"
    assert finished["message"]["text"].startswith("Sentence 0.")
    assert room.engine.generated_tokens - at_stop <= 10
    assert room.engine.running == 0
    assert not any(event["type"] == "error" for event in tab.seen)


async def test_stop_of_a_reply_that_ended_elsewhere_says_so(room: Room, elsewhere: WebProcess) -> None:
    async with room.page() as page, elsewhere.page(room.token) as tab:
        await page.say("Hi.")
        finished = await page.until("reply.finished")
        await tab.send({"type": "reply.stop", "message_id": finished["message"]["id"]})
        assert (await tab.until("error"))["code"] == "not_running"


# --- sockets --------------------------------------------------------------------------------------------------------


async def test_idle_socket_is_closed_with_its_code_and_a_ping_keeps_it_open(room: Room, settings: Settings) -> None:
    settings.RAPPORT_IDLE_SOCKET_S = 0.8
    async with room.page() as idle, room.page() as alive:
        for _ in range(6):
            await asyncio.sleep(0.2)
            await alive.send({"type": "ping"})
            await alive.until("pong")
        assert await idle.until("close") == {"type": "close", "code": 4408}
        await alive.send({"type": "ping"})
        await alive.until("pong")


async def test_slow_reader_is_closed_with_its_code(room: Room, settings: Settings) -> None:
    settings.RAPPORT_SLOW_READER_S = 0.5
    room.engine.script = Script(tokens=talk(100), gap_s=0.02)
    async with room.page() as slow, room.page() as other:
        slow.is_reading.clear()
        await other.say("Tell me.")
        await other.until("reply.finished")
        slow.is_reading.set()
        assert await slow.until("close") == {"type": "close", "code": 4430}


async def test_ninth_socket_of_a_conversation_replaces_the_oldest(room: Room) -> None:
    pages = []
    for _ in range(9):
        pages.append(await room.page().__aenter__())
        await asyncio.sleep(0.01)
    assert await pages[0].until("close") == {"type": "close", "code": 4409}
    for page in pages[1:]:
        await page.send({"type": "ping"})
        await page.until("pong")
    for page in pages:
        await page.disconnect()


async def test_eight_sockets_that_catch_up_replace_nobody(room: Room, here: WebProcess) -> None:
    pages = [await room.page().__aenter__() for _ in range(8)]
    here.hub._resync_all()
    for page in pages:
        await page.until("welcome")
        await page.send({"type": "ping"})
        await page.until("pong")
    for page in pages:
        await page.disconnect()


async def test_hub_forgets_sockets_and_conversations_that_left(room: Room, here: WebProcess) -> None:
    room.engine.script = Script(tokens=talk(20), gap_s=0.02)
    async with room.page() as page:
        await page.say("Go on.")
        await page.until("reply.delta")
    await until(lambda: not Generation.objects.filter(finished_at=None).exists())
    await asyncio.sleep(0.1)
    assert not here.hub.followers
    assert not here.hub.running


async def test_erasure_closes_the_visitors_sockets_in_every_process_at_once(room: Room, elsewhere: WebProcess) -> None:
    _, token = await sync_to_async(new_conversation)()
    async with room.page() as page, elsewhere.page(room.token) as tab, SocketClient(token) as stranger:
        await page.say("Hello.")
        await tab.until("reply.finished")
        await run_db(erase_visitor, room.visitor.pk)
        for one in (page, tab):
            assert (await one.until("close", timeout_s=2))["code"] == 4401
        await stranger.send({"type": "ping"})
        await stranger.until("pong")


# --- parts ----------------------------------------------------------------------------------------------------------


async def test_text_so_far_is_laid_into_redis_and_does_not_stay_there(room: Room) -> None:
    room.engine.script = Script(tokens=talk(40), gap_s=0.03)
    async with room.page() as page:
        await page.say("Tell me.")
        message_id = await hear(page, 200)
        key = live_key(message_id)
        kept = await redis_here().get(key)
        assert kept
        assert "".join(talk(40)).startswith(str(kept))
        assert 0 < await redis_here().ttl(key) <= live.LIVE_TEXT_S
        await page.until("reply.finished")


async def test_reply_that_broke_in_our_own_code_fails_by_name_and_can_be_retried(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: RunningReply) -> ReplyOutcome:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(RunningReply, "run", broken)
        async with room.page() as page:
            await page.say("Hello.")
            failed = await page.until("reply.failed")
    assert (failed["code"], failed["retryable"]) == ("internal", True)
    assert await status_of(failed["message_id"]) == "failed"


async def test_heartbeat_moves_only_what_is_still_ours(room: Room, here: WebProcess) -> None:
    room.engine.script = Script(tokens=talk(100), gap_s=0.02)
    async with room.page() as page:
        await page.say("Go on.")
        started = await page.until("reply.started")
        message_id = UUID(started["message_id"])
        row = await sync_to_async(Generation.objects.get)(message_id=message_id)
        fresh = await sync_to_async(endings.take_over_stale)(message_id, row.fence, owner="elsewhere")
        assert fresh is not None
        moved = await sync_to_async(endings.beat_hearts)([row.fence], now=row.created_at)
        assert moved == 0
        assert await sync_to_async(endings.take_over_stale)(message_id, row.fence, owner="third") is None


def test_hub_names_are_never_the_same_and_fit_their_column(monkeypatch: pytest.MonkeyPatch) -> None:
    async def owner() -> str:
        return Hub().owner

    monkeypatch.setattr("socket.gethostname", lambda: "web-" + "x" * 60)
    owners = {asyncio.run(owner()) for _ in range(5)}
    assert len(owners) == 5
    assert all(len(name) <= 64 for name in owners)
