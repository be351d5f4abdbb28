"""The visitor's socket: frames in, events out, no thread hop per message, replies elsewhere (`live`).

One instance per socket. The receive loop only parses and sorts: `ping`, `typing` and `reply.stop` are dealt with at
once, whatever else goes through one worker task in order, so a slow verb never delays them (A5). A malformed frame is
an `error` event; three are forgiven.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist

from chat import talk as talking
from chat.live import Hub, hub_here
from chat.metrics import ERRORS, SOCKETS
from chat.origins import is_origin_allowed
from chat.outbox import Outbox
from chat.protocol import (
    AcknowledgeSafety,
    ClientEvent,
    CloseCode,
    ErrorCode,
    ErrorEvent,
    Hello,
    MessageAccepted,
    MessageChanged,
    Ping,
    Pong,
    Presence,
    ProtocolError,
    RegenerateReply,
    SafetyCard,
    SelectReply,
    SendMessage,
    ServerEvent,
    SetFeedback,
    StopReply,
    Typing,
    encode,
    parse_client_event,
)
from chat.services.database import run_db
from chat.services.errors import VerbRefused
from chat.services.messages import Posted
from chat.services.visitors import VisitorAccess, resolve_token
from chat.tokens import TokenInvalid

logger = logging.getLogger(__name__)
FORGIVEN_STRIKES = 3
HELLO_WITHIN_S = 15.0
FRAMES_WINDOW_S = 10.0
MAX_FRAMES_PER_WINDOW = 400  # far above any page; a client beyond it is closed with 4429
MAX_WAITING_EVENTS = 64
STRIKES = frozenset({ErrorCode.MALFORMED, ErrorCode.UNKNOWN_EVENT, ErrorCode.BINARY, ErrorCode.TOO_LARGE})
_PONG = encode(Pong())

Scope = Mapping[str, Any]  # ASGI's own untyped dictionary
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def visitor_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application of /ws/chat/."""
    await receive()  # websocket.connect
    if not is_origin_allowed(_header(scope, b"origin"), settings.RAPPORT_ORIGINS):
        await send({"type": "websocket.close", "code": CloseCode.ORIGIN})
        return
    await send({"type": "websocket.accept"})
    socket = VisitorSocket(await hub_here(), send, address=client_address(scope))
    SOCKETS.labels(door="visitor").inc()
    try:
        await socket.serve(receive)
    finally:
        SOCKETS.labels(door="visitor").dec()
        socket.leave()


def _header(scope: Scope, name: bytes) -> str | None:
    value = next((value for key, value in scope["headers"] if key == name), None)
    return value.decode("latin-1") if value is not None else None


def client_address(scope: Scope) -> str:
    """The peer's address; behind a trusted proxy the server has already put the visitor's own there."""
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


def log_failure(error: BaseException, *, where: str) -> str:
    """Log an unexpected error (our formatter leaves its message out, see `deploy.logs`); returns the trace id."""
    trace = uuid4().hex[:12]
    logger.error("%s failed trace=%s", where, trace, exc_info=error)
    return trace


class VisitorSocket:
    """One visitor's open socket; a `live.Follower`."""

    def __init__(self, hub: Hub, send: Send, *, address: str) -> None:
        self._hub = hub
        self._outbox = Outbox(send)
        self._address = address
        self._talk: talking.Talk | None = None
        self._access: VisitorAccess | None = None
        self._waiting: deque[ClientEvent] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # What followers are told before this socket was welcomed: said after the welcome, where it overlaps or fits.
        self._held: list[Callable[[], None]] | None = []
        self._strikes = 0
        self._shown_seq = 0
        self.last_seen_s = time.monotonic()
        self._window_began_s = self.last_seen_s
        self._frames = 0

    # --- a follower of the hub ----------------------------------------------------------------------------------

    @property
    def blocked_since_s(self) -> float | None:
        return self._outbox.blocked_since_s

    def push(self, frame: str) -> None:
        if self._held is not None:
            self._held.append(partial(self.push, frame))
            return
        self._outbox.put(frame)
        if self._outbox.is_overfull:
            self.close_soon(CloseCode.SLOW_READER)

    def push_delta(self, message_id: UUID, *, offset: int, text: str) -> None:
        if self._held is not None:
            self._held.append(partial(self.push_delta, message_id, offset=offset, text=text))
            return
        self._outbox.put_delta(message_id, offset=offset, text=text)
        if self._outbox.is_overfull:
            self.close_soon(CloseCode.SLOW_READER)

    def resync(self) -> None:
        """Something may have been lost on the way: say again what changed since this socket came."""
        if self._access is not None:
            self._start(self._welcome(self._access, last_seq=self._shown_seq))

    def close_soon(self, code: int) -> None:
        self._outbox.close(code)

    # --- receiving ----------------------------------------------------------------------------------------------

    async def serve(self, receive: Receive) -> None:
        """Until the socket closes."""
        deadline = asyncio.get_running_loop().call_later(HELLO_WITHIN_S, self._close_a_stranger)
        try:
            while (message := await receive())["type"] != "websocket.disconnect":
                self.last_seen_s = time.monotonic()
                if not self._is_flooding():
                    self._take_frame(message)
        finally:
            deadline.cancel()

    def _close_a_stranger(self) -> None:
        if self._access is None:
            self.close_soon(CloseCode.TOKEN)

    def _is_flooding(self) -> bool:
        """Whether this frame is one too many of its window; the socket is closed then."""
        if self.last_seen_s - self._window_began_s > FRAMES_WINDOW_S:
            self._window_began_s, self._frames = self.last_seen_s, 0
        self._frames += 1
        if self._frames > MAX_FRAMES_PER_WINDOW:
            self.close_soon(CloseCode.RATE)
            return True
        return False

    def _take_frame(self, message: dict[str, Any]) -> None:
        text = message.get("text")
        if text is None:
            self._refuse(ErrorCode.BINARY)
            return
        try:
            event = parse_client_event(text)
        except ProtocolError as error:
            self._refuse(error.code)
            return
        self._take_event(event)

    def _take_event(self, event: ClientEvent) -> None:
        if isinstance(event, Ping):
            self._outbox.put(_PONG)
        elif isinstance(event, Hello):
            self._start(self._hello(event))
        elif self._talk is None and not self._is_hello_pending():
            self._refuse(ErrorCode.HELLO_FIRST)
        elif isinstance(event, StopReply):
            self._start(self._stop(event))
        elif isinstance(event, Typing):
            self._tell_typing()
        elif len(self._waiting) >= MAX_WAITING_EVENTS:
            self._refuse(ErrorCode.RATE, retry_after=1.0, client_id=getattr(event, "client_id", None))
        else:
            self._waiting.append(event)
            if self._worker is None or self._worker.done():
                self._worker = self._start(self._work())

    def _is_hello_pending(self) -> bool:
        return any(task.get_name() == "hello" for task in self._tasks)

    def _refuse(self, code: ErrorCode, *, retry_after: float | None = None, client_id: str | None = None) -> None:
        ERRORS.labels(code=code).inc()
        if code in STRIKES:
            self._strikes += 1
            if self._strikes > FORGIVEN_STRIKES:
                self.close_soon(CloseCode.TOO_LARGE if code is ErrorCode.TOO_LARGE else CloseCode.MALFORMED)
                return
        self._send(ErrorEvent(code=code, retry_after=retry_after, client_id=client_id))

    def _send(self, event: ServerEvent) -> None:
        self._outbox.put(encode(event))

    def _start(self, work: Any, *, name: str = "") -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name or getattr(work, "__name__", "work").strip("_"))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def leave(self) -> None:
        """The socket is gone; replies go on without it, and so does a message that is being stored."""
        self._outbox.close()
        for task in self._tasks:
            task.cancel()
        if self._access is not None:
            self._hub.unfollow(self._access.conversation_id, self)

    # --- verbs --------------------------------------------------------------------------------------------------

    async def _hello(self, event: Hello) -> None:
        try:
            access = await run_db(resolve_token, event.token)
        except TokenInvalid:
            self.close_soon(CloseCode.TOKEN)
            return
        except Exception as error:
            self._send(ErrorEvent(code=ErrorCode.UNAVAILABLE, trace=log_failure(error, where="hello")))
            return
        await self._welcome(access, last_seq=event.last_seq)

    async def _welcome(self, access: VisitorAccess, *, last_seq: int) -> None:
        conversation_id = access.conversation_id
        if self._access is not None and self._access.conversation_id != conversation_id:
            self._hub.unfollow(self._access.conversation_id, self)
        self._access = access
        replaced = self._hub.follow(conversation_id, self)  # first listen, then read: nothing falls between
        if replaced is not None:
            replaced.close_soon(CloseCode.REPLACED)
        try:
            opened = await run_db(
                talking.open_talk, conversation_id, access.visitor, last_seq=last_seq, address=self._address
            )
            if opened is None:
                self._hub.unfollow(conversation_id, self)
                self.close_soon(CloseCode.TOKEN)
                return
            welcome = await talking.with_live(opened, hub=self._hub)
        except Exception as error:
            self._send(ErrorEvent(code=ErrorCode.UNAVAILABLE, trace=log_failure(error, where="welcome")))
            return
        self._talk = opened.talk
        self._shown_seq = welcome.conversation.last_seq
        self._send(welcome)
        if welcome.conversation.card != "none":
            talk = opened.talk
            self._send(SafetyCard(level=welcome.conversation.card, resources=talk.resources, staffed=talk.is_staffed))
        held, self._held = self._held or [], None
        for say in held:
            say()

    async def _stop(self, event: StopReply) -> None:
        talk = await self._talk_when_ready()
        if talk is None:
            return
        try:
            if not await talking.stop_reply(talk, event.message_id, hub=self._hub):
                self._send(ErrorEvent(code=ErrorCode.NOT_RUNNING))
        except Exception as error:
            self._send(ErrorEvent(code=ErrorCode.UNAVAILABLE, trace=log_failure(error, where="stop")))

    async def _talk_when_ready(self) -> talking.Talk | None:
        """The conversation, once a hello that is under way has been answered."""
        hellos = [task for task in self._tasks if task.get_name() == "hello"]
        if self._talk is None and hellos:
            await asyncio.wait(hellos)
        if self._talk is None:
            self._refuse(ErrorCode.HELLO_FIRST)
        return self._talk

    def _tell_typing(self) -> None:
        if self._talk is not None:
            self._hub.publish_event(
                self._talk.conversation_id, Presence(who="visitor", is_typing=True), is_for_visitor=False
            )

    async def _work(self) -> None:
        talk = await self._talk_when_ready()
        while self._waiting:
            event = self._waiting.popleft()
            if talk is None:
                continue
            client_id = event.client_id if isinstance(event, SendMessage) else None
            try:
                await self._do(talk, event)
            except VerbRefused as refused:
                self._refuse(refused.code, client_id=client_id)
            except ObjectDoesNotExist:  # the visitor's data were erased while this socket was open
                self.close_soon(CloseCode.TOKEN)
            except talking.TooMany as error:
                self._refuse(ErrorCode.RATE, retry_after=round(error.retry_after_s, 1), client_id=client_id)
            except Exception as error:
                trace = log_failure(error, where=type(event).__name__)
                ERRORS.labels(code=ErrorCode.UNAVAILABLE).inc()
                self._send(ErrorEvent(code=ErrorCode.UNAVAILABLE, retry_after=2.0, trace=trace, client_id=client_id))

    async def _do(self, talk: talking.Talk, event: ClientEvent) -> None:
        match event:
            case SendMessage():
                posted = await talking.send_message(talk, event, hub=self._hub, on_stored=self._accept(event))
                if not posted.is_new:
                    self._send(MessageAccepted(client_id=event.client_id, message=posted.view))
            case RegenerateReply():
                await talking.regenerate(talk, event.message_id, hub=self._hub)
            case SelectReply():
                self._send(MessageChanged(message=await talking.select_reply(talk, event.message_id)))
            case SetFeedback():
                self._send(MessageChanged(message=await talking.set_feedback(talk, event)))
            case AcknowledgeSafety():
                level = await talking.acknowledge_card(talk)
                if level != "none":
                    self._send(SafetyCard(level=level, resources=talk.resources, staffed=talk.is_staffed))
            case _:
                self._refuse(ErrorCode.UNKNOWN_EVENT)

    def _accept(self, event: SendMessage) -> Callable[[Posted], None]:
        """Acknowledges a new message after its commit and before its card and its reply."""

        def accept(posted: Posted) -> None:
            self._send(MessageAccepted(client_id=event.client_id, message=posted.view))

        return accept
