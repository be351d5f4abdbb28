"""A message over REST goes the way of the socket's: stored once, screened, limited, answered."""

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.test import AsyncClient
from pytest_django import Settings

from chat.models import Generation, Message
from chat.models.conversations import MessageKind
from tests.chat.conftest import Room, new_conversation

pytestmark = pytest.mark.redis


async def post(room: Room, body: Any, *, token: str | None = None, conversation: object = None) -> tuple[int, Any]:
    async with ThreadSensitiveContext():  # a thread for the request, as the real server gives it
        response = await AsyncClient().post(
            f"/api/chat/conversations/{conversation or room.conversation.pk}/messages",
            data=body if isinstance(body, bytes) else json.dumps(body),
            content_type="application/json",
            headers={"Authorization": f"Bearer {room.token if token is None else token}"},
        )
    return response.status_code, json.loads(response.content)


async def test_message_is_stored_once_and_answered(room: Room) -> None:
    status, first = await post(room, {"client_id": "r1", "text": "Over REST."})
    again, second = await post(room, {"client_id": "r1", "text": "Over REST."})
    assert (status, again) == (201, 200)
    assert first["id"] == second["id"]
    async with asyncio.timeout(5):
        while not await sync_to_async(Generation.objects.filter(finished_at__isnull=False).exists)():
            await asyncio.sleep(0.05)
    assert await sync_to_async(Message.objects.filter(kind=MessageKind.REPLY, status="complete").count)() == 1


async def test_crisis_over_rest_calls_no_model(room: Room) -> None:
    status, _ = await post(room, {"client_id": "r1", "text": "I will END IT."})
    await asyncio.sleep(0.2)
    assert status == 201
    assert room.engine.asked == []
    assert await sync_to_async(Message.objects.filter(kind=MessageKind.SAFETY).count)() == 1


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "malformed"),
        ([], 400, "malformed"),
        ({"client_id": "x"}, 400, "malformed"),
        ({"client_id": "x", "text": " "}, 400, "empty_text"),
        ({"client_id": "x", "text": "y" * 8_001}, 400, "text_too_long"),
        (b'{"client_id":"x","text":"\\ud83d"}', 400, "malformed"),
    ],
)
async def test_bad_body_is_refused_by_name(room: Room, body: Any, status: int, code: str) -> None:
    answered, content = await post(room, body)
    assert (answered, content["code"]) == (status, code)
    assert await sync_to_async(Message.objects.count)() == 0


async def test_wrong_token_and_another_visitors_conversation_are_closed(room: Room) -> None:
    _, foreign = await sync_to_async(new_conversation)()
    body = {"client_id": "x", "text": "Hello."}
    assert (await post(room, body, token="nonsense"))[0] == 401
    assert (await post(room, body, token=""))[0] == 401
    assert (await post(room, body, token=foreign))[0] == 404
    assert await sync_to_async(Message.objects.count)() == 0


async def test_socket_and_rest_share_one_limit(room: Room, settings: Settings) -> None:
    settings.RAPPORT_MESSAGES_PER_MINUTE = 2
    async with room.page() as page:
        await page.say("One.")
    assert (await post(room, {"client_id": "r1", "text": "Two."}))[0] == 201
    status, content = await post(room, {"client_id": "r2", "text": "Three."})
    assert (status, content["code"]) == (429, "rate")
