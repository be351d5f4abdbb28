"""Who may use the engine: never more than its slots, first come first served, and grading behind every visitor."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import pytest
from pytest_django import Settings

from chat import admission
from chat.admission import (
    LocalSlots,
    Overloaded,
    drop_grading_lock,
    engine_place,
    mark_first_token,
    may_grade,
    renew,
    take_grading_lock,
)
from chat.store import close_redis_here, redis_sync
from tests.fakes.engine import closed_port

pytestmark = pytest.mark.redis


@pytest.fixture(autouse=True)
async def quick(clean_redis: None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(admission, "POLL_S", 0.01)
    monkeypatch.setattr(admission, "_local", LocalSlots())
    yield
    await close_redis_here()


@pytest.fixture
def redis_away(settings: Settings) -> Iterator[None]:
    redis_sync.cache_clear()
    settings.REDIS_URL = f"redis://127.0.0.1:{closed_port()}/0"
    yield
    redis_sync.cache_clear()


@asynccontextmanager
async def redis_gone(settings: Settings) -> AsyncIterator[None]:
    """Away for the length of the block, and with all that it knew when it is back."""
    url = settings.REDIS_URL
    await close_redis_here()
    settings.REDIS_URL = f"redis://127.0.0.1:{closed_port()}/0"
    yield
    await close_redis_here()
    settings.REDIS_URL = url


@dataclass
class Desk:
    """Counts who holds a slot; shared by all loops of a test."""

    now: int = 0
    most: int = 0
    order: list[str] = field(default_factory=list)
    shown: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @asynccontextmanager
    async def place(self, member: str, *, slots: int) -> AsyncIterator[None]:
        """`engine_place`, counted."""
        self.shown[member] = []
        async with engine_place(
            member, slots=slots, on_queued=lambda place, wait_s: self.shown[member].append((place, wait_s))
        ):
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)
                self.order.append(member)
            try:
                yield
            finally:
                with self.lock:
                    self.now -= 1

    async def use(self, member: str, *, slots: int, seconds: float = 0.02) -> None:
        async with self.place(member, slots=slots):
            await asyncio.sleep(seconds)


class Holder:
    """Holds a slot until it is told to let go."""

    def __init__(self, desk: Desk, member: str, *, slots: int = 1) -> None:
        self._desk, self.member, self._slots = desk, member, slots
        self._let_go = asyncio.Event()
        self._has_it = asyncio.Event()

    async def __aenter__(self) -> "Holder":
        self.task = asyncio.create_task(self._hold())
        await asyncio.wait_for(self._has_it.wait(), 3)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._let_go.set()
        await asyncio.gather(self.task, return_exceptions=True)

    async def let_go(self) -> None:
        self._let_go.set()
        await self.task

    async def _hold(self) -> None:
        async with self._desk.place(self.member, slots=self._slots):
            self._has_it.set()
            await self._let_go.wait()


async def until(holds: Callable[[], bool], timeout_s: float = 3.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not holds():
            await asyncio.sleep(0.005)


async def test_slots_are_never_exceeded_and_everybody_gets_one(settings: Settings) -> None:
    settings.RAPPORT_ENGINE_QUEUE = 30
    desk = Desk()
    await asyncio.gather(*(desk.use(f"m{number}", slots=3) for number in range(25)))
    assert len(desk.order) == 25
    assert desk.most == 3


def test_slots_hold_across_processes(settings: Settings) -> None:
    settings.RAPPORT_ENGINE_QUEUE = 40
    desk, errors = Desk(), []

    async def process(name: str) -> None:
        await asyncio.gather(*(desk.use(f"{name}{number}", slots=2) for number in range(8)))
        await close_redis_here()

    def run(name: str) -> None:
        try:
            asyncio.run(process(name))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(name,)) for name in "abc"]  # a loop each, as web processes have
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert errors == []
    assert len(desk.order) == 24
    assert desk.most == 2


async def test_queue_is_first_come_first_served() -> None:
    desk = Desk()
    async with Holder(desk, "first") as holder:
        waiting = []
        for number in range(6):
            waiting.append(asyncio.create_task(desk.use(f"m{number}", slots=1, seconds=0)))
            await until(lambda member=f"m{number}": bool(desk.shown.get(member)))  # type: ignore[misc]
        await holder.let_go()
        await asyncio.gather(*waiting)
    assert desk.order == ["first", *(f"m{number}" for number in range(6))]


async def test_place_and_expected_wait_are_told_and_told_again_when_they_change() -> None:
    desk = Desk()
    redis_sync().set(admission._PACE, "4.0")
    async with Holder(desk, "running") as running, asyncio.TaskGroup() as group:
        one = group.create_task(desk.use("one", slots=1, seconds=0.05))
        await until(lambda: bool(desk.shown.get("one")))
        two = group.create_task(desk.use("two", slots=1))
        await until(lambda: bool(desk.shown.get("two")))
        await asyncio.sleep(0.05)  # several polls that change nothing
        await running.let_go()
        await one
        await two
    assert desk.shown["one"] == [(1, 4.0)]
    assert [place for place, _ in desk.shown["two"]] == [2, 1]
    assert desk.shown["two"][0][1] == 8.0


async def test_expected_wait_learns_from_how_long_replies_take() -> None:
    desk = Desk()
    async with Holder(desk, "running"):
        waiting = asyncio.create_task(desk.use("one", slots=1))
        await until(lambda: bool(desk.shown.get("one")))
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert desk.shown["one"] == [(1, admission.EXPECTED_REPLY_S)]
    redis_sync().set(admission._PACE, "10.0")
    await desk.use("quick", slots=1, seconds=0.1)
    assert 8.0 < float(redis_sync().get(admission._PACE) or 0) < 9.0


async def test_full_queue_refuses_and_leaves_no_trace(settings: Settings) -> None:
    settings.RAPPORT_ENGINE_QUEUE = 2
    desk = Desk()
    async with Holder(desk, "running"):
        waiting = [asyncio.create_task(desk.use(f"m{number}", slots=1)) for number in range(2)]
        await until(lambda: len(desk.shown) == 3 and all(desk.shown[f"m{n}"] for n in range(2)))
        with pytest.raises(Overloaded):
            await desk.use("late", slots=1)
        assert redis_sync().zscore(admission._QUEUE, "late") is None
        assert redis_sync().zscore(admission._RUNNING, "late") is None
        assert redis_sync().zcard(admission._QUEUE) == 2
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_free_slot_is_not_given_past_somebody_who_waits() -> None:
    desk = Desk()
    now = time.time()
    redis_sync().zadd(admission._QUEUE, {"earlier": now - 1})
    redis_sync().zadd(admission._SEEN, {"earlier": now + 5})  # another process's reply, about to ask again
    task = asyncio.create_task(desk.use("later", slots=1))
    await until(lambda: bool(desk.shown.get("later")))
    await asyncio.sleep(0.05)
    assert desk.shown["later"][0][0] == 2
    assert desk.order == []
    redis_sync().zrem(admission._QUEUE, "earlier")
    await task
    assert desk.order == ["later"]


async def test_waiting_reply_that_is_stopped_gives_its_place_back() -> None:
    desk = Desk()
    async with Holder(desk, "running") as holder:
        waiting = asyncio.create_task(desk.use("stopped", slots=1))
        await until(lambda: bool(desk.shown.get("stopped")))
        after = asyncio.create_task(desk.use("after", slots=1))
        await until(lambda: bool(desk.shown.get("after")))
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await until(lambda: desk.shown["after"][-1][0] == 1)
        await holder.let_go()
        await after
    assert "stopped" not in desk.order


async def test_stop_is_heeded_whenever_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "POLL_S", 0)  # nearly always in the middle of a question to Redis
    desk = Desk()
    async with Holder(desk, "running"):
        for moment in range(60):
            waiting = asyncio.create_task(desk.use(f"m{moment}", slots=1))
            await until(lambda member=f"m{moment}": bool(desk.shown.get(member)))  # type: ignore[misc]
            for _ in range(moment):
                await asyncio.sleep(0)
            waiting.cancel()
            ended, _ = await asyncio.wait([waiting], timeout=1)
            assert ended
            assert waiting.cancelled()
        assert redis_sync().zcard(admission._QUEUE) == 0
    assert desk.order == ["running"]


@pytest.mark.parametrize("moment", range(12))
async def test_stop_is_heeded_as_the_first_token_is_marked(moment: int) -> None:
    went_on = False

    async def mark() -> None:
        nonlocal went_on
        await mark_first_token("reply")
        went_on = True

    task = asyncio.create_task(mark())
    for _ in range(moment):
        await asyncio.sleep(0)
    if not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=1)
        assert not went_on


async def test_reply_that_fails_frees_its_slot() -> None:
    desk = Desk()

    async def fail() -> None:
        async with desk.place("broken", slots=1):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    await asyncio.wait_for(desk.use("next", slots=1), 2)


async def test_lease_of_a_dead_process_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "LEASE_S", 0.4)
    desk = Desk()
    assert await admission._admit("dead", slots=1) == 0  # its process is killed: nobody renews, nobody leaves
    assert await admission._admit("dead in the queue", slots=1) == 1
    started_s = time.monotonic()
    await asyncio.wait_for(desk.use("alive", slots=1), 3)
    assert 0.2 < time.monotonic() - started_s < 2
    assert redis_sync().zscore(admission._QUEUE, "dead in the queue") is None


async def test_renewed_lease_holds_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "LEASE_S", 0.3)
    assert await admission._admit("long", slots=1) == 0
    for _ in range(8):
        await asyncio.sleep(0.08)
        await renew(["long"])
        assert await admission._admit("other", slots=1) == 1


async def test_renewing_gives_nobody_a_slot_that_they_do_not_hold() -> None:
    await renew(["ghost"])
    await renew([])
    assert redis_sync().zcard(admission._RUNNING) == 0


@pytest.mark.usefixtures("redis_away")
async def test_slots_inside_the_process_stand_in_while_redis_is_away(settings: Settings) -> None:
    settings.RAPPORT_ENGINE_QUEUE = 30
    desk = Desk()
    started_s = time.monotonic()
    await asyncio.gather(*(desk.use(f"m{number}", slots=2) for number in range(10)))
    assert desk.most == 2
    assert len(desk.order) == 10
    assert time.monotonic() - started_s < 3


async def test_slots_held_when_redis_goes_away_count_while_it_is_away(settings: Settings) -> None:
    desk = Desk()
    async with Holder(desk, "from before", slots=2), redis_gone(settings):
        async with Holder(desk, "meanwhile", slots=2):
            waiting = asyncio.create_task(desk.use("third", slots=2))
            await until(lambda: bool(desk.shown.get("third")))
            await asyncio.sleep(0.1)
            assert desk.order == ["from before", "meanwhile"]
        await asyncio.wait_for(waiting, 2)
    assert desk.most == 2


async def test_slot_given_while_redis_was_away_has_its_lease_after_the_next_heartbeat(settings: Settings) -> None:
    desk = Desk()
    async with AsyncExitStack() as stack:
        async with redis_gone(settings):
            await stack.enter_async_context(Holder(desk, "given meanwhile"))
        await renew(["given meanwhile"])
        assert await admission._admit("afterwards", slots=1) == 1
    assert redis_sync().zcard(admission._RUNNING) == 0


def test_local_slots_do_as_the_script_does() -> None:
    local = LocalSlots()
    assert [local.admit(name, slots=2, queue=2) for name in "abcde"] == [0, 0, 1, 2, -1]
    assert [local.admit(name, slots=2, queue=2) for name in "cd"] == [1, 2]
    local.leave("a")
    assert local.admit("d", slots=2, queue=2) == 2
    assert local.admit("f", slots=2, queue=2) == -1
    assert local.admit("c", slots=2, queue=2) == 0
    local.leave("d")
    assert local.admit("f", slots=2, queue=2) == 1


async def test_no_grading_while_a_visitor_waits_for_a_first_token(settings: Settings) -> None:
    settings.RAPPORT_FIRST_TOKEN_S = 5.0
    desk = Desk()
    assert may_grade()
    async with Holder(desk, "reply"):
        assert not may_grade()
        await mark_first_token("reply")
        assert may_grade()
    assert may_grade()


async def test_no_grading_while_a_visitor_waits_for_a_slot() -> None:
    desk = Desk()
    async with Holder(desk, "running"):
        await mark_first_token("running")
        waiting = asyncio.create_task(desk.use("waits", slots=1))
        await until(lambda: bool(desk.shown.get("waits")))
        assert not may_grade()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert may_grade()


async def test_visitor_of_a_dead_process_does_not_hold_grading_up_for_ever(settings: Settings) -> None:
    settings.RAPPORT_FIRST_TOKEN_S = 0.2
    await admission._mark_waiting("dead")
    assert not may_grade()
    await asyncio.sleep(0.25)
    assert may_grade()


def test_one_grading_at_a_time_and_only_its_holder_gives_the_lock_back() -> None:
    assert take_grading_lock("one")
    assert not take_grading_lock("two")
    drop_grading_lock("two")
    assert not take_grading_lock("two")
    drop_grading_lock("one")
    assert take_grading_lock("two")
    assert 0 < redis_sync().ttl(admission._GRADING) <= admission.GRADING_LOCK_S


async def test_grading_lock_is_held_as_long_as_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "GRADING_LOCK_S", 1)
    assert take_grading_lock("one")
    keeping = asyncio.create_task(admission.keep_grading_lock("one"))
    await asyncio.sleep(1.5)
    assert not take_grading_lock("two")
    redis_sync().delete(admission._GRADING)  # a Redis that was restarted
    await asyncio.sleep(0.5)
    assert not take_grading_lock("two")
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)


async def test_lock_of_a_killed_worker_runs_out_and_its_late_keeper_takes_nothing_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "GRADING_LOCK_S", 1)
    assert take_grading_lock("one")
    await asyncio.sleep(1.1)
    assert take_grading_lock("two")
    keeping = asyncio.create_task(admission.keep_grading_lock("one"))
    await asyncio.sleep(0.5)
    assert redis_sync().get(admission._GRADING) == "two"
    assert redis_sync().ttl(admission._GRADING) <= 1
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)


@pytest.mark.usefixtures("redis_away")
def test_grading_waits_while_redis_is_away() -> None:
    assert not may_grade()
    assert not take_grading_lock("one")
    drop_grading_lock("one")
