"""A process that ended starts again, however circus noticed its end, and once."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deploy.local import restarts
from deploy.local.restarts import Restarts, delay_s


@dataclass
class OneProcess:
    """As much of a circus watcher as the hooks look at."""

    name: str = "web"
    respawn: bool = False
    is_asked_to_stop: bool = False
    starts: list[str] = field(default_factory=list)
    stdout_stream: object = None

    def is_stopping(self) -> bool:
        return self.is_asked_to_stop

    async def start(self) -> None:
        self.starts.append(self.name)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts, "FIRST_DELAY_S", 0.01)


def reaped(watched: Restarts, watcher: OneProcess) -> None:
    hook, _ = watched.hooks["after_reap"]
    hook(watcher=watcher, arbiter=None, hook_name="after_reap", process_pid=7, exit_code=-9, time=0.0)


def stopped(watched: Restarts, watcher: OneProcess) -> None:
    hook, _ = watched.hooks["after_stop"]
    hook(watcher=watcher, arbiter=None, hook_name="after_stop")


async def test_end_that_circus_reaped_brings_one_start() -> None:
    said: list[str] = []
    watched, watcher = Restarts(said.append), OneProcess()
    reaped(watched, watcher)
    stopped(watched, watcher)  # circus stops the watcher of an ended process, in the same look
    await asyncio.sleep(0.1)
    assert watcher.starts == ["web"]
    assert said == ["web ended (signal 9); starts again in 0.01 s"]


async def test_end_that_circus_overlooked_brings_one_start_too() -> None:
    said: list[str] = []
    watched, watcher = Restarts(said.append), OneProcess()
    for _ in range(2):
        stopped(watched, watcher)
        await asyncio.sleep(0.1)
    assert watcher.starts == ["web", "web"]
    assert said[0].startswith("web ended (exit code unknown)")


@pytest.mark.parametrize("is_reaped", [True, False])
async def test_nothing_starts_again_while_everything_stops(is_reaped: bool) -> None:
    watched, watcher = Restarts(lambda _: None), OneProcess()
    watched.stop()
    (reaped if is_reaped else stopped)(watched, watcher)
    await asyncio.sleep(0.1)
    assert watcher.starts == []


async def test_open_sockets_of_a_dead_process_are_no_longer_counted(tmp_path: Path) -> None:
    mine, other, counted = (tmp_path / f"{kind}.db" for kind in ("gauge_livesum_7", "gauge_livesum_77", "counter_7"))
    for file in (mine, other, counted):
        file.touch()
    watched = Restarts(lambda _: None, counters=tmp_path)
    reaped(watched, OneProcess())
    watched.stop()
    assert [file.exists() for file in (mine, other, counted)] == [False, True, True]


def test_pauses_double_up_to_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts, "FIRST_DELAY_S", 0.5)
    assert [delay_s(ends) for ends in (1, 2, 3, 7, 20)] == [0.5, 1.0, 2.0, 30.0, 30.0]
