"""The product's web process with a stopwatch, for benchmarks; nothing else differs from `deploy.asgi`.

    uvicorn tests.bench.stopwatch_web:application

It notes when each token is handed over to the output screen and what the database thread does, and answers
`GET /bench/handovers`, `/bench/database`, `/bench/behind`, `/bench/reset` and `/bench/send-path`. One verb is slow on
purpose: `feedback.set` with the comment "block" sleeps for a second in sync code.
"""

from __future__ import annotations

from deploy.asgi import application as product  # loads the apps; what follows needs them

# isort: split

import asyncio
import time
from collections import defaultdict
from typing import Any
from urllib.parse import parse_qsl
from uuid import uuid4

import orjson
from django.db.backends.signals import connection_created

from chat import context, live, reply, screening, talk
from chat.live import hub_here
from chat.services import endings, feedback, messages
from rubric import Piece

BLOCK_S = 1.0
TEXT = " w017"
HEARTBEAT = 'SET "heartbeat_at"'  # one update for a whole process every two seconds
WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")
handovers: defaultdict[str, list[list[float]]] = defaultdict(list)
screenings_s: list[float] = []


class StampedReply(reply.RunningReply):
    """A running reply that keeps, by conversation, the moment at which each token came in for the output screen."""

    def __init__(self, claim: Any, **rest: Any) -> None:
        super().__init__(claim, **rest)
        self._stamps: list[float] = []
        handovers[str(claim.conversation_id)].append(self._stamps)

    def _take(self, piece: Piece) -> None:
        self._stamps.append(time.monotonic())
        super()._take(piece)


class DatabaseCounts:
    """What the database thread did: transactions, statements that write, CPU by verb."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.transactions = self.writes = self.heartbeats = 0
        self.cpu_s: defaultdict[str, float] = defaultdict(float)
        self.calls: defaultdict[str, int] = defaultdict(int)
        self._is_inside = False

    def see(self, statement: str) -> None:
        """One SQL statement; a write outside a transaction is one by itself."""
        word = statement.lstrip().split(" ", 1)[0].upper()
        if word == "BEGIN":
            self.transactions += 1
            self._is_inside = True
        elif word in {"COMMIT", "ROLLBACK"}:
            self._is_inside = False
        elif HEARTBEAT in statement:
            self.heartbeats += 1
        elif word in WRITES:
            self.writes += 1
            self.transactions += not self._is_inside

    def clocked(self, verb: Any) -> Any:
        """The verb with its thread's CPU noted under its name."""
        name = getattr(verb, "__name__", "partial")

        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.thread_time()
            try:
                return verb(*args, **kwargs)
            finally:
                self.cpu_s[name] += time.thread_time() - began
                self.calls[name] += 1

        return call

    def as_value(self) -> dict[str, Any]:
        return {
            "transactions": self.transactions,
            "writes": self.writes,
            "heartbeats": self.heartbeats,
            "cpu_s": self.cpu_s,
            "calls": self.calls,
        }


counts = DatabaseCounts()


def watch_connection(connection: Any, **_: Any) -> None:
    if connection.vendor == "sqlite":
        connection.connection.set_trace_callback(counts.see)


def blocked_feedback(*args: Any, **kwargs: Any) -> Any:
    if kwargs.get("comment") == "block":
        time.sleep(BLOCK_S)
    return set_feedback(*args, **kwargs)


async def clocked_screen(*args: Any, **kwargs: Any) -> Any:
    began = time.monotonic()
    try:
        return await screening.screen_visitor(*args, **kwargs)
    finally:
        screenings_s.append(time.monotonic() - began)


async def send_path(*, seconds: float, per_s: float) -> None:
    """Every follower gets a delta per tick, as from a running reply without hold-back."""
    hub = await hub_here()
    followers = [one for here in hub.followers.values() for one in here]
    await asyncio.gather(*(_tick(one, seconds=seconds, per_s=per_s) for one in followers))


async def _tick(follower: Any, *, seconds: float, per_s: float) -> None:
    loop = asyncio.get_running_loop()
    began, message_id = loop.time(), uuid4()
    for index in range(int(seconds * per_s)):
        await asyncio.sleep(max(0.0, began + index / per_s - loop.time()))
        follower.push_delta(message_id, offset=index * len(TEXT), text=TEXT)


async def _bench(scope: Any, send: Any) -> None:
    options = dict(parse_qsl(scope["query_string"].decode()))
    value: Any = {}
    match scope["path"]:
        case "/bench/handovers":
            value = {"handovers": handovers, "screenings_s": screenings_s}
        case "/bench/database":
            value = counts.as_value()
        case "/bench/reset":
            handovers.clear()
            screenings_s.clear()
            counts.clear()
        case "/bench/behind":
            followers = [one for here in (await hub_here()).followers.values() for one in here]
            value = {"behind": sum(one.blocked_since_s is not None for one in followers)}
        case "/bench/send-path":
            await send_path(seconds=float(options["seconds"]), per_s=float(options["per_s"]))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": orjson.dumps(value)})


async def application(scope: Any, receive: Any, send: Any) -> None:
    """The product, and beside it /bench/."""
    if scope["type"] == "http" and scope["path"].startswith("/bench/"):
        await _bench(scope, send)
    else:
        await product(scope, receive, send)


set_feedback = feedback.set_feedback
STOPWATCHES: tuple[tuple[Any, str, Any], ...] = (
    (feedback, "set_feedback", blocked_feedback),
    (live, "RunningReply", StampedReply),
    (talk, "screen_visitor", clocked_screen),
    *((messages, name, counts.clocked(getattr(messages, name))) for name in ("recent_visitor_texts", "post_message")),
    (reply, "prepare", counts.clocked(context.prepare)),
    (endings, "finish_reply", counts.clocked(endings.finish_reply)),
)
for module, name, value in STOPWATCHES:
    setattr(module, name, value)
connection_created.connect(watch_connection)
