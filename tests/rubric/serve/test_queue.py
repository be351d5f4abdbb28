"""The queue answers in order, is fair to short texts, refuses past its bound and drops what is late."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import numpy as np
import pytest

from rubric.serve.queue import (
    BACKGROUND_WINDOWS_MAX,
    ComputeFailed,
    DeadlinePassed,
    Job,
    QueueFull,
    Vector,
    WindowQueue,
)
from rubric.serve.texts import Window


class SlowNetwork:
    """Answers a window with its first id, after a while per window; remembers what it was given."""

    def __init__(self, *, seconds_per_window: float = 0.0) -> None:
        self.seconds_per_window = seconds_per_window
        self.rounds: list[list[int]] = []

    def __call__(self, jobs: Sequence[Job]) -> list[Vector]:
        numbers = [job.window.ids[0] for job in jobs if isinstance(job.window, Window)]
        self.rounds.append(numbers)
        time.sleep(self.seconds_per_window * len(jobs))
        if any(number < 0 for number in numbers):
            raise ArithmeticError
        return [np.asarray([number], dtype=np.float32) for number in numbers]


@asynccontextmanager
async def running(
    compute: Callable[[Sequence[Job]], list[Vector]], *, windows_max: int = 1000
) -> AsyncIterator[WindowQueue]:
    queue = WindowQueue(compute, windows_max=windows_max)
    queue.start()
    try:
        yield queue
    finally:
        await queue.stop()


def jobs(*numbers: int, tokens: int = 10) -> list[Job]:
    return [Job("screen", Window((number,) * tokens)) for number in numbers]


async def test_vectors_come_back_in_the_order_of_the_jobs() -> None:
    async with running(SlowNetwork()) as queue:
        vectors = await queue.submit(jobs(*range(40)), deadline_s=5)
    assert [int(vector[0]) for vector in vectors] == list(range(40))


async def test_requests_that_arrive_together_share_a_round() -> None:
    network = SlowNetwork(seconds_per_window=0.01)
    async with running(network) as queue:
        await asyncio.gather(*(queue.submit(jobs(number), deadline_s=5) for number in range(9)))
    assert max(map(len, network.rounds)) >= 8


async def test_a_round_is_bounded_by_windows_and_by_tokens() -> None:
    network = SlowNetwork()
    async with running(network) as queue:
        await queue.submit(jobs(*range(40)), deadline_s=5)
        await queue.submit(jobs(*range(20), tokens=256), deadline_s=5)
    assert max(map(len, network.rounds)) == 16
    assert [len(one) for one in network.rounds[3:]] == [2] * 10


async def test_a_short_text_does_not_wait_behind_a_long_one() -> None:
    network = SlowNetwork(seconds_per_window=0.002)
    async with running(network) as queue:
        long = asyncio.create_task(queue.submit(jobs(*[1] * 300), deadline_s=10))
        await asyncio.sleep(0.01)
        await queue.submit(jobs(2), deadline_s=5)
        assert not long.done()
        assert len(await long) == 300


async def test_past_its_bound_the_queue_refuses_at_once() -> None:
    async with running(SlowNetwork(seconds_per_window=0.05), windows_max=20) as queue:
        waiting = asyncio.create_task(queue.submit(jobs(*range(20)), deadline_s=5))
        await asyncio.sleep(0)
        with pytest.raises(QueueFull, match="at most 20"):
            await queue.submit(jobs(*range(20)), deadline_s=5)
        await waiting


async def test_a_late_request_is_told_so_and_its_windows_are_not_computed() -> None:
    network = SlowNetwork(seconds_per_window=0.1)
    async with running(network) as queue:
        first = asyncio.create_task(queue.submit(jobs(1), deadline_s=5))
        await asyncio.sleep(0.02)
        with pytest.raises(DeadlinePassed):
            await queue.submit(jobs(2), deadline_s=0.02)
        await first
        await queue.submit(jobs(3), deadline_s=5)
    assert network.rounds == [[1], [3]]


async def test_a_failing_round_fails_its_requests_and_no_others() -> None:
    async with running(SlowNetwork()) as queue:
        with pytest.raises(ComputeFailed):
            await queue.submit(jobs(-1), deadline_s=5)
        assert len(await queue.submit(jobs(1), deadline_s=5)) == 1


async def test_background_is_computed_only_while_no_visitor_waits() -> None:
    network = SlowNetwork(seconds_per_window=0.02)
    async with running(network) as queue:
        judging = asyncio.create_task(queue.submit(jobs(*[1] * 8, tokens=192), deadline_s=20, is_background=True))
        await asyncio.sleep(0.01)
        screens = [asyncio.create_task(queue.submit(jobs(2, 2, 2), deadline_s=5)) for _ in range(3)]
        await asyncio.gather(*screens)
        assert not judging.done()
        assert len(await judging) == 8
    assert network.rounds[0] == [1]
    first, last = (find(2, rounds=network.rounds) for find in (_first_round, _last_round))
    assert [round_ for round_ in network.rounds[first : last + 1] if 1 in round_] == []
    assert first <= 2  # the reading that ran already, and at most one more, came before


def _first_round(number: int, *, rounds: list[list[int]]) -> int:
    return next(at for at, numbers in enumerate(rounds) if number in numbers)


def _last_round(number: int, *, rounds: list[list[int]]) -> int:
    return len(rounds) - 1 - next(at for at, numbers in enumerate(reversed(rounds)) if number in numbers)


async def test_a_round_of_background_is_one_reading_or_a_few_criteria() -> None:
    network = SlowNetwork()
    async with running(network) as queue:
        await queue.submit(jobs(*[1] * 4, tokens=192), deadline_s=5, is_background=True)
        await queue.submit(jobs(*[2] * 8, tokens=64), deadline_s=5, is_background=True)
    assert [len(one) for one in network.rounds] == [1, 1, 1, 1, 3, 3, 2]


async def test_background_never_fills_the_queue_before_the_screen() -> None:
    async with running(SlowNetwork(seconds_per_window=0.001), windows_max=4) as queue:
        full = [1] * BACKGROUND_WINDOWS_MAX
        judging = asyncio.create_task(queue.submit(jobs(*full), deadline_s=20, is_background=True))
        await asyncio.sleep(0)
        with pytest.raises(QueueFull, match=f"at most {BACKGROUND_WINDOWS_MAX}"):
            await queue.submit(jobs(1, 1), deadline_s=5, is_background=True)
        assert len(await queue.submit(jobs(2, 2, 2, 2), deadline_s=5)) == 4
        await judging


async def test_stopping_fails_whoever_still_waits() -> None:
    queue = WindowQueue(SlowNetwork(seconds_per_window=0.05), windows_max=100)
    queue.start()
    waiting = asyncio.create_task(queue.submit(jobs(*range(60)), deadline_s=30))
    await asyncio.sleep(0.01)
    await queue.stop()
    with pytest.raises(ComputeFailed):
        await waiting
