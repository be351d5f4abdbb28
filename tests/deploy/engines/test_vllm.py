"""The start of our own vLLM server, with a server that only pretends; the real one is in the engine contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import aiohttp
import pytest

from deploy.engines import health, vllm
from deploy.engines.driver import ServedVersion
from deploy.engines.errors import EngineStartFailed
from deploy.engines.model_folder import ModelFolder
from deploy.engines.vllm import VllmDriver, VllmServer
from rubric import Deadlines, TemplateNeeds
from tests.fakes.engine import FakeEngine, Script

BASE = ServedVersion(name="policy-base", folder=None, kind="base")


class Pretends:
    """A launcher whose one process was there before."""

    def __init__(self) -> None:
        self.stopped: list[str] = []

    async def start(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        assert name
        assert argv
        assert env

    async def stop(self, name: str) -> None:
        self.stopped.append(name)

    async def is_alive(self, name: str) -> bool:
        return name not in self.stopped

    async def names(self) -> frozenset[str]:
        return frozenset()


def driver_of(engine: FakeEngine, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch) -> VllmDriver:
    """Starts the fake engine, as it thinks; the usual question for health is asked with little patience."""
    port = int(engine.base_url.rpartition(":")[2])
    monkeypatch.setattr(vllm, "free_port", lambda: port)
    monkeypatch.setattr(health, "PROBE_S", Deadlines(connect_s=1.0, first_token_s=0.1, whole_s=0.1))
    base = SimpleNamespace(hf=Path("model"), manifest=SimpleNamespace(template=TemplateNeeds()))
    return VllmDriver(
        base=cast(ModelFolder, base), launcher=Pretends(), client=client, server=VllmServer(python=Path("python"))
    )


async def test_first_token_may_take_as_long_as_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeEngine(Script(tokens=("yes",), first_s=0.6)) as engine, aiohttp.ClientSession() as client:
        driver = driver_of(engine, client, monkeypatch)
        endpoint = await driver.ensure(BASE)
        assert endpoint.base_url == engine.base_url
        assert not (await driver.health(endpoint)).is_well  # from then on it must be quick


async def test_server_that_never_gives_a_token_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm, "FIRST_ANSWER_S", Deadlines(connect_s=1.0, first_token_s=0.2, whole_s=0.2))
    async with FakeEngine(Script(hangs=True)) as engine, aiohttp.ClientSession() as client:
        with pytest.raises(EngineStartFailed, match="its base gave timeout"):
            await driver_of(engine, client, monkeypatch).ensure(BASE)
