"""Telling pages what changed: after the commit, through the hub where there is one, else through the layer alone."""

from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.db import transaction
from pytest_django import Settings

from chat import events
from chat.models.conversations import MessageKind
from chat.protocol import Pong
from chat.store import close_redis_here
from tests.factories import make_conversation, make_message, make_user
from tests.fakes.engine import closed_port

pytestmark = pytest.mark.redis
Told = list[tuple[UUID, dict[str, Any], bool]]


@pytest.fixture
def told() -> Iterator[Told]:
    """What a hub of this process would be told."""
    heard: Told = []

    def hear(conversation_id: UUID, frame: str, is_for_visitor: bool) -> None:
        heard.append((conversation_id, orjson.loads(frame), is_for_visitor))

    events.use_publisher(hear)
    yield heard
    events.use_publisher(None)


@pytest.fixture
async def loop_is_tidied() -> AsyncIterator[None]:
    yield
    await get_channel_layer().flush()
    await close_redis_here()


@pytest.mark.django_db(transaction=True)
def test_nobody_is_told_before_the_commit_or_of_what_was_rolled_back(told: Told) -> None:
    conversation_id = uuid4()

    def fail() -> None:
        with transaction.atomic():
            events.publish_event(conversation_id, Pong())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert told == []
    with transaction.atomic():
        events.publish_event(conversation_id, Pong())
        assert told == []
    assert told == [(conversation_id, {"type": "pong"}, True)]


@pytest.mark.django_db(transaction=True)
def test_note_is_told_to_staff_alone(told: Told) -> None:
    conversation = make_conversation()
    note = make_message(conversation, "note", kind=MessageKind.NOTE, author=make_user())
    said = make_message(conversation, "said")
    for message in (note, said):
        events.publish_change(conversation.pk, message.pk)
    assert [(event["message"]["text"], is_for_visitor) for _, event, is_for_visitor in told] == [
        ("note", False),
        ("said", True),
    ]


@pytest.mark.django_db(transaction=True)
def test_grade_is_told_to_staff_and_a_handover_to_everybody(told: Told) -> None:
    conversation_id, message_id = uuid4(), uuid4()
    events.publish_graded(conversation_id, message_id)
    events.publish_handover(conversation_id, control="human", assignee="Robin")
    assert [(event["type"], is_for_visitor) for _, event, is_for_visitor in told] == [
        ("turn.graded", False),
        ("handover", True),
    ]
    assert told[0][1]["message_id"] == str(message_id)


async def test_without_a_hub_the_layer_carries_it(clean_redis: None, loop_is_tidied: None) -> None:
    conversation_id = uuid4()
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(events.conversation_group(conversation_id), channel)
    await sync_to_async(events.publish)(conversation_id, '{"type":"pong"}', is_for_visitor=False)
    message = await layer.receive(channel)
    assert message == {
        "type": "conversation.event",
        "conversation": str(conversation_id),
        "event": '{"type":"pong"}',
        "origin": "",
        "is_for_visitor": False,
    }


def test_layer_that_is_away_is_no_error(settings: Settings) -> None:
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "chat.pubsub.PubSubLayer",
            "CONFIG": {"hosts": [f"redis://127.0.0.1:{closed_port()}/0"]},
        }
    }
    events.publish(uuid4(), '{"type":"pong"}')
