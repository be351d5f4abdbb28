"""Keeping versions served: the rounds of the keeper, without Django, Redis or a process of their own.

Each round asks which versions must answer, starts what is missing, asks the rest for a real token from time to time,
brings back what is dead or ill, and lets go of what nobody wants any more. The engine is ready when every version
that can be served is served and well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from deploy.engines.driver import EngineDriver, ServedVersion
from deploy.engines.errors import AdapterRefused, EngineSetupError, ModelUnusable, VersionUnservable
from rubric import Endpoint, EngineError

HEALTH_EVERY_S: Final = 15.0
HEALTH_AFTER_FAILURE_S: Final = 2.0
FAILURES_UNTIL_RENEWAL: Final = 2
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0

Tell = Callable[[str], None]


@dataclass(slots=True)
class _Kept:
    """One wanted version and how it fares."""

    version: ServedVersion
    endpoint: Endpoint | None = None
    work: asyncio.Task[None] | None = None  # a start or a health question that runs now
    failures: int = 0
    next_try_at: float = 0.0
    next_health_at: float = 0.0
    tokens_seen: int = -1
    refusal: str = ""  # why it can never be served as it is
    is_served_once: bool = False

    @property
    def is_busy(self) -> bool:
        return self.work is not None and not self.work.done()


@dataclass(slots=True)
class Keeping:
    """The state between rounds; `now` and `tell` are handed in."""

    driver: EngineDriver
    tell: Tell
    now: Callable[[], float] = time.monotonic
    news: asyncio.Event = field(default_factory=asyncio.Event)  # a start or a question has ended: write it down
    _kept: dict[str, _Kept] = field(default_factory=dict)
    _leaving: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _start_turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def endpoints(self) -> Mapping[str, Endpoint]:
        """Every version that answers now."""
        return {name: kept.endpoint for name, kept in self._kept.items() if kept.endpoint is not None}

    @property
    def refusals(self) -> Mapping[str, str]:
        """Every wanted version that cannot be served as it is, and why."""
        return {name: kept.refusal for name, kept in self._kept.items() if kept.refusal}

    @property
    def is_ready(self) -> bool:
        """Every wanted version that can be served is served and well, and there is one."""
        wanted = [kept for kept in self._kept.values() if not kept.refusal]
        return bool(wanted) and all(kept.endpoint is not None and not kept.failures for kept in wanted)

    async def adopt(self, wanted: Sequence[ServedVersion], found: Mapping[str, Endpoint]) -> None:
        """Take over what an earlier keeper left running; called once, before the first round."""
        for version in wanted:
            endpoint = found.get(version.name)
            if endpoint is not None and await self.driver.adopt(version, endpoint):
                self.tell(f"{version.name} is served already at {endpoint.base_url}")
                self._kept[version.name] = _Kept(
                    version, endpoint, next_health_at=self.now() + HEALTH_EVERY_S, is_served_once=True
                )

    async def round(self, wanted: Sequence[ServedVersion]) -> None:
        """One round; starts and questions run on beside it."""
        names = {version.name for version in wanted}
        for name in [name for name in self._kept if name not in names]:
            self._let_go(name)
        for version in wanted:
            if version.name not in self._kept and not self._is_leaving(version.name):
                self._kept[version.name] = _Kept(version)
        for kept in self._kept.values():
            if not kept.is_busy and not kept.refusal:
                try:
                    await self._look_after(kept)
                except EngineSetupError as error:
                    self.tell(str(error))  # the launcher does not answer: the next round asks again

    async def close(self) -> None:
        """Give up what runs beside the rounds; what is served goes on."""
        tasks = [kept.work for kept in self._kept.values() if kept.work is not None] + list(self._leaving.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.driver.close()

    async def _look_after(self, kept: _Kept) -> None:
        now = self.now()
        name = kept.version.name
        if kept.endpoint is not None and not await self.driver.is_serving(name):
            self.tell(f"{name} has died")
            kept.endpoint = None
            kept.next_try_at = now
        if kept.endpoint is None:
            if now >= kept.next_try_at:
                renews = kept.is_served_once
                work = self.driver.renew if renews else self.driver.ensure
                self._begin(kept, self._start(kept, work))
        elif now >= kept.next_health_at:
            self._begin(kept, self._ask(kept, kept.endpoint))

    def _begin(self, kept: _Kept, work: Coroutine[Any, Any, None]) -> None:
        kept.work = asyncio.create_task(work)
        kept.work.add_done_callback(lambda _: self.news.set())

    async def _start(self, kept: _Kept, work: Callable[[ServedVersion], Awaitable[Endpoint]]) -> None:
        """Start or bring back one version; one at a time, since each takes all cores for some seconds."""
        name = kept.version.name
        async with self._start_turn:
            began_at = self.now()
            try:
                kept.endpoint = await work(kept.version)
            except (AdapterRefused, VersionUnservable, ModelUnusable) as error:
                kept.refusal = str(error)
                self.tell(f"{error} {name} is not served: mend it and start the engine's process again, or retire it.")
                return
            except (EngineSetupError, EngineError) as error:
                kept.failures += 1
                pause_s = min(FIRST_PAUSE_S * 2 ** (kept.failures - 1), LONGEST_PAUSE_S)
                kept.next_try_at = self.now() + pause_s
                self.tell(f"{error} The next try is in {pause_s:.0f} s.")
                return
        kept.failures = 0
        kept.is_served_once = True
        kept.next_health_at = self.now() + HEALTH_EVERY_S
        missing = ", ".join(kept.endpoint.features.missing)
        off = f"; it has no {missing}: what needs them is off" if missing else ""
        self.tell(f"{name} is served at {kept.endpoint.base_url} after {self.now() - began_at:.1f} s{off}")

    async def _ask(self, kept: _Kept, endpoint: Endpoint) -> None:
        """Ask for a real token; an engine that is busy but generates counts as well."""
        health = await self.driver.health(endpoint)
        counters = await self.driver.counters(endpoint)
        generated = counters.generated_tokens if counters else -1
        is_working = counters is not None and counters.busy_slots > 0 and generated > kept.tokens_seen >= 0
        kept.tokens_seen = generated
        if health.is_well or (is_working and health.detail.startswith("timeout")):
            kept.failures = 0
            kept.next_health_at = self.now() + HEALTH_EVERY_S
            return
        kept.failures += 1
        kept.next_health_at = self.now() + HEALTH_AFTER_FAILURE_S
        self.tell(f"{kept.version.name} is not well ({health.detail}, {kept.failures} in a row)")
        if kept.failures >= FAILURES_UNTIL_RENEWAL:
            kept.endpoint = None
            kept.next_try_at = self.now()

    def _let_go(self, name: str) -> None:
        """Out of the directory at once; the driver waits for running replies."""
        kept = self._kept.pop(name)
        self.tell(f"{name} is not wanted any more and drains")
        self._leaving[name] = asyncio.create_task(self._retire(kept))

    async def _retire(self, kept: _Kept) -> None:
        if kept.work is not None:
            kept.work.cancel()  # a start that is under way has a process already, which the driver ends
            await asyncio.gather(kept.work, return_exceptions=True)
        try:
            await self.driver.retire(kept.version.name)
        except (EngineSetupError, EngineError) as error:
            self.tell(str(error))

    def _is_leaving(self, name: str) -> bool:
        task = self._leaving.get(name)
        if task is not None and task.done():
            del self._leaving[name]
            return False
        return task is not None
