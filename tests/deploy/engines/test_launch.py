"""`deploy.engines.launch` against a real circus arbiter."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from deploy.engines.errors import EngineStartFailed
from deploy.engines.launch import CircusLauncher

ARBITER = """
import sys
from circus.arbiter import Arbiter
Arbiter([], sys.argv[1], sys.argv[2], check_delay=0.2).start()
"""
SLEEPER = (
    sys.executable,
    "-c",
    "import os, sys, time; open(sys.argv[1], 'w').write(os.environ['WORD'] + ' ' + str(os.getpid())); time.sleep(60)",
)


async def until(claim: Callable[[], Awaitable[bool]], *, within_s: float = 10.0) -> None:
    end_at = time.monotonic() + within_s
    while not await claim():
        assert time.monotonic() < end_at, "it never came true"
        await asyncio.sleep(0.05)


@pytest.fixture
async def launcher() -> AsyncIterator[CircusLauncher]:
    with tempfile.TemporaryDirectory(prefix="circus-") as folder:
        sockets = (f"ipc://{folder}/control", f"ipc://{folder}/events")
        arbiter = subprocess.Popen([sys.executable, "-W", "ignore", "-c", ARBITER, *sockets])
        one = CircusLauncher(sockets[0])
        try:
            yield one
        finally:
            one.close()
            arbiter.terminate()
            await asyncio.to_thread(arbiter.wait, 10)


async def started(launcher: CircusLauncher, tmp_path: Path, *, word: str) -> int:
    """Start the sleeper under the name `engine-x`; its process id."""
    note = tmp_path / "note"
    note.unlink(missing_ok=True)
    await launcher.start("engine-x", [*SLEEPER, str(note)], {"WORD": word})

    async def is_noted() -> bool:
        return note.exists() and note.read_text().count(" ") == 1

    await until(is_noted)
    said, pid = note.read_text().split()
    assert said == word
    return int(pid)


async def test_a_process_lives_from_start_to_stop(launcher: CircusLauncher, tmp_path: Path) -> None:
    assert not await launcher.is_alive("engine-x")
    pid = await started(launcher, tmp_path, word="hello")
    assert await launcher.is_alive("engine-x")
    assert "engine-x" in await launcher.names()
    await launcher.stop("engine-x")
    assert not await launcher.is_alive("engine-x")
    assert "engine-x" not in await launcher.names()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    await launcher.stop("engine-x")  # an unknown name is no error


async def test_a_second_start_replaces_the_first(launcher: CircusLauncher, tmp_path: Path) -> None:
    first = await started(launcher, tmp_path, word="one")
    second = await started(launcher, tmp_path, word="two")
    assert first != second
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


async def test_a_process_that_dies_is_dead_and_stays_so(launcher: CircusLauncher, tmp_path: Path) -> None:
    pid = await started(launcher, tmp_path, word="one")
    os.kill(pid, signal.SIGKILL)

    async def is_dead() -> bool:
        return not await launcher.is_alive("engine-x")

    await until(is_dead)
    await asyncio.sleep(1.0)
    assert not await launcher.is_alive("engine-x")


async def test_starts_at_the_same_time_wait_for_the_arbiter(launcher: CircusLauncher, tmp_path: Path) -> None:
    names = [f"engine-{number}" for number in range(3)]
    await asyncio.gather(*(launcher.start(name, [*SLEEPER, str(tmp_path / name)], {"WORD": "x"}) for name in names))
    assert [await launcher.is_alive(name) for name in names] == [True] * 3


async def test_no_arbiter_is_a_named_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.engines.launch.ANSWER_S", 0.2)
    launcher = CircusLauncher(f"ipc://{tmp_path}/nobody")
    with pytest.raises(EngineStartFailed):
        await launcher.names()
    launcher.close()
