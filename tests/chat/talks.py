"""What the tests of running replies say and look at. For the tests of `chat.live`."""

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async

from chat.models import Message
from tests.fakes.socket import SocketClient

Event = dict[str, Any]


def talk(count: int) -> tuple[str, ...]:
    return tuple(f"Sentence {number}. " for number in range(count))


async def status_of(message_id: str) -> str:
    return (await sync_to_async(Message.objects.get)(pk=message_id)).status


async def until(holds: Callable[[], Any], timeout_s: float = 8.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not await sync_to_async(holds)():
            await asyncio.sleep(0.05)


async def hear(page: SocketClient, chars: int) -> str:
    """Read until so much of the running reply was shown; returns the reply's id."""
    while True:
        message_id = str((await page.until("reply.delta"))["message_id"])
        if len(page.text_of(message_id)) >= chars:
            return message_id


def is_whole(finished: Event, page: SocketClient) -> bool:
    """Whether the deltas that a page got make up the text, to the byte."""
    text = page.text_of(finished["message"]["id"])
    return hashlib.sha256(text.encode()).hexdigest() == str(finished["sha256"])
