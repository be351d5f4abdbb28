"""Readiness names what is missing, answers in time, and metrics carry numbers only."""

import asyncio
import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from django.test import AsyncClient, Client

from chat import health, metrics, policies
from chat.models import PolicyVersion
from chat.store import ENDPOINTS_KEY, ENGINE_READY_KEY, close_redis_here, redis_here
from deploy.engines.directory import EndpointDirectory
from tests.factories import make_version
from tests.fakes.engine import FakeEngine, Script

pytestmark = pytest.mark.redis
PARTS = ["database", "redis", "engine", "encoder", "worker"]


@pytest.fixture
async def live(transactional_db: None, clean_redis: None) -> AsyncIterator[PolicyVersion]:
    policies.directory._rows.clear()
    yield await sync_to_async(make_version)()
    policies.directory._rows.clear()
    await close_redis_here()


@asynccontextmanager
async def answering(path: str) -> AsyncIterator[str]:
    """A server that answers 200 at one path."""

    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"ok": True})

    app = web.Application()
    app.router.add_get(path, answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield site.name
    await runner.cleanup()


async def ask() -> tuple[int, dict[str, dict[str, Any]]]:
    response = await AsyncClient().get("/readyz")
    content = response.json()
    assert content["ok"] == (response.status_code == 200)
    return response.status_code, {part["name"]: part for part in content["parts"]}


async def answer_echoes() -> None:
    """A worker: takes the echo from the broker's queue and answers it as the task does."""
    while True:
        raw = await redis_here().rpop("default")
        if isinstance(raw, str):
            key = json.loads(base64.b64decode(json.loads(raw)["body"]))[0][0]
            await redis_here().set(f"rapport:echo:{key}", "1", ex=30)
        await asyncio.sleep(0.01)


async def test_everything_well_is_200_with_how_long_each_part_took(live: PolicyVersion, settings: Any) -> None:
    async with FakeEngine(Script(tokens=("a",))) as engine, answering("/healthz") as encoder_url:
        settings.RAPPORT_ENCODER_URL = encoder_url
        await redis_here().set(ENGINE_READY_KEY, "1")
        await redis_here().hset(ENDPOINTS_KEY, live.name, engine.endpoint(slots=1).to_json())
        worker = asyncio.create_task(answer_echoes())
        status, parts = await ask()
        worker.cancel()
    assert list(parts) == PARTS
    assert [part["why"] for part in parts.values()] == [""] * 5
    assert status == 200
    assert all(0 <= part["took_ms"] < 2_500 for part in parts.values())


async def test_every_missing_part_is_named_within_the_deadline(live: PolicyVersion, settings: Any) -> None:
    settings.RAPPORT_ENCODER_URL = "http://127.0.0.1:9"
    started_s = time.monotonic()
    status, parts = await ask()
    assert time.monotonic() - started_s < 4
    assert status == 503
    assert [name for name, part in parts.items() if part["ok"]] == ["database", "redis"]
    assert "keeper" in parts["engine"]["why"]
    assert parts["encoder"]["why"] == "ClientConnectorError"
    assert parts["worker"]["why"] == "no answer within 2 s"


async def test_engine_that_does_not_serve_the_live_version_is_not_ready(live: PolicyVersion) -> None:
    await redis_here().set(ENGINE_READY_KEY, "1")
    _, parts = await ask()
    assert parts["engine"]["why"] == f"{live.name} is live and not served: see the engine's log"
    await PolicyVersion.objects.all().adelete()
    _, parts = await ask()
    assert parts["engine"]["why"] == "no version is live"


async def test_live_version_that_the_engine_refuses_is_named_with_why_and_what_to_do(live: PolicyVersion) -> None:
    directory = EndpointDirectory(django_settings.REDIS_URL)
    await directory.write({}, is_ready=False, refusals={live.name: "The adapter is refused (rank): rank 99.", "b": "x"})
    status, parts = await ask()
    assert status == 503
    assert parts["engine"]["why"] == (
        f"{live.name} is live and not served; mend it, or make another version live."
        " The adapter is refused (rank): rank 99."
    )
    await directory.write({}, is_ready=False)
    assert "keeper" in (await ask())[1]["engine"]["why"]
    await directory.close()


async def test_database_and_redis_that_are_gone_are_named(live: PolicyVersion, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ConnectionError("postgresql://user:SECRET@host")

    monkeypatch.setattr(health, "_ask_database", fail)
    monkeypatch.setattr(health, "redis_here", fail)
    status, parts = await ask()
    assert status == 503
    assert parts["database"]["why"] == parts["redis"]["why"] == "ConnectionError"


def test_process_answers_healthz_without_any_part() -> None:
    assert Client().get("/healthz").json() == {"ok": True}


def test_metrics_name_every_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR", raising=False)
    metrics.REPLIES.labels(ending="complete").inc()
    text = Client().get("/metrics").content.decode()
    for name in (
        "rapport_replies_total",
        "rapport_rubrics_total",
        "rapport_scores_total",
        "rapport_safety_total",
        "rapport_sockets",
        "rapport_first_token_seconds",
        "rapport_errors_total",
        "rapport_alerts_total",
    ):
        assert f"# HELP {name.removesuffix('_total')}" in text or f"# HELP {name}" in text
    assert 'rapport_replies_total{ending="complete"}' in text


def test_counts_of_several_processes_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker grades, the web process serves /metrics: one folder joins them."""
    code = "from chat.metrics import RUBRICS, SOCKETS; RUBRICS.labels('valid').inc(2); SOCKETS.labels('staff').inc()"
    environ = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], check=True, env=environ, cwd=django_settings.BASE_DIR)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    assert 'rapport_rubrics_total{outcome="valid"} 4.0' in Client().get("/metrics").content.decode()
