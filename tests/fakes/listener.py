"""One process's link to the others, and what came through it."""

import asyncio
from typing import Self
from uuid import UUID, uuid4

from chat.layer import LayerLink

TALK = uuid4()


class Listener:
    """One process's link, and what came through it."""

    def __init__(self, owner: str = "") -> None:
        self.owner = owner or f"host:{uuid4().hex[:8]}"
        self.events: list[tuple[UUID, str]] = []
        self.stops: list[UUID] = []
        self.recovered = asyncio.Event()
        self.link = LayerLink(
            self.owner,
            on_event=lambda conversation_id, frame: self.events.append((conversation_id, frame)),
            on_stop=self._stop,
            on_recovered=self.recovered.set,
        )

    def _stop(self, message_id: UUID) -> bool:
        self.stops.append(message_id)
        return True

    @property
    def frames(self) -> list[str]:
        return [frame for _, frame in self.events]

    async def __aenter__(self) -> Self:
        self.link.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.link.stop()

    async def until_heard(self, count: int, timeout_s: float = 4.0) -> None:
        async with asyncio.timeout(timeout_s):
            while len(self.events) < count:
                await asyncio.sleep(0.01)

    async def until_joined(self, speaker: "Listener") -> None:
        """Until what `speaker` says arrives; then forget what it said."""
        self.link.join(TALK)
        async with asyncio.timeout(4):
            while not self.events:
                speaker.link.send(TALK, "are you there")
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.15)
        self.events.clear()
