"""A process that ended starts again, ever more slowly, and one that keeps failing says so once. Used by `supervise`.

Circus restarts a process at its next look, as often as it dies. Here a watcher is created with `respawn` off: when its
process ends, circus stops the watcher and calls us; we start it again after a delay that doubles, up to half a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from circus.exc import ConflictError
from circus.watcher import Watcher

from deploy.local.stream import PrefixStream

REMEMBERED_S = 120.0
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
ENDS_BEFORE_REPORT = 5
REMEDIES = {
    "web": "The lines name the cause. Often: a setting that cannot be read, or the port was taken after the start.",
    "worker": "The lines name the cause. Often: a setting that cannot be read, or Redis is away (see REDIS_URL).",
    "engine": "Often memory: one model server takes 0.5-1.0 GB. A broken model folder is rebuilt where it is missing: "
    "delete `model` in the cache folder and start again.",
    "encoder": "Often a broken encoder folder: delete `encoder` in the cache folder and start again. Until it answers, "
    "every message counts as high risk and visitors see the helplines.",
    "redis": "Often memory, or no right to write in the data folder.",
}
GENERAL_REMEDY = "The lines above name the cause; see `docs/operations.md`, trouble."


def delay_s(ends: int) -> float:
    """0.5 s after the first end within two minutes, doubling, at most 30 s."""
    return float(min(LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** (ends - 1)))


class Restarts:
    """Watches the watchers: `hooks` goes into each of them, `stop` ends all restarting."""

    def __init__(self, say: Callable[[str], None], *, counters: Path | None = None) -> None:
        self._say = say
        self._counters = counters
        self._ends: dict[str, deque[float]] = {}
        self._waiting: set[asyncio.Task[None]] = set()
        self._pausing: set[str] = set()  # names of what starts again in a moment
        self._is_stopping = False

    @property
    def hooks(self) -> dict[str, tuple[Callable[..., bool], bool]]:
        """For a watcher's `hooks` option: (callable, whether its failure is ignored)."""
        return {
            "before_reap": (self._read_rest, True),
            "after_reap": (self._note_end, True),
            "after_stop": (self._note_stop, True),
        }

    @property
    def guest_hooks(self) -> dict[str, tuple[Callable[..., bool], bool]]:
        """For the model servers, which the keeper adds and starts again itself."""
        return {"before_reap": (self._read_rest, True), "after_reap": (self._say_end, True)}

    def stop(self) -> None:
        """From now on nothing starts again."""
        self._is_stopping = True
        for task in self._waiting:
            task.cancel()

    def _read_rest(self, watcher: Watcher, *, process_pid: int, **_facts: Any) -> bool:
        """Circus closes a dead process's pipes with what they still hold: its last words, which name the cause."""
        process = watcher.processes.get(process_pid)
        if process is None:
            return True
        sides = (("stdout", process.stdout, watcher.stdout_stream), ("stderr", process.stderr, watcher.stderr_stream))
        for name, pipe, stream in sides:
            if pipe is None or not isinstance(stream, PrefixStream):
                continue
            with contextlib.suppress(OSError, ValueError):
                os.set_blocking(pipe.fileno(), False)
                while piece := os.read(pipe.fileno(), 65_536):
                    stream({"data": piece, "pid": process_pid, "name": name})
            stream.end_of(process_pid)
        if watcher.stream_redirector:
            watcher.stream_redirector.remove_redirections(process)
        return True

    def _say_end(self, watcher: Watcher, *, exit_code: int, **_facts: Any) -> bool:
        if not self._is_stopping and not watcher.is_stopping():
            self._say(f"{watcher.name} ended ({describe_exit(exit_code)})")
        return True

    def _forget_gauges(self, process_pid: int) -> None:
        """What a dead process had open is open no more; what it counted stays counted."""
        if self._counters is not None:
            for file in self._counters.glob(f"gauge_live*_{process_pid}.db"):
                file.unlink(missing_ok=True)

    def _note_end(self, watcher: Watcher, *, exit_code: int, process_pid: int = 0, **_facts: Any) -> bool:
        self._forget_gauges(process_pid)
        if not (self._is_stopping or watcher.respawn or watcher.is_stopping()):
            self._start_again(watcher, how=describe_exit(exit_code))
        return True

    def _note_stop(self, watcher: Watcher, **_facts: Any) -> bool:
        """A process that dies between two steps of one look is never reaped: circus only stops its watcher then."""
        if not (self._is_stopping or watcher.respawn or watcher.name in self._pausing):
            self._start_again(watcher, how="exit code unknown")
        return True

    def _start_again(self, watcher: Watcher, *, how: str) -> None:
        now = time.monotonic()
        ends = self._ends.setdefault(watcher.name, deque())
        ends.append(now)
        while now - ends[0] > REMEMBERED_S:
            ends.popleft()
        pause_s = delay_s(len(ends))
        self._say(f"{watcher.name} ended ({how}); starts again in {pause_s:g} s")
        if len(ends) == ENDS_BEFORE_REPORT:
            self._report(watcher, how=how)
        self._pausing.add(watcher.name)
        task = asyncio.get_running_loop().create_task(self._start_later(watcher, pause_s=pause_s))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    def _report(self, watcher: Watcher, *, how: str) -> None:
        name, stream = watcher.name, watcher.stdout_stream
        self._say(f"{name} keeps failing ({ENDS_BEFORE_REPORT} times in {REMEMBERED_S:.0f} s, {how}).")
        self._say("Its last lines:")
        for line in stream.last_lines if isinstance(stream, PrefixStream) else ():
            self._say(f"    {line}")
        self._say(f"What to do: {REMEDIES.get(name.partition('-')[0], GENERAL_REMEDY)}")

    async def _start_later(self, watcher: Watcher, *, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        self._pausing.discard(watcher.name)
        await when_free(watcher.start)


async def when_free(command: Callable[[], Any]) -> None:
    """Runs an arbiter command; circus does one at a time and refuses a second, so this asks again."""
    while True:
        try:
            await command()
        except ConflictError:
            await asyncio.sleep(0.05)
        else:
            return


def describe_exit(exit_code: int) -> str:
    """`exit code 1`, or `signal 9`."""
    return f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
