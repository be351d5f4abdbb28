"""Running one reply in a room: what it tells, and how it ends. For the tests of `chat.reply`."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import sync_to_async

from chat.models import Message
from chat.protocol import SendMessage
from chat.reply import RunningReply
from chat.safety import Reading
from chat.services.database import run_db
from chat.services.endings import ReplyOutcome, finish_reply
from chat.services.messages import post_message
from chat.services.replies import ReplyClaim
from rubric import Level, ScreenReading
from tests.chat.conftest import Room

CALM = Reading(levels=(Level.NONE,), probability=0.0, is_covered=True, version="screen-1")
PASSED = ScreenReading(probability=0.0, level=Level.NONE, is_covered=True, version="screen-1")


@dataclass
class Sink:
    """Keeps what a running reply tells."""

    told: list[str] = field(default_factory=list)
    deltas: list[tuple[int, str]] = field(default_factory=list)
    on_delta: Callable[[str], None] | None = None

    def queued(self, place: int, expected_wait_s: float) -> None:
        self.told.append(f"queued {place}")

    def started(self) -> None:
        self.told.append("started")

    def delta(self, offset: int, text: str) -> None:
        self.told.append("delta")
        self.deltas.append((offset, text))
        if self.on_delta is not None:
            self.on_delta(text)

    @property
    def text(self) -> str:
        text = ""
        for offset, piece in self.deltas:
            assert offset == len(text)
            text += piece
        return text


async def claimed(room: Room, text: str = "Hello.") -> ReplyClaim:
    number = await sync_to_async(Message.objects.count)()
    event = SendMessage(client_id=f"c{number}", text=text)
    posted = await run_db(
        post_message, room.conversation.pk, event, reading=CALM, owner="here", safety_text="Call somebody."
    )
    assert posted.claim is not None
    return posted.claim


async def run(room: Room, text: str = "Hello.") -> tuple[ReplyOutcome, Sink]:
    sink = Sink()
    return await RunningReply(await claimed(room, text), sink=sink).run(), sink


async def finish(claim: ReplyClaim, outcome: ReplyOutcome) -> None:
    await run_db(finish_reply, claim.fence, claim.message_id, outcome, owner="")


async def until(holds: Callable[[], Any], timeout_s: float = 5.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not holds():
            await asyncio.sleep(0.01)
