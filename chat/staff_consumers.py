"""The staff's socket /ws/staff/: topics to follow, and who is typing. Changes go through the REST door.

Frames in: `subscribe {topic}`, `unsubscribe {topic}`, `typing {topic}`, `ping`. Frames out: `subscribed {topic}`,
`unsubscribed {topic}`, `topic.event {topic, event}`, `topic.resync {topic}` (something may be lost: load it again),
`error {code, topic}`, `pong`. Log-in, role and origin are checked at the door, log-in and role at every subscribe too.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from typing import Any
from uuid import UUID

import orjson
from channels.layers import get_channel_layer
from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from chat.live import hub_here
from chat.metrics import ERRORS, SOCKETS
from chat.models import User
from chat.origins import is_origin_allowed
from chat.outbox import Outbox
from chat.protocol import MAX_FRAME_BYTES, CloseCode, ErrorCode, Presence
from chat.services.database import run_db
from chat.services.transcripts import ledger_of
from chat.shown_events import ShownEvents
from chat.store import RedisError, redis_here
from chat.topics import Topic, TopicUnknown, open_topic
from rubric import JsonObject

logger = logging.getLogger(__name__)
FORGIVEN_STRIKES = 3
MAX_TOPICS = 32
WATCH_S = 2.0

Scope = Mapping[str, Any]  # ASGI's own untyped dictionary
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def staff_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application of /ws/staff/. Foreign origins are refused before the handshake ends (field report A7)."""
    await receive()  # websocket.connect
    if not is_origin_allowed(_header(scope, b"origin"), settings.RAPPORT_ORIGINS):
        await send({"type": "websocket.close", "code": CloseCode.ORIGIN})
        return
    await send({"type": "websocket.accept"})
    session_key = _session_key(_header(scope, b"cookie") or "")
    user = await run_db(user_of, session_key)
    if user is None or not user.may_review:
        await send({"type": "websocket.close", "code": CloseCode.TOKEN if user is None else CloseCode.ORIGIN})
        return
    socket = StaffSocket(user, send, session_key=session_key)
    SOCKETS.labels(door="staff").inc()
    try:
        await socket.serve(receive)
    finally:
        SOCKETS.labels(door="staff").dec()
        await socket.leave()


def user_of(session_key: str) -> User | None:
    """The member of staff behind a log-in cookie, as Django's own middleware would find them; None: nobody."""
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key or None)
    user = get_user(request)
    return user if isinstance(user, User) and user.is_active else None


def _header(scope: Scope, name: bytes) -> str | None:
    value = next((value for key, value in scope["headers"] if key == name), None)
    return value.decode("latin-1") if value is not None else None


def _session_key(cookie_header: str) -> str:
    try:
        cookie = SimpleCookie(cookie_header).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return ""
    return cookie.value if cookie else ""


class FrameInvalid(Exception):
    """The frame is not one of ours; a strike."""


class StaffSocket:
    """One open socket of a member of staff, with its own channel on the layer."""

    def __init__(self, user: User, send: Send, *, session_key: str) -> None:
        self._user = user
        self._session_key = session_key
        self._outbox = Outbox(send)
        self._layer = get_channel_layer()
        self._channel = ""
        self._topics: dict[str, Topic] = {}
        self._shown: dict[str, ShownEvents] = {}
        self._strikes = 0
        self._tasks: list[asyncio.Task[None]] = []
        self.last_seen_s = time.monotonic()

    async def serve(self, receive: Receive) -> None:
        """Until the socket closes."""
        await self._open_channel()  # before any subscribe, so that no topic is joined too late
        self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._watch())]
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect" or self._outbox.is_closed:
                return
            self.last_seen_s = time.monotonic()
            try:
                frame = _parse(message)
            except FrameInvalid:
                self._strike()
                continue
            await self._do(frame)

    async def leave(self) -> None:
        """Let go of the topics and the channel."""
        self._outbox.close()
        for topic in list(self._topics.values()):
            await self._discard(topic)
        waiting = set(self._tasks)
        while waiting:  # more than once: redis-py's writes may lose a cancellation under Python 3.11 (`wait_for`)
            for task in waiting:
                task.cancel()
            _, waiting = await asyncio.wait(waiting, timeout=0.5)

    # --- what staff send ----------------------------------------------------------------------------------------

    async def _do(self, frame: JsonObject) -> None:
        kind, name = frame["type"], str(frame.get("topic", ""))
        if kind == "ping":
            self._put({"type": "pong"})
        elif kind == "subscribe":
            await self._subscribe(name)
        elif kind == "unsubscribe":
            await self._unsubscribe(name)
        elif kind == "typing":
            await self._tell_typing(name)
        else:
            self._strike()

    async def _subscribe(self, name: str) -> None:
        """Log-in and role may have ended since the handshake, so they are looked up again."""
        try:
            user = await run_db(user_of, self._session_key)
            if user is None or not user.may_review:
                self._outbox.close(CloseCode.TOKEN if user is None else CloseCode.ORIGIN)
                return
            self._user = user
            topic = await run_db(open_topic, name, user)
            if len(self._topics) >= MAX_TOPICS and topic.name not in self._topics:
                self._refuse(ErrorCode.RATE, topic=name)
                return
            if topic.prefix == "conversation":
                self._shown[topic.name] = ShownEvents(await run_db(ledger_of, UUID(topic.key)))
        except TopicUnknown:
            self._refuse(ErrorCode.NOT_FOUND, topic=name)
            return
        except Exception as error:
            logger.error("subscribe failed error=%s", type(error).__name__)
            self._refuse(ErrorCode.UNAVAILABLE, topic=name)
            return
        self._topics[topic.name] = topic
        await self._join(topic)
        self._put({"type": "subscribed", "topic": topic.name})

    async def _unsubscribe(self, name: str) -> None:
        topic = self._topics.pop(name, None)
        if topic is not None:
            self._shown.pop(name, None)
            await self._discard(topic)
        self._put({"type": "unsubscribed", "topic": name[:100]})

    async def _tell_typing(self, name: str) -> None:
        topic = self._topics.get(name)
        if topic is not None and topic.prefix == "conversation":
            hub = await hub_here()
            hub.publish_event(UUID(topic.key), Presence(who=self._user.shown_name, is_typing=True))

    # --- what staff get -----------------------------------------------------------------------------------------

    def _put(self, content: JsonObject) -> None:
        self._outbox.put(orjson.dumps(content).decode())
        if self._outbox.is_overfull:
            self._outbox.close(CloseCode.SLOW_READER)

    def _refuse(self, code: ErrorCode, *, topic: str = "") -> None:
        ERRORS.labels(code=code.value).inc()
        self._put({"type": "error", "code": code.value, "topic": topic[:100]})

    def _strike(self) -> None:
        self._strikes += 1
        if self._strikes > FORGIVEN_STRIKES:
            self._outbox.close(CloseCode.MALFORMED)
        else:
            self._refuse(ErrorCode.MALFORMED)

    async def _follow(self) -> None:
        """Carry layer messages to the socket; a layer that failed is joined anew."""
        while True:
            if not self._channel and not await self._open_channel():
                await asyncio.sleep(WATCH_S)
                continue
            try:
                self._carry(await self._layer.receive(self._channel))
            except Exception as error:
                logger.warning("staff layer failed error=%s", type(error).__name__)
                self._channel = ""

    async def _open_channel(self) -> bool:
        """A channel of our own on the layer, with every topic joined; False where the layer does not answer."""
        try:
            self._channel = await self._layer.new_channel("staff")
        except Exception as error:
            logger.warning("staff layer does not answer error=%s", type(error).__name__)
            return False
        for topic in list(self._topics.values()):
            await self._join(topic)
            self._put({"type": "topic.resync", "topic": topic.name})
        return True

    def _carry(self, message: Mapping[str, str]) -> None:
        name = message.get("topic") or f"conversation:{UUID(message['conversation'])}"
        if name not in self._topics:
            return
        if message["type"] == "conversation.lost":
            self._put({"type": "topic.resync", "topic": name})
            return
        shown = self._shown.get(name)
        event = shown.show(message["event"]) if shown else orjson.loads(message["event"])
        if event is not None and not self._is_own_typing(event):
            self._put({"type": "topic.event", "topic": name, "event": event})

    def _is_own_typing(self, event: JsonObject) -> bool:
        return event.get("type") == "presence" and event.get("who") == self._user.shown_name

    async def _watch(self) -> None:
        """Notice that Redis was away or replaced, or a connection cut: join anew, have each topic loaded again (B3)."""
        server, is_away, cuts = "", False, self._layer.cuts_here()
        while True:
            await asyncio.sleep(WATCH_S)
            try:
                found = str((await redis_here().info("server"))["run_id"])
            except (RedisError, OSError, KeyError):
                is_away = True
                continue
            if is_away or (server and found != server) or cuts != self._layer.cuts_here():
                is_away, cuts = False, self._layer.cuts_here()
                for topic in list(self._topics.values()):
                    await self._join(topic)
                    self._put({"type": "topic.resync", "topic": topic.name})
            server = found

    async def _join(self, topic: Topic) -> None:
        try:
            if self._channel:
                await self._layer.group_add(topic.group, self._channel)
        except Exception as error:
            logger.warning("topic not joined error=%s", type(error).__name__)

    async def _discard(self, topic: Topic) -> None:
        try:
            if self._channel:
                await self._layer.group_discard(topic.group, self._channel)
        except Exception as error:
            logger.warning("topic not left error=%s", type(error).__name__)


def _parse(message: Mapping[str, Any]) -> JsonObject:
    text = message.get("text")
    if not isinstance(text, str) or len(text) > MAX_FRAME_BYTES:
        raise FrameInvalid
    try:
        content = orjson.loads(text)
    except (ValueError, RecursionError) as error:
        raise FrameInvalid from error
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        raise FrameInvalid
    return content
