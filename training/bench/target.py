"""A web process under measurement: its doors, its stopwatch, its costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from training.bench import machine
from training.bench.visitor import Door


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """One web process; `address` is `http://127.0.0.1:port`. The twin has no stopwatch."""

    address: str
    pid: int

    @property
    def door(self) -> Door:
        """Where its sockets are."""
        return Door(url=f"{self.address.replace('http', 'ws', 1)}/ws/chat/", origin=self.address)

    def cpu_s(self) -> float:
        """Seconds of CPU so far."""
        return machine.cpu_s(self.pid)

    def memory_bytes(self) -> int:
        """Resident memory now."""
        return machine.memory_bytes(self.pid)

    async def ask(self, path: str, *, timeout_s: float = 60.0) -> dict[str, Any]:
        """Ask the stopwatch."""
        limits = aiohttp.ClientTimeout(total=timeout_s)
        async with aiohttp.ClientSession(timeout=limits) as client, client.get(self.address + path) as answer:
            answer.raise_for_status()
            value: dict[str, Any] = orjson.loads(await answer.read())
            return value

    async def handovers(self) -> dict[str, list[list[float]]]:
        """Conversation -> replies -> the moments at which their tokens reached the output screen."""
        found: dict[str, list[list[float]]] = (await self.ask("/bench/handovers"))["handovers"]
        return found

    async def reset(self) -> None:
        """Forget what was noted so far."""
        await self.ask("/bench/reset")


@dataclass(frozen=True, kw_only=True, slots=True)
class PacedAddress:
    """The paced engine."""

    address: str

    async def set_pace(self, *, tokens: int, per_s: float, first_s: float = 0.02, pad: int = 0) -> None:
        """How the requests that follow are answered; `pad` adds characters to each token."""
        body = {"tokens": tokens, "per_s": per_s, "first_s": first_s, "pad": pad}
        async with aiohttp.ClientSession() as client, client.post(f"{self.address}/pace", json=body) as answer:
            answer.raise_for_status()
