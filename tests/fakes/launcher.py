"""A launcher of plain subprocesses: it starts and ends them and restarts nothing, like the product's."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

TERM_PATIENCE_S = 15.0


class SubprocessLauncher:
    """Processes by name; leaving the context ends them all. Output goes to one file per name in `logs`."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self.started: list[str] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for name in list(self._running):
            await self.stop(name)

    async def start(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        await self.stop(name)
        self.started.append(name)
        self._logs.mkdir(parents=True, exist_ok=True)
        with (self._logs / f"{name}.log").open("ab") as output:
            self._running[name] = await asyncio.create_subprocess_exec(
                *argv, env={**os.environ, **env}, stdout=output, stderr=output, start_new_session=True
            )

    async def stop(self, name: str) -> None:
        process = self._running.pop(name, None)
        if process is None:
            return
        for number, patience_s in ((signal.SIGTERM, TERM_PATIENCE_S), (signal.SIGKILL, 5.0)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), patience_s)
                return

    async def is_alive(self, name: str) -> bool:
        process = self._running.get(name)
        return process is not None and process.returncode is None

    async def names(self) -> frozenset[str]:
        return frozenset(self._running)

    def pid(self, name: str) -> int:
        return self._running[name].pid

    def log(self, name: str) -> str:
        return (self._logs / f"{name}.log").read_text(errors="replace")
