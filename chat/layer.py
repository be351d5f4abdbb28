"""The hub's link to other processes: one channel-layer channel for the whole process, sent in order, never waited for.

Everything that travels here is a hint. The link sends itself numbered echoes: one that is missing says that others may
be missing too, as does a connection that was made again since the one before, and the next one that arrives says that
we hear again (later than Redis answers: the layer takes up its subscriptions by itself). Then every follower catches up
(B3, G11). A send that fails is dropped, and once an echo goes out again those who should have heard it are told so.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any
from uuid import UUID

from channels.layers import get_channel_layer

from chat.background import start_task
from chat.events import conversation_group, layer_message, lost_message
from chat.store import live_key, redis_here

logger = logging.getLogger(__name__)
PING_S = 0.5
PING_WHILE_AWAY_S = 0.1
SOMETHING_LOST = -1
DEAF_ECHOES = 20  # sent and not heard, over two seconds or more: the connection that listens is dead, unnoticed
MAX_WAITING = 10_000  # sends waiting for Redis; beyond that the oldest are dropped, followers catch up afterwards


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel until they ended: a library may make an error of its own out of a cancellation, and a loop go on."""
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.5)


def process_group(owner: str) -> str:
    """Name of the group that one process alone listens to."""
    return "process." + "".join(character if character.isalnum() else "-" for character in owner)[:90]


class LayerLink:
    """One process's channel. All methods but `ask_to_stop` and `stop` return at once."""

    def __init__(
        self,
        owner: str,
        *,
        on_event: Callable[[UUID, str], None],
        on_stop: Callable[[UUID], bool],
        on_recovered: Callable[[], None],
    ) -> None:
        self._owner = owner
        self._on_event = on_event
        self._on_stop = on_stop
        self._on_recovered = on_recovered
        self._layer = get_channel_layer()
        self._joined: set[str] = {process_group(owner)}
        self._outgoing: asyncio.Queue[tuple[UUID | None, Coroutine[object, object, object]]] = asyncio.Queue()
        self._unsent: set[UUID] = set()  # conversations of which an event went nowhere
        self._tasks: list[asyncio.Task[None]] = []
        self._channel = ""
        self._server = ""
        self._is_listening = False
        self._echoes_sent = 0
        self._echo_heard = 0  # its number; SOMETHING_LOST where the next one is to be taken as a gap
        self._echoes_unheard = 0
        self._is_away = False  # Redis, as the last echo found it
        self._cuts = 0  # of the layer's connections, as the last echo said that was heard
        self._is_stopping = False

    def start(self) -> None:
        self._cuts = self._layer.cuts_here()
        loops = (self._receive(), self._send_in_order(), self._watch())
        self._tasks = [start_task(loop) for loop in loops]

    async def stop(self) -> None:
        self._is_stopping = True
        await end_tasks(self._tasks)
        while not self._outgoing.empty():
            self._drop_oldest()

    def join(self, conversation_id: UUID) -> None:
        group = conversation_group(conversation_id)
        if group not in self._joined:
            self._joined.add(group)
            self._later(self._add(group))

    def part(self, conversation_id: UUID) -> None:
        group = conversation_group(conversation_id)
        if group in self._joined:
            self._joined.discard(group)
            self._later(self._remove(group))

    def send(self, conversation_id: UUID, frame: str, *, is_for_visitor: bool = True) -> None:
        """An event to the followers in other processes."""
        message = layer_message(conversation_id, frame, origin=self._owner, is_for_visitor=is_for_visitor)
        self._later(self._layer.group_send(conversation_group(conversation_id), message), about=conversation_id)

    def keep_live_text(self, message_id: UUID, text: str, *, ttl_s: int) -> None:
        """Lay a running reply's text so far where other processes find it."""
        self._later(self._keep(message_id, text, ttl_s))

    async def ask_to_stop(self, owner: str, message_id: UUID) -> None:
        """Ask the process that runs a reply to stop it."""
        self._later(self._layer.group_send(process_group(owner), {"type": "reply.stop", "message_id": str(message_id)}))

    def _later(self, work: Coroutine[object, object, object], *, about: UUID | None = None) -> None:
        """Do `work` after what waits already. Where it is an event, `about` is its conversation."""
        while self._outgoing.qsize() >= MAX_WAITING:
            self._drop_oldest()
        self._outgoing.put_nowait((about, work))

    def _drop_oldest(self) -> None:
        about, work = self._outgoing.get_nowait()
        work.close()
        self._note_unsent(about)

    def _note_unsent(self, about: UUID | None) -> None:
        if about is not None:
            self._unsent.add(about)

    async def _keep(self, message_id: UUID, text: str, ttl_s: int) -> None:
        await redis_here().set(live_key(message_id), text, ex=ttl_s)

    async def _add(self, group: str) -> None:
        if self._channel:
            await self._layer.group_add(group, self._channel)

    async def _remove(self, group: str) -> None:
        if self._channel:
            await self._layer.group_discard(group, self._channel)

    async def _send_in_order(self) -> None:
        while not self._is_stopping:
            about, work = await self._outgoing.get()
            try:
                await work
            except Exception as error:
                logger.debug("layer send failed error=%s", type(error).__name__)
                self._note_unsent(about)

    async def _receive(self) -> None:
        while not self._is_stopping:
            try:
                self._channel = await self._layer.new_channel("hub")
                for group in list(self._joined):
                    await self._layer.group_add(group, self._channel)
                self._is_listening = True
                while True:
                    self._take(await self._layer.receive(self._channel))
            except Exception as error:
                logger.warning("layer receive failed error=%s", type(error).__name__)
                self._is_listening, self._echo_heard = False, SOMETHING_LOST
                await asyncio.sleep(PING_WHILE_AWAY_S)

    def _take(self, message: dict[str, Any]) -> None:
        if message["type"] == "link.echo":
            self._hear_echo(int(message["number"]), cuts=int(message["cuts"]))
        elif message["type"] == "conversation.lost":
            if message["origin"] != self._owner:
                self._on_recovered()
        elif message["type"] == "reply.stop":
            self._on_stop(UUID(message["message_id"]))
        elif message.get("origin") != self._owner and message.get("is_for_visitor") and "conversation" in message:
            self._on_event(UUID(message["conversation"]), message["event"])

    def _hear_echo(self, number: int, *, cuts: int) -> None:
        is_gap = number != self._echo_heard + 1 or cuts != self._cuts
        self._echo_heard, self._cuts, self._echoes_unheard = number, cuts, 0
        if is_gap:
            logger.warning("something was lost on the way; followers catch up")
            for group in list(self._joined):  # what could not be joined while Redis was away
                self._later(self._add(group))
            self._later(self._tell_recovered())

    async def _watch(self) -> None:
        """Send the echoes, closer together while one is outstanding; another server under the same address is a gap."""
        while not self._is_stopping:
            if self._is_listening:
                self._echoes_sent += 1
                await self._send_echo(self._echoes_sent)
            is_calm = self._is_listening and self._echo_heard >= self._echoes_sent - 1
            await asyncio.sleep(PING_S if is_calm else PING_WHILE_AWAY_S)

    async def _send_echo(self, number: int) -> None:
        try:
            server = str((await redis_here().info("server"))["run_id"])
            is_another, self._server = self._server not in {"", server}, server
            if is_another:
                self._echo_heard = SOMETHING_LOST
            if self._is_away or is_another:
                self._is_away = False
                await self._layer.listen_at_once_here()
            echo = {"type": "link.echo", "number": number, "cuts": self._layer.cuts_here()}
            await self._layer.group_send(process_group(self._owner), echo)
            self._echoes_unheard += 1
            await self._own_up()
            if self._echoes_unheard >= DEAF_ECHOES:
                self._echoes_unheard = 0
                logger.warning("nothing is heard any more though Redis answers; its connections are made anew")
                await self._layer.reconnect_here()
        except Exception as error:
            self._is_away = True
            logger.debug("echo failed error=%s", type(error).__name__)

    async def _own_up(self) -> None:
        """Redis answers again: tell those who follow elsewhere that an event did not reach them."""
        for conversation_id in list(self._unsent):
            message = lost_message(conversation_id, origin=self._owner)
            await self._layer.group_send(conversation_group(conversation_id), message)
            self._unsent.discard(conversation_id)

    async def _tell_recovered(self) -> None:
        self._on_recovered()
