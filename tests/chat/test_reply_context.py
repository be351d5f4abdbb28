"""What the model is asked for a reply, and which messages are in its context."""

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from chat.context import prepare, said_before
from chat.models.conversations import MessageKind, MessageStatus
from chat.protocol import SendMessage
from chat.reply import RunningReply
from chat.services.database import run_db
from chat.services.messages import post_message
from chat.services.replies import regenerate, select_reply
from rubric import Role
from tests.chat.conftest import Room
from tests.chat.replies import CALM, Sink, claimed, finish
from tests.factories import make_conversation, make_message, make_reply, make_user
from tests.fakes.engine import Script

pytestmark = pytest.mark.redis


def asked_of(room: Room) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in room.engine.asked[-1].body["messages"]]


async def test_model_is_asked_with_the_sites_own_text_the_settings_and_the_claims_seed(
    room: Room, settings: Settings
) -> None:
    room.conversation.site.system_prompt = "Speak like the sea."
    await sync_to_async(room.conversation.site.save)()
    claim = await claimed(room, "Good evening.")
    outcome = await RunningReply(claim, sink=Sink()).run()
    assert asked_of(room) == [("system", "Speak like the sea."), ("user", "Good evening.")]
    body = room.engine.asked[-1].body
    assert body["seed"] == claim.seed
    assert body["temperature"] == settings.RAPPORT_TEMPERATURE
    assert body["max_tokens"] == settings.RAPPORT_REPLY_MAX_TOKENS
    prepared = await run_db(prepare, claim)
    assert prepared.prompt.sha256 == outcome.prompt_sha256


async def test_sibling_does_not_see_the_replies_that_it_stands_beside(room: Room) -> None:
    claim = await claimed(room, "What now?")
    await finish(claim, await RunningReply(claim, sink=Sink()).run())
    again = await run_db(regenerate, room.conversation.pk, claim.message_id, owner="here")
    await RunningReply(again, sink=Sink()).run()
    assert asked_of(room)[1:] == [("user", "What now?")]


async def test_later_turn_sees_the_selected_sibling_alone(room: Room) -> None:
    claim = await claimed(room, "What now?")
    await finish(claim, await RunningReply(claim, sink=Sink()).run())
    again = await run_db(regenerate, room.conversation.pk, claim.message_id, owner="here")
    room.engine.script = Script(tokens=("Another ", "view."))
    await finish(again, await RunningReply(again, sink=Sink()).run())
    await run_db(select_reply, room.conversation.pk, claim.message_id)
    later = await claimed(room, "And then?")
    await RunningReply(later, sink=Sink()).run()
    assert asked_of(room)[1:] == [
        ("user", "What now?"),
        ("assistant", "I hear you. That is hard."),
        ("user", "And then?"),
    ]


async def test_message_that_came_during_the_reply_is_not_in_its_context(room: Room) -> None:
    claim = await claimed(room, "First.")
    await run_db(
        post_message,
        room.conversation.pk,
        SendMessage(client_id="later", text="Second."),
        reading=CALM,
        owner="here",
        safety_text="",
    )
    await RunningReply(claim, sink=Sink()).run()
    assert asked_of(room)[1:] == [("user", "First.")]


@pytest.mark.django_db
def test_context_holds_staff_and_safety_messages_and_no_notes_or_unselected_replies() -> None:
    conversation = make_conversation()
    first = make_message(conversation, "one")
    make_message(conversation, "call a line", kind=MessageKind.SAFETY, parent=first)
    second = make_message(conversation, "two")
    make_reply(second, "not chosen", is_selected=False)
    chosen = make_reply(second, "chosen", sibling_index=1)
    make_reply(second, "running", sibling_index=2, status=MessageStatus.RUNNING)
    make_message(conversation, "a note", kind=MessageKind.NOTE, author=make_user())
    make_message(conversation, "I am Robin", kind=MessageKind.STAFF, author=make_user())
    third = make_message(conversation, "three")
    make_reply(third, "its sibling")
    later = make_message(conversation, "four")
    said = said_before(conversation.pk, context_to_seq=third.seq, answered=third.pk)
    assert {(one.role, one.text) for one in said} == {
        (Role.USER, "one"),
        (Role.ASSISTANT, "call a line"),
        (Role.USER, "two"),
        (Role.ASSISTANT, "chosen"),
        (Role.ASSISTANT, "I am Robin"),
        (Role.USER, "three"),
    }
    assert next(one.position for one in said if one.text == "chosen") == second.seq
    assert chosen.seq > second.seq
    assert later.seq > third.seq
