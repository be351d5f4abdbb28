"""The bounded queue before the networks: visitors first, fair between requests, with deadlines, one thread.

`app.py` submits a request's windows and awaits their results. Each round takes one window of every waiting request
in turn, up to 16 windows or 512 tokens, and computes them in one hop to the worker thread: a long text never stands
before a short one. Windows run one by one inside a round: on one core a padded batch saves under 15 % (measured, see
docs/experiments.md) and would let a text's last bits depend on its company. What nobody waits for at a page (judging)
is *background*: it gets a round only while no other window waits, a small one, so that a text to be screened waits for
one reading at most; and it has a bound of its own, so that it never fills the queue before the screen.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rubric.errors import RubricError
from rubric.serve.judging import CriterionText, JudgedReply
from rubric.serve.texts import Window

Vector = NDArray[np.float32]
Compute = Callable[[Sequence["Job"]], list[Vector]]

ROUND_WINDOWS: Final = 16
ROUND_TOKENS: Final = 512
BACKGROUND_ROUND_TOKENS: Final = 192  # one reading, or a few criteria
BACKGROUND_WINDOWS_MAX: Final = 256  # may wait besides: some dozen replies with their evidence

log = logging.getLogger(__name__)


class QueueFull(RubricError):
    """More windows would wait than the process may owe."""

    def __init__(self, *, waiting: int, limit: int) -> None:
        super().__init__(f"{waiting} windows wait already; at most {limit} may.")


class DeadlinePassed(RubricError):
    """The request's deadline came before its last window was computed."""


class ComputeFailed(RubricError):
    """The network raised; the log has the kind of error."""


@dataclass(frozen=True, slots=True)
class Job:
    """One window and the network that shall read it."""

    network: str  # "screen", "embed" or "judge"
    window: Window | JudgedReply | CriterionText


@dataclass(eq=False, slots=True)
class _Request:
    jobs: Sequence[Job]
    deadline: float  # time.monotonic()
    done: asyncio.Future[list[Vector]]
    taken: int = 0
    results: list[Vector] = field(default_factory=list)


class WindowQueue:
    """Jobs in, vectors out; `start` and `stop` belong to the event loop that submits."""

    def __init__(self, compute: Compute, *, windows_max: int) -> None:
        self._compute = compute
        self._windows_max = windows_max
        self._requests: deque[_Request] = deque()
        self._background: deque[_Request] = deque()
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="encoder")
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False

    @property
    def waiting_windows(self) -> int:
        """Windows that wait for a round."""
        return _waiting(self._requests) + _waiting(self._background)

    def start(self) -> None:
        """Begin to compute."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End after the round in progress; whoever still waits gets ComputeFailed."""
        self._is_stopping = True
        self._arrived.set()
        if self._task is not None:
            await self._task
        for request in (*self._requests, *self._background):
            _fail(request, ComputeFailed("The process is stopping."))
        self._requests.clear()
        self._background.clear()
        self._thread.shutdown(wait=True)

    async def submit(self, jobs: Sequence[Job], *, deadline_s: float, is_background: bool = False) -> list[Vector]:
        """One vector per job, in order. Raises QueueFull at once, DeadlinePassed after `deadline_s`, ComputeFailed."""
        requests, limit = (
            (self._background, BACKGROUND_WINDOWS_MAX) if is_background else (self._requests, self._windows_max)
        )
        waiting = _waiting(requests)
        if waiting + len(jobs) > limit:
            raise QueueFull(waiting=waiting, limit=limit)
        done: asyncio.Future[list[Vector]] = asyncio.get_running_loop().create_future()
        requests.append(_Request(jobs, deadline=time.monotonic() + deadline_s, done=done))
        self._arrived.set()
        try:
            return await asyncio.wait_for(done, deadline_s)
        except TimeoutError:
            raise DeadlinePassed(f"{len(jobs)} windows were not computed within {deadline_s:g} s.") from None

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._is_stopping:
            await self._arrived.wait()
            taken = _take(self._requests, tokens_max=ROUND_TOKENS)
            taken = taken or _take(self._background, tokens_max=BACKGROUND_ROUND_TOKENS)
            if not taken:
                self._arrived.clear()
                continue
            try:
                vectors = await loop.run_in_executor(self._thread, self._compute, [job for _, job in taken])
            except Exception as error:  # one bad input must not end the process
                log.error("A round of %d windows failed: %s", len(taken), type(error).__name__)
                for request, _ in taken:
                    _fail(request, ComputeFailed(type(error).__name__))
                continue
            for (request, _), vector in zip(taken, vectors, strict=True):
                _deliver(request, vector)


def _waiting(requests: Iterable[_Request]) -> int:
    return sum(len(request.jobs) - request.taken for request in requests)


def _take(requests: deque[_Request], *, tokens_max: int) -> list[tuple[_Request, Job]]:
    """The next round: one window of each request in turn; requests that nobody awaits any more are dropped.

    It ends with the window that reaches `tokens_max`, so that a round always has one.
    """
    taken: list[tuple[_Request, Job]] = []
    tokens = 0
    while requests and len(taken) < ROUND_WINDOWS and tokens < tokens_max:
        request = requests.popleft()
        if request.done.done() or time.monotonic() >= request.deadline:
            continue
        job = request.jobs[request.taken]
        request.taken += 1
        tokens += job.window.tokens
        taken.append((request, job))
        if request.taken < len(request.jobs):
            requests.append(request)
    return taken


def _deliver(request: _Request, vector: Vector) -> None:
    request.results.append(vector)
    if len(request.results) == len(request.jobs) and not request.done.done():
        request.done.set_result(request.results)


def _fail(request: _Request, error: RubricError) -> None:
    if not request.done.done():
        request.done.set_exception(error)
