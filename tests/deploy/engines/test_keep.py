"""`deploy.engines.keep`: what a round does, told by a driver that does as it is told."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from deploy.engines.driver import EngineCounters, EngineHealth, ServedVersion
from deploy.engines.errors import AdapterRefused, EngineStartFailed
from deploy.engines.keep import FAILURES_UNTIL_RENEWAL, HEALTH_AFTER_FAILURE_S, HEALTH_EVERY_S, Keeping
from rubric import Endpoint, EngineFeatures, EngineUnreachable

BASE = ServedVersion(name="policy-base", folder=Path("base"), kind="base")
ADAPTER = ServedVersion(name="policy-a", folder=Path("a"), kind="adapter")
WELL = EngineHealth(is_well=True, detail="a token", took_ms=1)
ILL = EngineHealth(is_well=False, detail="no finite log-probability", took_ms=1)
LATE = EngineHealth(is_well=False, detail="timeout_whole", took_ms=1)


@dataclass
class TellableDriver:
    """Serves what it is asked for, unless `troubles` has something for the name."""

    calls: list[str] = field(default_factory=list)
    alive: set[str] = field(default_factory=set)
    troubles: dict[str, Exception] = field(default_factory=dict)
    healths: dict[str, EngineHealth] = field(default_factory=dict)
    counts: EngineCounters | None = None
    gate: asyncio.Event | None = None  # starts wait for it
    drained: asyncio.Event | None = None  # retirements wait for it

    async def _serve(self, verb: str, version: ServedVersion) -> Endpoint:
        self.calls.append(f"{verb} {version.name}")
        if self.gate is not None:
            await self.gate.wait()
        if version.name in self.troubles:
            raise self.troubles[version.name]
        self.alive.add(version.name)
        features = EngineFeatures(adapters=True, logprobs=True)
        return Endpoint(base_url=f"http://{version.name}", model=version.name, driver="told", features=features)

    async def ensure(self, version: ServedVersion) -> Endpoint:
        return await self._serve("ensure", version)

    async def renew(self, version: ServedVersion) -> Endpoint:
        return await self._serve("renew", version)

    async def adopt(self, version: ServedVersion, endpoint: Endpoint) -> bool:
        self.calls.append(f"adopt {version.name}")
        return version.name in self.alive

    async def is_serving(self, name: str) -> bool:
        return name in self.alive

    async def retire(self, name: str) -> None:
        self.calls.append(f"retire {name}")
        if self.drained is not None:
            await self.drained.wait()
        self.alive.discard(name)

    async def health(self, endpoint: Endpoint) -> EngineHealth:
        self.calls.append(f"health {endpoint.model}")
        return self.healths.get(endpoint.model, WELL)

    async def counters(self, endpoint: Endpoint) -> EngineCounters | None:
        return self.counts

    async def close(self) -> None:
        self.calls.append("close")


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def driver() -> TellableDriver:
    return TellableDriver()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def keeping(driver: TellableDriver, clock: Clock, said: list[str]) -> Keeping:
    return Keeping(driver=driver, tell=said.append, now=clock)


def is_ready(keeping: Keeping) -> bool:
    return keeping.is_ready


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def one_round(keeping: Keeping, *wanted: ServedVersion) -> None:
    await keeping.round(wanted)
    await settle()


async def test_wanted_versions_get_served_and_then_the_engine_is_ready(
    keeping: Keeping, driver: TellableDriver
) -> None:
    assert not is_ready(keeping)
    await one_round(keeping, BASE, ADAPTER)
    assert keeping.endpoints.keys() == {"policy-base", "policy-a"}
    assert is_ready(keeping)
    assert driver.calls == ["ensure policy-base", "ensure policy-a"]


async def test_it_is_not_ready_while_one_version_is_still_starting(keeping: Keeping, driver: TellableDriver) -> None:
    await one_round(keeping, BASE)
    driver.gate = asyncio.Event()
    await one_round(keeping, BASE, ADAPTER)
    assert not is_ready(keeping)
    driver.gate.set()
    await one_round(keeping, BASE, ADAPTER)
    assert is_ready(keeping)


async def test_nothing_wanted_is_not_ready(keeping: Keeping) -> None:
    await one_round(keeping)
    assert not is_ready(keeping)


async def test_a_dead_server_leaves_the_directory_and_is_brought_back(
    keeping: Keeping, driver: TellableDriver, said: list[str]
) -> None:
    await one_round(keeping, BASE, ADAPTER)
    driver.alive.discard("policy-a")
    driver.gate = asyncio.Event()
    await one_round(keeping, BASE, ADAPTER)
    assert keeping.endpoints.keys() == {"policy-base"}
    assert not is_ready(keeping)
    driver.gate.set()
    await settle()
    assert driver.calls[-1] == "renew policy-a"
    assert is_ready(keeping)
    assert "policy-a has died" in said


async def test_health_is_asked_for_every_fifteen_seconds(
    keeping: Keeping, driver: TellableDriver, clock: Clock
) -> None:
    await one_round(keeping, BASE)
    await one_round(keeping, BASE)
    assert "health policy-base" not in driver.calls
    clock.now_s += HEALTH_EVERY_S
    await one_round(keeping, BASE)
    await one_round(keeping, BASE)
    assert driver.calls.count("health policy-base") == 1


async def test_a_version_that_stays_ill_is_renewed(keeping: Keeping, driver: TellableDriver, clock: Clock) -> None:
    await one_round(keeping, BASE)
    driver.healths["policy-base"] = ILL
    clock.now_s += HEALTH_EVERY_S
    await one_round(keeping, BASE)
    assert not is_ready(keeping)
    for _ in range(FAILURES_UNTIL_RENEWAL - 1):
        clock.now_s += HEALTH_AFTER_FAILURE_S
        await one_round(keeping, BASE)
    assert not keeping.endpoints
    await one_round(keeping, BASE)
    assert driver.calls[-1] == "renew policy-base"
    assert is_ready(keeping)


async def test_a_busy_engine_that_generates_is_well_however_late_its_answer(
    keeping: Keeping, driver: TellableDriver, clock: Clock
) -> None:
    driver.healths["policy-base"] = LATE
    await one_round(keeping, BASE)
    for tokens in (100, 150, 200, 250):
        driver.counts = EngineCounters(generated_tokens=tokens, busy_slots=8)
        clock.now_s += HEALTH_EVERY_S
        await one_round(keeping, BASE)
    assert is_ready(keeping)
    assert "renew policy-base" not in driver.calls


async def test_a_busy_engine_that_generates_nothing_is_renewed(
    keeping: Keeping, driver: TellableDriver, clock: Clock
) -> None:
    driver.healths["policy-base"] = LATE
    driver.counts = EngineCounters(generated_tokens=100, busy_slots=8)
    await one_round(keeping, BASE)
    for _ in range(4):
        clock.now_s += HEALTH_EVERY_S
        await one_round(keeping, BASE)
    assert "renew policy-base" in driver.calls


async def test_a_refused_adapter_stays_off_and_does_not_hold_up_the_rest(
    keeping: Keeping, driver: TellableDriver, clock: Clock, said: list[str]
) -> None:
    driver.troubles["policy-a"] = AdapterRefused(name="policy-a", rule="finite", detail="layer 3")
    for _ in range(3):
        clock.now_s += 60
        await one_round(keeping, BASE, ADAPTER)
    assert keeping.endpoints.keys() == {"policy-base"}
    assert is_ready(keeping)
    assert driver.calls.count("ensure policy-a") == 1
    assert keeping.refusals.keys() == {"policy-a"}
    assert "finite" in keeping.refusals["policy-a"]
    (line,) = [line for line in said if "finite" in line]
    assert "policy-a is not served: mend it" in line


@pytest.mark.parametrize(
    "trouble",
    [EngineStartFailed(name="policy-base", reason="its process ended"), EngineUnreachable(base_url="x", reason="y")],
)
async def test_a_failed_start_is_tried_again_with_growing_pauses(
    keeping: Keeping, driver: TellableDriver, clock: Clock, trouble: Exception
) -> None:
    driver.troubles["policy-base"] = trouble
    tries = []
    for _ in range(40):
        before = len(driver.calls)
        await one_round(keeping, BASE)
        if len(driver.calls) > before:
            tries.append(clock.now_s)
        clock.now_s += 1
    pauses = [b - a for a, b in pairwise(tries)]
    assert pauses == sorted(pauses)
    assert 4 <= len(tries) <= 7
    driver.troubles.clear()
    clock.now_s += 60
    await one_round(keeping, BASE)
    assert is_ready(keeping)


async def test_an_unwanted_version_leaves_at_once_and_drains_aside(keeping: Keeping, driver: TellableDriver) -> None:
    await one_round(keeping, BASE, ADAPTER)
    driver.drained = asyncio.Event()
    await one_round(keeping, BASE)
    assert keeping.endpoints.keys() == {"policy-base"}
    assert is_ready(keeping)
    assert driver.alive == {"policy-base", "policy-a"}
    await one_round(keeping, BASE, ADAPTER)  # wanted again while it drains: it waits
    assert driver.calls.count("ensure policy-a") == 1
    driver.drained.set()
    await settle()
    assert driver.alive == {"policy-base"}
    await one_round(keeping, BASE, ADAPTER)
    assert keeping.endpoints.keys() == {"policy-base", "policy-a"}


async def test_a_version_that_leaves_in_mid_start_is_ended_as_well(keeping: Keeping, driver: TellableDriver) -> None:
    driver.gate = asyncio.Event()
    await one_round(keeping, BASE)
    await one_round(keeping)
    assert driver.calls == ["ensure policy-base", "retire policy-base"]


async def test_what_an_earlier_keeper_served_is_taken_over(keeping: Keeping, driver: TellableDriver) -> None:
    driver.alive = {"policy-base"}
    found = {
        name: Endpoint(base_url=f"http://{name}", model=name, driver="told") for name in ("policy-base", "policy-a")
    }
    await keeping.adopt([BASE, ADAPTER], found)
    assert keeping.endpoints.keys() == {"policy-base"}
    await one_round(keeping, BASE, ADAPTER)
    assert "ensure policy-base" not in driver.calls
    assert "ensure policy-a" in driver.calls


async def test_closing_leaves_what_is_served_alone(keeping: Keeping, driver: TellableDriver) -> None:
    await one_round(keeping, BASE)
    await keeping.close()
    assert driver.alive == {"policy-base"}
    assert driver.calls[-1] == "close"
