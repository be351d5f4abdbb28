"""A reply whose process died is taken over: its text is kept, and what waited behind it is answered."""

import time

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from chat import live
from chat.models import Generation, Message
from chat.models.conversations import MessageKind, MessageStatus
from chat.services.endings import ReplyOutcome
from tests.chat.conftest import Room
from tests.chat.talks import hear, talk
from tests.fakes.engine import Script
from tests.fakes.web import WebProcess

pytestmark = pytest.mark.redis


async def test_dead_processs_reply_becomes_interrupted_with_its_text_and_what_waited_is_answered(
    room: Room, here: WebProcess, elsewhere: WebProcess, settings: Settings
) -> None:
    room.engine.script = Script(tokens=talk(400), gap_s=0.02)
    async with elsewhere.page(room.token) as tab:
        async with room.page() as page:
            await page.say("Tell me a lot.")
            message_id = await hear(page, 300)
            await page.say("And one more thing.")
            shown = page.text_of(message_id)
            await here.die()
        room.engine.script = Script(tokens=("Now ", "this."))
        died_s = time.monotonic()
        failed = await tab.until("reply.failed")
        finished = await tab.until("reply.finished")
        assert time.monotonic() - died_s < settings.RAPPORT_STALE_AFTER_S + 2 * settings.RAPPORT_HEARTBEAT_S + 0.8
        assert (failed["code"], failed["retryable"]) == ("interrupted", True)
        assert finished["message"]["status"] == "interrupted"
        text = finished["message"]["text"]
        assert text.startswith("Sentence 0. Sentence 1.")
        assert shown.startswith(text)
        assert len(shown) - len(text) <= 25 * len("Sentence 10. ")  # the coarse copy is a quarter of a second behind
        answered = await tab.until("reply.finished")
        assert answered["message"]["text"] == "Now this."
        asked = room.engine.asked[-1].body["messages"]
        assert asked[-1]["content"] == "And one more thing."
        assert text in asked[-2]["content"]


async def test_retry_of_an_interrupted_reply_works_elsewhere(
    room: Room, here: WebProcess, elsewhere: WebProcess
) -> None:
    room.engine.script = Script(hangs=True)
    async with elsewhere.page(room.token) as tab:
        async with room.page() as page:
            await page.say("Are you there?")
            started = await page.until("reply.started")
            await here.die()
        finished = await tab.until("reply.finished")
        assert (finished["message"]["status"], finished["message"]["text"]) == ("interrupted", "")
        room.engine.script = Script(tokens=("Here ", "again."))
        await tab.send({"type": "reply.regenerate", "message_id": started["message_id"]})
        again = await tab.until("reply.finished")
    assert (again["message"]["status"], again["message"]["text"]) == ("complete", "Here again.")
    assert again["message"]["sibling_index"] == 1


async def test_dead_owners_ending_changes_nothing_afterwards(
    room: Room, here: WebProcess, elsewhere: WebProcess
) -> None:
    room.engine.script = Script(tokens=talk(400), gap_s=0.02)
    async with elsewhere.page(room.token) as tab:
        async with room.page() as page:
            await page.say("Go on.")
            started = await page.until("reply.started")
            await page.until("reply.delta")
            (running,) = here.hub.running.values()
            await here.die()
        await tab.until("reply.finished")
        before = await sync_to_async(Message.objects.get)(pk=started["message_id"])
        late = ReplyOutcome(status=MessageStatus.COMPLETE, text="I was only asleep.")
        await here.hub.finish(running.claim.message_id, running.claim.fence, room.conversation.pk, late)
        assert not [event for event in await tab.quiet(0.4) if event["type"].startswith("reply")]
    after = await sync_to_async(Message.objects.get)(pk=started["message_id"])
    assert (after.status, after.text, after.changed_seq) == (before.status, before.text, before.changed_seq)
    assert after.status == MessageStatus.INTERRUPTED


async def test_two_processes_take_a_reply_over_only_once(room: Room, here: WebProcess, elsewhere: WebProcess) -> None:
    room.engine.script = Script(tokens=talk(400), gap_s=0.02)
    async with WebProcess() as third, third.page(room.token) as tab:
        here.serve_this_loop()
        async with room.page() as page:
            await page.say("Go on.")
            await page.until("reply.delta")
            await here.die()
        await tab.until("reply.finished")
        again = [event for event in await tab.quiet(0.8) if event["type"] in {"reply.finished", "reply.failed"}]
        assert again == []
    assert await sync_to_async(Generation.objects.filter(finished_at=None).count)() == 0
    assert elsewhere.hub.running == {}


async def test_living_processs_long_reply_is_left_alone(room: Room, elsewhere: WebProcess, settings: Settings) -> None:
    settings.RAPPORT_STALE_AFTER_S = 0.8
    room.engine.script = Script(tokens=talk(32), gap_s=0.05)
    async with room.page() as page:
        await page.say("Slowly.")
        finished = await page.until("reply.finished")
    assert finished["message"]["status"] == "complete"


async def test_orderly_stop_ends_replies_as_interrupted_with_their_text(room: Room, here: WebProcess) -> None:
    room.engine.script = Script(tokens=talk(400), gap_s=0.02)
    page = await room.page().__aenter__()
    await page.say("Go on.")
    started = await page.until("reply.started")
    await hear(page, 30)
    await live.stop_hub_here()
    row = await sync_to_async(Message.objects.get)(pk=started["message_id"])
    assert (row.status, row.is_retryable) == (MessageStatus.INTERRUPTED, True)
    assert row.text.startswith("Sentence 0. Sentence 1.")
    assert room.engine.running == 0
    await page.disconnect()


async def test_orderly_stop_leaves_a_claim_for_what_waited_so_that_somebody_offers_a_retry(
    room: Room, here: WebProcess
) -> None:
    room.engine.script = Script(tokens=talk(400), gap_s=0.02)
    page = await room.page().__aenter__()
    await page.say("Go on.")
    await page.until("reply.started")
    await page.say("And then?")
    await live.stop_hub_here()
    rows = [reply async for reply in Message.objects.filter(kind=MessageKind.REPLY).order_by("seq")]
    assert [row.status for row in rows] == [MessageStatus.INTERRUPTED, MessageStatus.RUNNING]
    assert len(room.engine.asked) == 1
    await page.disconnect()
