"""/healthz (this process answers), /readyz (everything it needs answers), /metrics (Prometheus).

Readiness asks the database, Redis, the engine's keeper, the encoder and a worker, all at once, each with its own
deadline; the answer says of each whether it is well, why not, and how long it took. 503 where any is not.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import TypeVar
from uuid import uuid4

import aiohttp
from celery import current_app
from django.conf import settings
from django.db import connection, connections
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_GET
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from chat import policies
from chat.models.learning import VersionKind
from chat.store import ENGINE_READY_KEY, ENGINE_REFUSED_KEY, redis_here
from rubric import EngineUnreachable

DEADLINE_S = 2.0
ECHO_POLL_S = 0.02
Result = TypeVar("Result")


class NotReady(Exception):
    """A part answered, and what it answered is not enough; the sentence says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PartHealth:
    """One part of the product."""

    name: str
    ok: bool
    why: str
    took_ms: float


def healthz(_request: HttpRequest) -> JsonResponse:
    """This process is alive."""
    return JsonResponse({"ok": True})


async def readyz(_request: HttpRequest) -> JsonResponse:
    """Whether a visitor who came now would be answered."""
    parts = await asyncio.gather(*(_measure(name, check) for name, check in _CHECKS))
    is_ready = all(part.ok for part in parts)
    content = {"ok": is_ready, "parts": [asdict(part) for part in parts]}
    return JsonResponse(content, status=200 if is_ready else 503, headers={"Cache-Control": "no-store"})


@require_GET
def metrics(_request: HttpRequest) -> HttpResponse:
    """Counts of all processes that share PROMETHEUS_MULTIPROC_DIR, else of this one. No ids, no texts."""
    registry: CollectorRegistry = REGISTRY
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


async def _measure(name: str, check: Callable[[], Awaitable[None]]) -> PartHealth:
    started_s = time.monotonic()
    why = ""
    try:
        async with asyncio.timeout(DEADLINE_S):
            await check()
    except TimeoutError:
        why = f"no answer within {DEADLINE_S:.0f} s"
    except NotReady as error:
        why = str(error)
    except Exception as error:
        why = type(error).__name__
    return PartHealth(name=name, ok=not why, why=why, took_ms=round((time.monotonic() - started_s) * 1000, 1))


def _ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()


async def _in_own_thread(ask: Callable[[], Result]) -> Result:
    """Ask in a thread of its own: a database that hangs takes no thread that requests need, and no deadline with it."""

    def ask_and_close() -> Result:
        try:
            return ask()
        finally:
            connections.close_all()

    return await asyncio.to_thread(ask_and_close)


async def _check_database() -> None:
    await _in_own_thread(_ask_database)


async def _check_redis() -> None:
    await redis_here().ping()


async def _check_engine() -> None:
    live = await _in_own_thread(partial(policies.live_version, VersionKind.POLICY))
    if live is None:
        raise NotReady("no version is live")
    if refusal := await redis_here().hget(ENGINE_REFUSED_KEY, live.name):
        raise NotReady(f"{live.name} is live and not served; mend it, or make another version live. {refusal!s}")
    if not await redis_here().get(ENGINE_READY_KEY):
        raise NotReady("the engine's keeper is away, or has not got every version up yet: see the engine's log")
    try:
        await policies.directory.find(live.name)
    except EngineUnreachable as error:
        raise NotReady(f"{live.name} is live and not served: see the engine's log") from error


async def _check_encoder() -> None:
    timeout = aiohttp.ClientTimeout(total=DEADLINE_S)
    url = f"{settings.RAPPORT_ENCODER_URL.rstrip('/')}/healthz"
    async with aiohttp.ClientSession(timeout=timeout) as client, client.get(url) as answer:
        if answer.status != 200:
            raise NotReady(f"status {answer.status}")


async def _check_worker() -> None:
    """A round trip: broker, worker, Redis. An echo that nobody took within the deadline expires by itself."""
    key = uuid4().hex
    await asyncio.to_thread(_send_echo, key)
    give_up_s = time.monotonic() + DEADLINE_S  # by the clock too: a client may lose the deadline's cancellation
    while not await redis_here().get(f"rapport:echo:{key}"):
        if time.monotonic() >= give_up_s:
            raise TimeoutError
        await asyncio.sleep(ECHO_POLL_S)


def _send_echo(key: str) -> None:
    current_app.send_task("chat.tasks.echo", args=[key], expires=DEADLINE_S * 2, retry=False)


_CHECKS: tuple[tuple[str, Callable[[], Awaitable[None]]], ...] = (
    ("database", _check_database),
    ("redis", _check_redis),
    ("engine", _check_engine),
    ("encoder", _check_encoder),
    ("worker", _check_worker),
)
