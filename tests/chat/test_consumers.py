"""The visitor's socket, from frame to frame: real database and Redis, programmable engine and encoder."""

import asyncio
import hashlib
import json
import time

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from pytest_django import Settings

from chat import consumers
from chat.models import Alert, Feedback, Generation, Message, SafetyVerdict
from chat.models.conversations import ConversationState, MessageKind
from chat.protocol import MAX_FRAME_BYTES
from chat.services import messages
from tests.chat.conftest import Room, new_conversation
from tests.fakes.engine import Script
from tests.fakes.socket import SocketClient

pytestmark = pytest.mark.redis


async def rows(room: Room, **filters: object) -> list[Message]:
    query = Message.objects.filter(conversation=room.conversation, **filters).order_by("seq")
    return [message async for message in query]


async def test_message_is_stored_acknowledged_and_answered(room: Room) -> None:
    async with room.page() as page:
        accepted = await page.say("My sister will not talk to me.")
        finished = await page.until("reply.finished")
    stored = await rows(room)
    assert [m.kind for m in stored] == [MessageKind.VISITOR, MessageKind.REPLY]
    assert accepted["message"]["id"] == str(stored[0].pk)
    assert finished["message"]["text"] == "I hear you. That is hard." == stored[1].text
    assert page.text_of(finished["message"]["id"]) == stored[1].text
    assert finished["sha256"] == hashlib.sha256(stored[1].text.encode()).hexdigest()


async def test_generation_row_holds_what_rebuilds_the_request(room: Room) -> None:
    async with room.page() as page:
        await page.say("Hello there.")
        await page.until("reply.finished")
    row = await sync_to_async(Generation.objects.get)(message__conversation=room.conversation)
    asked = room.engine.asked[0].body
    assert row.seed == asked["seed"]
    assert row.temperature == asked["temperature"] == django_settings.RAPPORT_TEMPERATURE
    assert len(row.token_logprobs) == 6
    assert row.logprob_kind == "processed"
    assert row.finish_reason == "stop"
    assert row.first_token_ms is not None
    assert row.prompt_sha256
    assert row.finished_at is not None


async def test_same_client_id_is_one_message_and_one_identical_acknowledgement(room: Room) -> None:
    async with room.page() as first, room.page() as second:
        event = {"type": "message.send", "client_id": "same", "text": "Only once."}
        await asyncio.gather(first.send(event), second.send(event))
        one = await first.until("message.accepted", client_id="same")
        two = await second.until("message.accepted", client_id="same")
        await first.until("reply.finished")
    assert one["message"]["id"] == two["message"]["id"]
    assert one["message"]["seq"] == two["message"]["seq"]
    assert len(await rows(room, kind=MessageKind.VISITOR)) == 1


async def test_what_arrives_during_a_reply_is_answered_together_by_the_next_one(room: Room) -> None:
    room.engine.script = Script(tokens=("One ", "moment. "), gap_s=0.3)
    async with room.page() as page:
        await page.say("First.")
        await page.until("reply.started")
        await page.say("Second.")
        await page.say("Third.")
        await page.until("reply.finished")
        await page.until("reply.finished")
        assert not [event for event in await page.quiet(0.5) if event["type"] == "reply.started"]
    replies = await rows(room, kind=MessageKind.REPLY)
    assert [reply.status for reply in replies] == ["complete", "complete"]
    assert room.engine.asked[1].body["messages"][-1]["content"] == "Second.\n\nThird."


async def test_ten_sends_at_once_are_stored_in_order_and_never_answered_twice_at_once(room: Room) -> None:
    room.engine.script = Script(tokens=("Yes. ",), first_s=0.05)
    async with room.page() as page, room.page() as other:
        for number in range(10):
            sender = (page, other)[number % 2]
            await sender.send({"type": "message.send", "client_id": f"n{number}", "text": f"Number {number}."})
        while len(await rows(room, kind=MessageKind.VISITOR)) < 10:
            await asyncio.sleep(0.05)
        while await sync_to_async(Generation.objects.filter(finished_at=None).exists)():
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
    visitor = await rows(room, kind=MessageKind.VISITOR)
    assert sorted(message.client_id or "" for message in visitor) == [f"n{n}" for n in range(10)]
    newest = await sync_to_async(
        lambda: max(g.context_to_seq for g in Generation.objects.filter(message__conversation=room.conversation))
    )()
    assert newest == visitor[-1].seq


@pytest.mark.parametrize("during", ["stream", "slow verb"])
async def test_ping_and_stop_are_answered_while_other_work_goes_on(room: Room, during: str) -> None:
    room.engine.script = Script(tokens=tuple(f"w{n} " for n in range(500)), gap_s=0.02)
    async with room.page() as page:
        await page.say("Tell me more.")
        started = await page.until("reply.started")
        if during == "slow verb":
            room.encoder.hangs = True
            await page.send({"type": "message.send", "client_id": "slow", "text": "And this?"})
        loop = asyncio.get_running_loop()
        before = loop.time()
        await page.send({"type": "ping"})
        await page.until("pong")
        assert loop.time() - before < 0.2
        before = loop.time()
        await page.send({"type": "reply.stop", "message_id": started["message_id"]})
        stopped = await page.until("reply.finished")
        assert loop.time() - before < 0.4
    assert stopped["message"]["status"] == "stopped"
    room.encoder.hangs = False


async def test_verb_stuck_in_sync_code_delays_no_other_socket(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    _, token = await sync_to_async(new_conversation)()

    def read_slowly(_: object) -> tuple[str, ...]:
        time.sleep(1.0)
        return ()

    monkeypatch.setattr(messages, "recent_visitor_texts", read_slowly)
    async with room.page() as stuck, SocketClient(token) as other:
        await stuck.send({"type": "message.send", "client_id": "stuck", "text": "Hello."})
        await asyncio.sleep(0.05)
        delays = []
        for _ in range(20):
            before = time.monotonic()
            await other.send({"type": "ping"})
            await other.until("pong")
            delays.append(time.monotonic() - before)
        assert sorted(delays)[10] < 0.02
        assert max(delays) < 0.5
        await stuck.until("reply.finished")


async def test_stop_keeps_the_text_and_ends_the_engines_work(room: Room) -> None:
    room.engine.script = Script(tokens=tuple(f"w{n}. " for n in range(400)), gap_s=0.01)
    async with room.page() as page:
        await page.say("Tell me a lot.")
        first = await page.until("reply.delta")
        await page.send({"type": "reply.stop", "message_id": first["message_id"]})
        finished = await page.until("reply.finished")
        at_stop = room.engine.generated_tokens
        await asyncio.sleep(0.3)
    assert finished["message"]["status"] == "stopped"
    assert finished["message"]["text"].startswith("w0.")
    assert room.engine.generated_tokens - at_stop <= 10
    assert room.engine.running == 0


async def test_stop_for_a_reply_that_ended_says_so(room: Room) -> None:
    async with room.page() as page:
        await page.say("Hi.")
        finished = await page.until("reply.finished")
        await page.send({"type": "reply.stop", "message_id": finished["message"]["id"]})
        assert (await page.until("error"))["code"] == "not_running"


async def test_reply_outlives_its_socket_and_is_found_again(room: Room) -> None:
    room.engine.script = Script(tokens=tuple(f"w{n}. " for n in range(60)), gap_s=0.02)
    async with room.page() as page:
        await page.say("Long answer, please.")
        await page.until("reply.delta")
    async with room.page() as again:
        welcome = next(event for event in again.seen if event["type"] == "welcome")
        assert welcome["live"]["text"].startswith("w0.")
        finished = await again.until("reply.finished")
        assert again.text_of(finished["message"]["id"]) == finished["message"]["text"]
    assert finished["message"]["status"] == "complete"


@pytest.mark.parametrize("die_at", [0, 1, 50])
async def test_engine_that_dies_leaves_the_text_and_a_retry(room: Room, die_at: int) -> None:
    words = tuple(f"w{n}. " for n in range(100))
    room.engine.script = Script(tokens=words, die_at=die_at)
    async with room.page() as page:
        await page.say("Go on.")
        failed = await page.until("reply.failed")
        finished = await page.until("reply.finished")
        assert failed["retryable"]
        assert finished["message"]["status"] == "failed"
        assert finished["message"]["text"] == "".join(words[:die_at])
        room.engine.script = Script(tokens=("Back ", "again."))
        await page.send({"type": "reply.regenerate", "message_id": failed["message_id"]})
        assert (await page.until("reply.finished"))["message"]["text"] == "Back again."


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (Script(status=400), "engine_refused"),
        (Script(hangs=True), "timeout_first_token"),
        (Script(tokens=("a. ", "b"), hang_at=1), "timeout_between_tokens"),
        (Script(tokens=tuple("abcdefgh" * 30), gap_s=0.2), "timeout_whole"),
        (Script(tokens=("a. ", "b"), error_at=1), "engine_broken"),
        (Script(tokens=("", "")), "empty_reply"),
    ],
)
async def test_each_engine_failure_ends_in_its_own_code(
    room: Room, script: Script, code: str, settings: Settings
) -> None:
    settings.RAPPORT_FIRST_TOKEN_S = settings.RAPPORT_BETWEEN_TOKENS_S = 0.4
    settings.RAPPORT_WHOLE_REPLY_S = 1.2
    room.engine.script = script
    async with room.page() as page:
        await page.say("Are you there?")
        assert (await page.until("reply.failed"))["code"] == code


async def test_reply_that_ran_into_its_limit_says_so(room: Room) -> None:
    room.engine.script = Script(tokens=("And ", "then "), finish_reason="length")
    async with room.page() as page:
        await page.say("Go on.")
        finished = await page.until("reply.finished")
    assert (finished["message"]["status"], finished["message"]["code"]) == ("complete", "cut_off")
    assert not any(event["type"] == "reply.failed" for event in page.seen)


async def test_regenerating_twice_makes_three_siblings_and_keeps_ratings(room: Room) -> None:
    async with room.page() as page:
        await page.say("What do you think?")
        first = (await page.until("reply.finished"))["message"]
        await page.send({"type": "feedback.set", "message_id": first["id"], "value": 1, "reasons": [], "comment": ""})
        await page.until("message.changed")
        for _ in range(2):
            await page.send({"type": "reply.regenerate", "message_id": first["id"]})
            await page.until("reply.finished")
        await page.say("Thank you.")
        await page.until("reply.finished")
    replies = await rows(room, kind=MessageKind.REPLY)
    assert [reply.sibling_index for reply in replies] == [0, 1, 2, 0]
    assert [reply.is_selected for reply in replies] == [False, False, True, True]
    assert await sync_to_async(Feedback.objects.filter(message_id=first["id"], value=1).count)() == 1
    roles = [message["role"] for message in room.engine.asked[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


async def test_selected_sibling_goes_into_later_context(room: Room) -> None:
    async with room.page() as page:
        await page.say("What now?")
        first = (await page.until("reply.finished"))["message"]
        room.engine.script = Script(tokens=("Another ", "view."))
        await page.send({"type": "reply.regenerate", "message_id": first["id"]})
        await page.until("reply.finished")
        await page.send({"type": "reply.select", "message_id": first["id"]})
        await page.until("message.changed", timeout_s=3)
        await page.say("Tell me more.")
        await page.until("reply.finished")
    said = [message["content"] for message in room.engine.asked[-1].body["messages"]]
    assert "I hear you. That is hard." in said
    assert "Another view." not in said


async def test_crisis_message_gets_card_and_safety_message_and_no_model_call(room: Room) -> None:
    async with room.page() as page:
        await page.say("I want to END IT tonight.")
        card = await page.until("safety.card")
        await page.quiet(0.4)
    assert card["level"] == "high"
    assert card["resources"]
    assert room.engine.asked == []
    kinds = [message.kind for message in await rows(room)]
    assert kinds == [MessageKind.VISITOR, MessageKind.SAFETY]
    assert await sync_to_async(Alert.objects.filter(kind="crisis").count)() == 1
    assert all(message.is_excluded for message in await rows(room))


async def test_card_comes_before_any_reply_text_and_watch_turns_never_train(room: Room) -> None:
    async with room.page() as page:
        await page.say("There is no point any more.")
        await page.until("reply.finished")
    kinds = [event["type"] for event in page.seen]
    assert kinds.index("safety.card") < kinds.index("reply.delta")
    assert [message.is_excluded for message in await rows(room)] == [True, True]


async def test_denial_after_disclosure_still_shows_the_card_and_misunderstanding_lowers_it(room: Room) -> None:
    async with room.page() as page:
        await page.say("I want to END IT.")
        await page.until("safety.card", level="high")
        await page.send({"type": "safety.ack"})
        await page.until("safety.card", level="watch")
        await page.say("I was only joking.")
        await page.until("safety.card", level="watch")
        await page.until("reply.finished")


@pytest.mark.parametrize("failure", ["hangs", "answers 500"])
async def test_screen_that_does_not_answer_counts_as_high(room: Room, failure: str, settings: Settings) -> None:
    settings.RAPPORT_SCREEN_TIMEOUT_S = 0.2
    room.encoder.hangs = failure == "hangs"
    room.encoder.status = 500
    async with room.page() as page:
        await page.say("Good morning.")
        assert (await page.until("safety.card"))["level"] == "high"
        await page.quiet(0.3)
    assert room.engine.asked == []
    assert await sync_to_async(Alert.objects.filter(kind="screen_down").count)() == 1


async def test_uncovered_language_shows_the_card_once(room: Room) -> None:
    async with room.page() as page:
        await page.say("zzz bonjour")
        await page.until("safety.card")
        await page.until("reply.finished")
        await page.say("zzz encore")
        await page.until("reply.finished")
    assert [event["type"] for event in page.seen].count("safety.card") == 1


async def test_harmful_reply_is_withheld_and_its_span_never_shown(room: Room) -> None:
    room.engine.script = Script(tokens=("Fine. ", "Now HARM ", "them. ", "Good."))
    async with room.page() as page:
        await page.say("What should I do?")
        finished = await page.until("reply.finished")
        await page.until("safety.card")
    assert finished["message"]["status"] == "blocked"
    assert finished["message"]["text"] == "Fine."
    assert not any("HARM" in json.dumps(event) for event in page.seen)
    verdict = await sync_to_async(SafetyVerdict.objects.get)(direction="reply")
    assert verdict.level == "high"


BAD_FRAMES = {
    "malformed": "{",
    "not an object": "[1]",
    "deep": "[" * 100_000,
    "huge number": '{"type":"hello","token":"x","last_seq":' + "9" * 5_000 + "}",
    "nan": '{"type":"feedback.set","message_id":"x","value":NaN}',
    "wrong type": '{"type":7}',
    "unknown": '{"type":"no.such.event"}',
}


@pytest.mark.parametrize("frame", BAD_FRAMES.values(), ids=BAD_FRAMES.keys())
async def test_bad_frame_is_an_error_and_the_socket_lives_on_for_three(room: Room, frame: str) -> None:
    async with room.page() as page:
        for _ in range(3):
            await page.send_text(frame)
            assert (await page.until("error"))["code"] in {"malformed", "unknown_event", "too_large"}
        await page.say("Still here.")
        await page.until("reply.finished")
        await page.send_text(frame)
        assert (await page.until("close"))["code"] in {4400, 4413}


async def test_binary_and_oversized_frames_are_refused_by_name(room: Room) -> None:
    async with room.page() as page:
        await page.send_bytes(b"\x00\x01")
        assert (await page.until("error"))["code"] == "binary"
        for _ in range(3):
            await page.send_text(" " * (MAX_FRAME_BYTES + 1))
        assert await page.until("close") == {"type": "close", "code": 4413}


@pytest.mark.parametrize(
    ("text", "code"),
    [("", "empty_text"), (" \n\t ", "empty_text"), ("x" * 8_001, "text_too_long"), ("a\\u0000b", "text_invalid")],
)
async def test_text_that_cannot_be_kept_is_refused_without_a_strike(room: Room, text: str, code: str) -> None:
    async with room.page() as page:
        for number in range(5):
            await page.send_text(
                f'{{"type":"message.send","client_id":"c{number}","text":"{text}"}}'.replace("\n", " ").replace(
                    "\t", " "
                )
            )
            assert (await page.until("error"))["code"] == code
    assert await rows(room) == []


async def test_lone_surrogate_is_malformed_on_both_databases(room: Room) -> None:
    async with room.page() as page:
        await page.send_text('{"type":"message.send","client_id":"c","text":"\\ud83d"}')
        assert (await page.until("error"))["code"] == "malformed"
    async with room.page() as again:  # nothing poisoned the history
        await again.say("Fine 😀.")


ORIGINS = [
    "https://evil.example",
    "null",
    None,
    "http://sub.testserver",
    "http://testserver:81",
    "http://testserver.evil.example",
    "file://",
]


@pytest.mark.parametrize("origin", ORIGINS)
async def test_foreign_origin_is_refused_at_the_handshake(room: Room, origin: str | None) -> None:
    page = SocketClient(room.token, origin=origin)
    await page.connect()
    assert await page.next() == {"type": "close", "code": 4403}
    await page.disconnect()


@pytest.mark.parametrize("token", ["", "x", "r1.e30.AAAA"])
async def test_bad_token_closes_with_4401_and_reads_nothing(room: Room, token: str) -> None:
    page = SocketClient()
    await page.connect()
    await page.send({"type": "hello", "token": token or "-", "last_seq": 0})
    assert await page.until("close") == {"type": "close", "code": 4401}
    assert not any(event["type"] == "welcome" for event in page.seen)
    await page.disconnect()


async def test_flood_of_frames_closes_the_socket(room: Room) -> None:
    async with room.page() as page:
        for _ in range(consumers.MAX_FRAMES_PER_WINDOW + 1):
            await page.send({"type": "ping"})
        assert await page.until("close") == {"type": "close", "code": 4429}


async def test_socket_that_never_says_hello_is_closed(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "HELLO_WITHIN_S", 0.1)
    page = SocketClient()
    await page.connect()
    assert await page.until("close") == {"type": "close", "code": 4401}
    await page.disconnect()


async def test_events_before_hello_are_refused(room: Room) -> None:
    page = SocketClient()
    await page.connect()
    await page.send({"type": "message.send", "client_id": "c", "text": "Hello?"})
    assert (await page.until("error"))["code"] == "hello_first"
    await page.disconnect()
    assert await rows(room) == []


async def test_another_visitors_reply_is_not_found(room: Room) -> None:
    async with room.page() as page:
        await page.say("Mine.")
        mine = (await page.until("reply.finished"))["message"]["id"]
    _, token = await sync_to_async(new_conversation)()
    async with SocketClient(token) as stranger:
        for event in ("reply.regenerate", "reply.select"):
            await stranger.send({"type": event, "message_id": mine})
            assert (await stranger.until("error"))["code"] == "not_found"
        await stranger.send({"type": "feedback.set", "message_id": mine, "value": -1, "reasons": [], "comment": ""})
        assert (await stranger.until("error"))["code"] == "not_found"
        await stranger.send({"type": "reply.stop", "message_id": mine})
        assert (await stranger.until("error"))["code"] == "not_running"


async def test_closed_conversation_takes_no_message(room: Room) -> None:
    room.conversation.state = ConversationState.CLOSED
    await sync_to_async(room.conversation.save)()
    async with room.page() as page:
        await page.send({"type": "message.send", "client_id": "late", "text": "One more thing."})
        refused = await page.until("error")
    assert (refused["code"], refused["client_id"]) == ("closed", "late")


async def test_too_many_messages_a_minute_are_refused_with_a_time(room: Room, settings: Settings) -> None:
    settings.RAPPORT_MESSAGES_PER_MINUTE = 2
    async with room.page() as page:
        await page.say("One.")
        await page.say("Two.")
        await page.send({"type": "message.send", "client_id": "three", "text": "Three."})
        refused = await page.until("error")
    assert refused["code"] == "rate"
    assert 0 < refused["retry_after"] <= 60


async def test_spent_token_budget_fails_the_reply_and_keeps_the_message(room: Room) -> None:
    room.visitor.site.daily_token_budget = 0
    await sync_to_async(room.visitor.site.save)()
    async with room.page() as page:
        await page.say("Anyone?")
        failed = await page.until("reply.failed")
    assert (failed["code"], failed["retryable"]) == ("budget", False)
    assert len(await rows(room, kind=MessageKind.VISITOR)) == 1


async def test_full_engine_queue_keeps_the_message_and_fails_retryably(room: Room, settings: Settings) -> None:
    settings.RAPPORT_ENGINE_QUEUE = 1
    room.engine.script = Script(tokens=tuple("abcdef"), gap_s=0.3)
    pages, tokens = [], [(await sync_to_async(new_conversation)())[1] for _ in range(4)]
    for token in tokens:
        page = await SocketClient(token).__aenter__()
        await page.say("Please answer.")
        pages.append(page)
        await asyncio.sleep(0.1)
    queued = await pages[2].until("reply.queued")
    assert queued["place"] == 1
    failed = await pages[3].until("reply.failed")
    assert (failed["code"], failed["retryable"]) == ("overloaded", True)
    assert (await pages[2].until("reply.finished"))["message"]["status"] == "complete"
    for page in pages:
        await page.disconnect()


async def test_paused_reader_gets_the_whole_text_afterwards(room: Room) -> None:
    words = tuple(f"word{n}. " for n in range(2_000))
    room.engine.script = Script(tokens=words)
    async with room.page() as page:
        await page.say("A long one.")
        page.is_reading.clear()
        while not await rows(room, kind=MessageKind.REPLY, status="complete"):
            await asyncio.sleep(0.1)
        page.is_reading.set()
        finished = await page.until("reply.finished")
        text = page.text_of(finished["message"]["id"])
    assert hashlib.sha256(text.encode()).hexdigest() == finished["sha256"]
    assert len([event for event in page.seen if event["type"] == "reply.delta"]) < 200


async def test_other_tab_sees_the_same_conversation(room: Room) -> None:
    async with room.page() as page, room.page() as tab:
        await page.say("Hello from the first tab.")
        seen = await tab.until("message.changed")
        assert seen["message"]["text"] == "Hello from the first tab."
        finished = await tab.until("reply.finished")
        assert tab.text_of(finished["message"]["id"]) == finished["message"]["text"]


async def test_welcome_brings_only_what_changed_since(room: Room) -> None:
    async with room.page() as page:
        await page.say("One.")
        first = (await page.until("reply.finished"))["message"]
    async with room.page(last_seq=first["changed_seq"]) as again:
        welcome = next(event for event in again.seen if event["type"] == "welcome")
    assert welcome["changes"] == []
    async with room.page() as fresh:
        welcome = next(event for event in fresh.seen if event["type"] == "welcome")
    assert len(welcome["changes"]) == 2


async def test_version_changes_only_after_an_idle_half_hour(room: Room, settings: Settings) -> None:
    from datetime import timedelta

    from chat.models.learning import VersionState
    from tests.factories import make_version

    async with room.page() as page:
        await page.say("One.")
        await page.until("reply.finished")
        room.policy.state = VersionState.RETIRED
        await sync_to_async(room.policy.save)()
        newer = await sync_to_async(make_version)()
        from chat.store import ENDPOINTS_KEY, redis_here

        await redis_here().hset(ENDPOINTS_KEY, newer.name, room.engine.endpoint().to_json())
        await page.say("Two.")
        await page.until("reply.finished")
        generation = await sync_to_async(Generation.objects.select_related("policy").latest)("id")
        assert generation.policy == room.policy
        settings.RAPPORT_IDLE_BEFORE_VERSION_CHANGE = timedelta(0)
        await page.say("Three.")
        assert (await page.until("version.changed"))["policy"] == newer.name


async def test_flood_of_waiting_events_is_refused_not_stored_up(room: Room) -> None:
    room.encoder.hangs = True
    async with room.page() as page:
        for number in range(80):
            await page.send({"type": "message.send", "client_id": f"f{number}", "text": "Again."})
        assert (await page.until("error"))["code"] == "rate"
        room.encoder.hangs = False
