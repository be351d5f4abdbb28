"""Running replies of this process: start, follow, resume, stop; and the sockets that follow (rules 3 and 5).

One `Hub` per event loop. Deltas go from the engine straight to the sockets of this process; followers elsewhere get a
coarse copy over the channel layer, and its text lies in Redis for whoever comes in mid-answer. The heartbeat writes to
the database for all replies of the process at once; replies whose heartbeat stopped are taken over and ended as
`interrupted` by any process. The channel layer and Redis only carry hints: after an outage every follower catches up.
"""

import asyncio
import logging
import os
import secrets
import socket
import time
from collections import defaultdict
from collections.abc import Coroutine
from datetime import timedelta
from typing import Protocol
from uuid import UUID
from weakref import WeakKeyDictionary

from django.conf import settings
from django.utils import timezone

from chat import admission, events
from chat.background import start_task
from chat.layer import LayerLink, end_tasks
from chat.metrics import REPLIES
from chat.models.conversations import MessageStatus
from chat.protocol import (
    CloseCode,
    LiveReply,
    ReplyDelta,
    ReplyFailed,
    ReplyFinished,
    ReplyQueued,
    ReplyStarted,
    SafetyCard,
    ServerEvent,
    VersionChanged,
    encode,
)
from chat.reply import RunningReply, Stop
from chat.services import endings
from chat.services.database import run_db
from chat.services.replies import ReplyClaim
from chat.store import RedisError, close_redis_here, live_key, redis_here

logger = logging.getLogger(__name__)
COARSE_COPY_S = 0.25
LIVE_TEXT_S = 600
MAX_SOCKETS_PER_CONVERSATION = 8


class Follower(Protocol):
    """A socket as the hub sees it. `push` and `push_delta` never block."""

    @property
    def last_seen_s(self) -> float: ...

    @property
    def blocked_since_s(self) -> float | None: ...

    def push(self, frame: str) -> None: ...

    def push_delta(self, message_id: UUID, *, offset: int, text: str) -> None: ...

    def resync(self) -> None: ...

    def close_soon(self, code: int) -> None: ...


class HubSink:
    """What a running reply tells, carried to the followers of its conversation."""

    def __init__(self, hub: "Hub", claim: ReplyClaim) -> None:
        self._hub = hub
        self._claim = claim
        self._released: list[str] = []  # joined when it is copied
        self._unsent_from = 0  # the first of them that followers elsewhere have not got
        self._unsent_offset = 0
        self._copied_s = 0.0

    def queued(self, place: int, expected_wait_s: float) -> None:
        event = ReplyQueued(message_id=self._claim.message_id, place=place, expected_wait_s=expected_wait_s)
        self._hub.publish_event(self._claim.conversation_id, event)

    def started(self) -> None:
        event = ReplyStarted(message_id=self._claim.message_id, parent=self._claim.parent_id)
        self._hub.publish_event(self._claim.conversation_id, event)

    def delta(self, offset: int, text: str) -> None:
        for follower in self._hub.followers.get(self._claim.conversation_id, ()):
            follower.push_delta(self._claim.message_id, offset=offset, text=text)
        if self._unsent_from == len(self._released):
            self._unsent_offset = offset
        self._released.append(text)
        if time.monotonic() - self._copied_s >= COARSE_COPY_S:
            self.copy()

    def copy(self) -> None:
        """Send what followers in other processes have not got yet, and lay the text so far into Redis."""
        unsent = "".join(self._released[self._unsent_from :])
        if not unsent:
            return
        event = ReplyDelta(message_id=self._claim.message_id, offset=self._unsent_offset, text=unsent)
        self._released = ["".join(self._released)]
        self._unsent_from, self._copied_s = 1, time.monotonic()
        self._hub.link.keep_live_text(self._claim.message_id, self._released[0], ttl_s=LIVE_TEXT_S)
        self._hub.link.send(self._claim.conversation_id, encode(event))


class Hub:
    """All running replies and followers of one event loop."""

    def __init__(self) -> None:
        # At most 64 characters, as the column that keeps it: what makes it unique stands at its end.
        self.owner = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
        self.followers: defaultdict[UUID, set[Follower]] = defaultdict(set)
        self.running: dict[UUID, RunningReply] = {}
        self.link = LayerLink(
            self.owner, on_event=self._deliver, on_stop=self._stop_here, on_recovered=self._resync_all
        )
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[object]] = set()
        self._is_stopping = False

    # --- life ---------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to listen and to beat. Called by the lifespan, or by the first socket where there is none."""
        events.use_publisher(self._publish_from_thread)
        self.link.start()
        self._spawn(self._beat())

    async def stop(self) -> None:
        """End every reply as `interrupted` with its text, then let go of everything."""
        self._is_stopping = True
        for reply in self.running.values():
            reply.stop(Stop(MessageStatus.INTERRUPTED, code="interrupted", is_retryable=True))
        for _ in range(50):
            if not self.running:
                break
            await asyncio.sleep(0.1)
        events.use_publisher(None)
        await end_tasks(self._tasks)
        await self.link.stop()
        await close_redis_here()

    def _spawn(self, work: Coroutine[object, object, object]) -> None:
        task = start_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- followers ----------------------------------------------------------------------------------------------

    def follow(self, conversation_id: UUID, follower: Follower) -> Follower | None:
        """Add a socket; the oldest one comes back where there are too many (it is to be replaced).

        A socket that follows already (it catches up) takes nobody's place.
        """
        here = self.followers[conversation_id]
        oldest = None
        if follower not in here and len(here) >= MAX_SOCKETS_PER_CONVERSATION:
            oldest = min(here, key=lambda one: one.last_seen_s)
            here.discard(oldest)
        here.add(follower)
        self.link.join(conversation_id)
        return oldest

    def unfollow(self, conversation_id: UUID, follower: Follower) -> None:
        here = self.followers.get(conversation_id)
        if here is None:
            return
        here.discard(follower)
        if not here:
            del self.followers[conversation_id]
            self.link.part(conversation_id)

    def publish_event(self, conversation_id: UUID, event: ServerEvent, *, is_for_visitor: bool = True) -> None:
        """Send an event to the followers here and, through the layer, elsewhere. Never blocks, never raises."""
        self.publish(conversation_id, encode(event), is_for_visitor=is_for_visitor)

    def publish(self, conversation_id: UUID, frame: str, *, is_for_visitor: bool = True) -> None:
        if is_for_visitor:
            self._deliver(conversation_id, frame)
        self.link.send(conversation_id, frame, is_for_visitor=is_for_visitor)

    def _publish_from_thread(self, conversation_id: UUID, frame: str, is_for_visitor: bool) -> None:
        def send() -> None:
            self.publish(conversation_id, frame, is_for_visitor=is_for_visitor)

        self._loop.call_soon_threadsafe(send)

    def _deliver(self, conversation_id: UUID, frame: str) -> None:
        for follower in list(self.followers.get(conversation_id, ())):
            if frame == events.ERASED_FRAME:  # what the token opened is no more
                follower.close_soon(CloseCode.TOKEN)
            else:
                follower.push(frame)

    def _resync_all(self) -> None:
        """Redis was away: whatever was published meanwhile may be lost, so every follower asks for its changes."""
        for here in self.followers.values():
            for follower in here:
                follower.resync()

    # --- replies ------------------------------------------------------------------------------------------------

    def launch(self, claim: ReplyClaim | None) -> None:
        """Run a claimed reply in the background; it outlives every socket."""
        if claim is None:
            return
        if claim.moved_to:
            self.publish_event(claim.conversation_id, VersionChanged(policy=claim.moved_to))
        sink = HubSink(self, claim)
        reply = RunningReply(claim, sink=sink)
        self.running[claim.message_id] = reply
        self._spawn(self._run(reply, sink))

    async def _run(self, reply: RunningReply, sink: HubSink) -> None:
        claim = reply.claim
        try:
            outcome = await reply.run()
        except Exception as error:
            logger.error("reply failed message=%s error=%s", claim.message_id, type(error).__name__)
            outcome = endings.ReplyOutcome(
                status=MessageStatus.FAILED, text=reply.text, code="internal", is_retryable=True
            )
        sink.copy()
        try:
            await self.finish(claim.message_id, claim.fence, claim.conversation_id, outcome)
        finally:
            self.running.pop(claim.message_id, None)

    async def finish(self, message_id: UUID, fence: UUID, conversation_id: UUID, outcome: endings.ReplyOutcome) -> None:
        """Store the ending, tell the followers, and run the next reply where messages came in meanwhile."""
        finished = await run_db(endings.finish_reply, fence, message_id, outcome, owner=self.owner)
        if finished is None:
            return
        REPLIES.labels(ending=str(outcome.status)).inc()
        if outcome.status not in {MessageStatus.COMPLETE, MessageStatus.STOPPED}:
            event: ServerEvent = ReplyFailed(message_id=message_id, code=outcome.code, retryable=outcome.is_retryable)
            self.publish_event(conversation_id, event)
        self.publish_event(conversation_id, ReplyFinished(message=finished.view, sha256=finished.sha256))
        if outcome.status == MessageStatus.BLOCKED:
            self._spawn(self._show_card(conversation_id))
        if not self._is_stopping:  # else the claim stays: another process finds it silent and offers a Retry
            self.launch(finished.next_claim)

    async def _show_card(self, conversation_id: UUID) -> None:
        resources = await run_db(endings.card_after_block, conversation_id)
        self.publish_event(conversation_id, SafetyCard(level="watch", resources=resources))

    async def stop_reply(self, message_id: UUID) -> bool:
        """Stop a reply wherever it runs; False where it is not running any more."""
        if self._stop_here(message_id):
            return True
        owner = await run_db(endings.owner_of, message_id)
        if not owner:
            return False
        await self.link.ask_to_stop(owner, message_id)
        return True

    def _stop_here(self, message_id: UUID) -> bool:
        reply = self.running.get(message_id)
        if reply is None:
            return False
        reply.stop(Stop())
        return True

    async def live_reply(self, conversation_id: UUID, running_id: UUID | None) -> LiveReply | None:
        """The reply that is running in a conversation, with its text so far: ours exactly, another's from Redis."""
        if running_id is None:
            return None
        ours = self.running.get(running_id)
        text = ours.text if ours else await self._copied_text(running_id)
        return LiveReply(message_id=running_id, text=text, offset=len(text))

    async def _copied_text(self, message_id: UUID) -> str:
        try:
            return str(await redis_here().get(live_key(message_id)) or "")
        except (RedisError, OSError):
            return ""

    # --- heartbeat ----------------------------------------------------------------------------------------------

    async def _beat(self) -> None:
        """Say that our replies run, end those of dead processes, close idle and stuck sockets."""
        while not self._is_stopping:
            await asyncio.sleep(settings.RAPPORT_HEARTBEAT_S)
            try:
                await self._beat_once()
            except Exception as error:
                logger.warning("heartbeat failed error=%s", type(error).__name__)

    async def _beat_once(self) -> None:
        self._close_silent()
        now = timezone.now()
        claims = [reply.claim for reply in self.running.values()]
        if claims:
            await run_db(endings.beat_hearts, [claim.fence for claim in claims], now=now)
            await admission.renew([str(claim.message_id) for claim in claims])
        stale_after = timedelta(seconds=settings.RAPPORT_STALE_AFTER_S)
        for message_id, fence in await run_db(endings.stale_replies, now=now, stale_after=stale_after):
            if message_id not in self.running:
                await self._end_stale(message_id, fence)

    async def _end_stale(self, message_id: UUID, fence: UUID) -> None:
        """The process that ran this reply is gone: keep its text, say so, and answer what waited behind it."""
        taken = await run_db(endings.take_over_stale, message_id, fence, owner=self.owner)
        if taken is None:
            return
        text = await self._copied_text(message_id)
        outcome = endings.ReplyOutcome(
            status=MessageStatus.INTERRUPTED, text=text, code="interrupted", is_retryable=True
        )
        await admission.leave(str(message_id))
        conversation_id = await run_db(endings.conversation_of, message_id)
        if conversation_id is not None:
            await self.finish(message_id, taken, conversation_id, outcome)

    def _close_silent(self) -> None:
        now_s = time.monotonic()
        for here in list(self.followers.values()):
            for follower in list(here):
                if (
                    follower.blocked_since_s is not None
                    and now_s - follower.blocked_since_s > settings.RAPPORT_SLOW_READER_S
                ):
                    follower.close_soon(4430)
                elif now_s - follower.last_seen_s > settings.RAPPORT_IDLE_SOCKET_S:
                    follower.close_soon(4408)


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


async def hub_here() -> Hub:
    """The running loop's hub, started on first use."""
    loop = asyncio.get_running_loop()
    hub = _hubs.get(loop)
    if hub is None:
        hub = _hubs[loop] = Hub()
        await hub.start()
    return hub


async def stop_hub_here() -> None:
    """Stop the running loop's hub where there is one."""
    hub = _hubs.pop(asyncio.get_running_loop(), None)
    if hub is not None:
        await hub.stop()
