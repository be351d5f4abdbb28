"""The keeper's rounds over real llama.cpp servers: killed, hung, adopted."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from deploy.engines.driver import ServedVersion
from deploy.engines.keep import Keeping
from deploy.engines.llamacpp import LlamaCppDriver, watcher_name
from deploy.engines.model_folder import ModelFolder
from rubric import Deadlines, HttpChatModel, Sampling, Transcript, open_client
from tests.fakes.launcher import SubprocessLauncher

pytestmark = pytest.mark.engine

HELLO = Transcript.of(("user", "hello"))


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A launcher that outlives keepers, and what they need."""

    launcher: SubprocessLauncher
    client: aiohttp.ClientSession
    base: ModelFolder
    work: Path
    wanted: tuple[ServedVersion, ...]
    said: list[str]

    def keeping(self) -> Keeping:
        driver = LlamaCppDriver(base=self.base, launcher=self.launcher, client=self.client, work=self.work)
        return Keeping(driver=driver, tell=self.said.append)


@pytest.fixture
async def bench(base: ModelFolder, adapters: dict[str, Path], tmp_path: Path) -> AsyncIterator[Bench]:
    wanted = (
        ServedVersion(name="policy-base", folder=base.folder, kind="base"),
        ServedVersion(name="policy-a", folder=adapters["policy-a"], kind="adapter"),
    )
    async with SubprocessLauncher(tmp_path / "log") as launcher, open_client() as client:
        yield Bench(launcher=launcher, client=client, base=base, work=tmp_path / "work", wanted=wanted, said=[])


async def keep_until(keeping: Keeping, bench: Bench, *, ready: bool, within_s: float = 60.0) -> None:
    end_at = time.monotonic() + within_s
    while keeping.is_ready is not ready:
        assert time.monotonic() < end_at, bench.said
        await keeping.round(bench.wanted)
        await asyncio.sleep(0.05)


async def test_killed_and_hung_servers_come_back_and_a_new_keeper_takes_over(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.engines.health.PROBE_S", Deadlines(connect_s=1, whole_s=4))
    monkeypatch.setattr("deploy.engines.keep.HEALTH_EVERY_S", 1.0)
    monkeypatch.setattr("deploy.engines.keep.HEALTH_AFTER_FAILURE_S", 0.1)
    keeping = bench.keeping()
    await keep_until(keeping, bench, ready=True)

    # Killed: out of the directory, then served again.
    os.killpg(bench.launcher.pid(watcher_name("policy-a")), signal.SIGKILL)
    await keep_until(keeping, bench, ready=False)
    await keep_until(keeping, bench, ready=True)
    assert keeping.endpoints.keys() == {"policy-base", "policy-a"}

    # Hung: alive as a process, but without a token.
    hung = bench.launcher.pid(watcher_name("policy-base"))
    os.killpg(hung, signal.SIGSTOP)
    await keep_until(keeping, bench, ready=False)
    monkeypatch.setattr("tests.fakes.launcher.TERM_PATIENCE_S", 0.5)
    await keep_until(keeping, bench, ready=True)
    assert bench.launcher.pid(watcher_name("policy-base")) != hung

    # A keeper that ends leaves them running, and the next one takes them over as they are.
    before = dict(keeping.endpoints)
    started = list(bench.launcher.started)
    await keeping.close()
    second = bench.keeping()
    await second.adopt(bench.wanted, before)
    assert second.is_ready
    assert bench.launcher.started == started
    (reply,) = await HttpChatModel(second.endpoints["policy-a"], bench.client).complete(
        HELLO, sampling=Sampling(max_tokens=2), deadlines=Deadlines(), request_id="adopted"
    )
    assert reply.completion_tokens
    await second.close()
