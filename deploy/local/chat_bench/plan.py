"""Which measurements there are, what each needs, and which goals it answers; the order is the order of the run.

Measurements that need the same processes stand together and share them. `run` walks the plan.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from deploy.local.chat_bench import real_engine
from deploy.local.chat_bench.arena import Arena, open_arena
from training.bench import capacity, crowds, cuts, inbound, turns
from training.bench.chat_goals import Line
from training.bench.paced_text import reply_text

NO_MESSAGE = str(UUID(int=7))  # the verb that blocks never looks for it
IDLE = 10_000
Measuring = Callable[[Any], Awaitable[list[Line]]]
Opening = Callable[[], contextlib.AbstractAsyncContextManager[Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """One measurement: `goals` are those whose lines it gives."""

    name: str
    goals: tuple[str, ...]
    measure: Measuring


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Measurements that share what runs."""

    name: str
    open: Opening
    measurements: tuple[Measurement, ...]


async def _inbound(arena: Arena) -> list[Line]:
    twin = _twin(arena)
    return await inbound.measure_inbound(arena.web, twin, seats=arena.seats(40), use_up_limit=arena.use_up_limit)


async def _blocked(arena: Arena) -> list[Line]:
    return await inbound.measure_blocked(arena.web, seats=arena.seats(inbound.OTHERS + 2), message_id=NO_MESSAGE)


async def _burst(arena: Arena) -> list[Line]:
    return await turns.measure_burst(arena.web, arena.engine, seats=arena.seats(turns.TOGETHER))


async def _relay(arena: Arena) -> list[Line]:
    return await turns.measure_relay(arena.web, arena.engine, seats=arena.seats(turns.TOGETHER))


async def _send_path(arena: Arena) -> list[Line]:
    return await capacity.measure_send_path(arena.web, _twin(arena), seats=arena.seats(capacity.SESSIONS))


async def _whole_turn(arena: Arena) -> list[Line]:
    return await capacity.measure_whole_turn(arena.web, arena.engine, seats=arena.seats(max(capacity.STEPS)))


async def _persistence(arena: Arena) -> list[Line]:
    return await turns.measure_persistence(arena.web, arena.engine, seats=arena.seats(16))


async def _slow(arena: Arena) -> list[Line]:
    return await crowds.measure_slow_readers(arena.web, arena.engine, fresh_seats=arena.seats)


async def _one_turn(arena: Arena) -> list[Line]:
    return await turns.measure_one_turn(arena.web, arena.engine, seats=arena.seats(30))


async def _hold_back(arena: Arena) -> list[Line]:
    return await turns.measure_hold_back(arena.web, arena.engine, seats=arena.seats(4))


async def _screened_burst(arena: Arena) -> list[Line]:
    return await turns.measure_screened_burst(arena.web, arena.engine, seats=arena.seats(turns.TOGETHER))


async def _resume(arena: Arena) -> list[Line]:
    seats = arena.seats(3 * cuts.READERS)
    return await cuts.measure_resume(arena.web, arena.engine, seats=seats, reply_of=reply_text)


async def _outage(arena: Arena) -> list[Line]:
    return await cuts.measure_outage(
        arena.webs[0],
        arena.webs[1],
        arena.engine,
        seats=arena.seats(90),
        stop_redis=arena.stop_redis,
        start_redis=arena.start_redis,
        reply_of=reply_text,
    )


async def _waves(arena: Arena) -> list[Line]:
    return await crowds.measure_waves(arena.web, seats=arena.seats(crowds.WAVE))


async def _idle(arena: Arena) -> list[Line]:
    return await crowds.measure_idle(arena.web, seats=arena.seats(IDLE))


async def _publish_llamacpp(stage: real_engine.Stage) -> list[Line]:
    return await real_engine.measure_publish(stage, "llamacpp")


async def _publish_vllm(stage: real_engine.Stage) -> list[Line]:
    return await real_engine.measure_publish(stage, "vllm")


def _twin(arena: Arena) -> Any:
    if arena.twin is None:
        raise RuntimeError("This part opens no twin.")
    return arena.twin


@contextlib.asynccontextmanager
async def _beside_twin() -> AsyncIterator[Arena]:
    async with open_arena(with_twin=True) as arena:
        yield arena


@contextlib.asynccontextmanager
async def _with_encoder() -> AsyncIterator[Arena]:
    async with open_arena(with_encoder=True) as arena:
        yield arena


@contextlib.asynccontextmanager
async def _two_webs() -> AsyncIterator[Arena]:
    async with open_arena(web_processes=2) as arena:
        yield arena


PLAN: Sequence[Part] = (
    Part(
        name="web process, paced engine, screen that passes at once, raw twin",
        open=_beside_twin,
        measurements=(
            Measurement(name="inbound", goals=("G1",), measure=_inbound),
            Measurement(name="blocked", goals=("G2",), measure=_blocked),
            Measurement(name="burst", goals=("G4",), measure=_burst),
            Measurement(name="relay", goals=("G5", "G6"), measure=_relay),
            Measurement(name="send path", goals=("G7",), measure=_send_path),
            Measurement(name="whole turn", goals=("G7",), measure=_whole_turn),
            Measurement(name="persistence", goals=("G8",), measure=_persistence),
            Measurement(name="slow readers", goals=("slow",), measure=_slow),
        ),
    ),
    Part(
        name="the same with the real encoder",
        open=_with_encoder,
        measurements=(
            Measurement(name="one turn", goals=("G3",), measure=_one_turn),
            Measurement(name="hold-back", goals=("G3",), measure=_hold_back),
            Measurement(name="screened burst", goals=("G4",), measure=_screened_burst),
        ),
    ),
    Part(
        name="two web processes",
        open=_two_webs,
        measurements=(
            Measurement(name="resume", goals=("G10",), measure=_resume),
            Measurement(name="outage", goals=("G11",), measure=_outage),
        ),
    ),
    Part(
        name="a fresh web process",
        open=open_arena,
        measurements=(
            Measurement(name="waves", goals=("leak",), measure=_waves),
            Measurement(name="idle", goals=("G9", "idle"), measure=_idle),
        ),
    ),
    Part(
        name="the whole product with llamacpp",
        open=lambda: real_engine.open_stage("llamacpp"),
        measurements=(
            Measurement(name="whole engine", goals=("G15",), measure=real_engine.measure_whole_engine),
            Measurement(name="publish llamacpp", goals=("G14",), measure=_publish_llamacpp),
        ),
    ),
    Part(
        name="the whole product with vllm",
        open=lambda: real_engine.open_stage("vllm"),
        measurements=(Measurement(name="publish vllm", goals=("G14",), measure=_publish_vllm),),
    ),
)
