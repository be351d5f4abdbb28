"""G3 to G6 and G8: what a turn costs beyond the bare engine, counted to the hand-over to the output screen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from training.bench.bare_engine import BareStream, run_streams
from training.bench.chat_goals import AIMS, Line
from training.bench.figures import Figure, of_rounds, percentile, rate_between, ratios
from training.bench.paced_text import TOKEN_CHARS
from training.bench.target import PacedAddress, Target
from training.bench.visitor import Heard, Seat, Visitor

TOGETHER = 60
PER_S = 50.0
SCREEN_DEADLINE_S = 1.5  # the product's own; the bench waits longer
TEXT = "What is good to plant in a small garden?"  # nothing that the real screen would show a card for


async def open_all(target: Target, seats: Sequence[Seat]) -> list[Visitor]:
    """One page for each seat."""
    visitors = [Visitor(seat, target.door) for seat in seats]
    await asyncio.gather(*(visitor.open() for visitor in visitors))
    return visitors


class RepliesFailed(RuntimeError):
    """What was measured is no reply: how they ended, and how many of them."""

    def __init__(self, statuses: Sequence[str]) -> None:
        super().__init__(f"{len(statuses)} replies did not end well: {', '.join(sorted(set(statuses)))}")


async def talk_together(visitors: Sequence[Visitor], *, spread_s: float = 0.0) -> None:
    """All of them send, over `spread_s`, and read to the end. Raises RepliesFailed."""

    async def one(number: int, visitor: Visitor) -> None:
        await asyncio.sleep(spread_s * number / len(visitors))
        await visitor.say(TEXT)

    await asyncio.gather(*(one(number, visitor) for number, visitor in enumerate(visitors)))
    failed = [visitor.heard.status for visitor in visitors if visitor.heard.status != "complete"]
    if failed:
        raise RepliesFailed(failed)


def first_token_ms(visitors: Sequence[Visitor], handed: Mapping[str, list[list[float]]]) -> list[float]:
    """From the send to the hand-over of the newest reply's first token; what never came is left out."""
    found = []
    for visitor in visitors:
        replies = handed.get(visitor.seat.conversation, [])
        if replies and replies[-1]:
            found.append((replies[-1][0] - visitor.heard.sent_s) * 1000)
    return found


def bare_first_token_ms(streams: Sequence[BareStream]) -> list[float]:
    """The same without a product."""
    return [(stream.stamps_s[0] - stream.sent_s) * 1000 for stream in streams]


def hold_back_ms(heard: Heard, stamps_s: Sequence[float]) -> list[float]:
    """For each delta: from the hand-over of its first token to its arrival at the page."""
    waits = []
    for moment_s, offset, _ in heard.deltas:
        index = (offset + 1) // TOKEN_CHARS if offset else 0
        if index < len(stamps_s):
            waits.append((moment_s - stamps_s[index]) * 1000)
    return waits


@dataclass(frozen=True, kw_only=True, slots=True)
class _Added:
    p50: float
    p99: float
    late_percent: float = 0.0  # of the messages: their screen took longer than the product waits


def _added(ours: Sequence[float], bare: Sequence[float], *, screens_s: Sequence[float] = ()) -> _Added:
    """Percentile by percentile: a machine that is busy slows both."""
    late = sum(seconds > SCREEN_DEADLINE_S for seconds in screens_s)
    return _Added(
        p50=percentile(ours, 0.5) - percentile(bare, 0.5),
        p99=percentile(ours, 0.99) - percentile(bare, 0.99),
        late_percent=late / max(len(screens_s), 1) * 100,
    )


async def measure_one_turn(
    product: Target, engine: PacedAddress, *, seats: Sequence[Seat], rounds: int = 3, turns: int = 100
) -> list[Line]:
    """G3: one turn at a time, alternating with the bare engine; at most ten turns in a conversation."""
    await engine.set_pace(tokens=3, per_s=200)
    visitors = await open_all(product, seats)
    added, screens = [], []
    for number in range(rounds):
        await product.reset()
        ours, bare = [], []
        for turn in range(turns):
            visitor = visitors[(number * turns + turn) // 10 % len(visitors)]
            bare += bare_first_token_ms(await run_streams(engine.address, count=1))
            await visitor.say(TEXT)
            ours += first_token_ms([visitor], await product.handovers())
        screens.append(percentile((await product.ask("/bench/handovers"))["screenings_s"], 0.5) * 1000)
        added.append(_added(ours, bare))
    for visitor in visitors:
        visitor.close()
    return [
        Line(aim=AIMS["G3.p50"], figure=of_rounds([one.p50 for one in added]), note=f"{turns} turns a round"),
        Line(aim=AIMS["G3.p99"], figure=of_rounds([one.p99 for one in added]), note=f"{turns} turns a round"),
        Line(aim=AIMS["G3.input_screen"], figure=of_rounds(screens)),
    ]


async def measure_hold_back(product: Target, engine: PacedAddress, *, seats: Sequence[Seat]) -> list[Line]:
    """With the real encoder: four readers at 50 tokens/s, 200 tokens each."""
    await engine.set_pace(tokens=200, per_s=PER_S)
    await product.reset()
    visitors = await open_all(product, seats[:4])
    await talk_together(visitors, spread_s=1.0)
    handed = await product.handovers()
    waits = [ms for one in visitors for ms in hold_back_ms(one.heard, handed[one.seat.conversation][-1])]
    for visitor in visitors:
        visitor.close()
    return [
        Line(aim=AIMS["G3.hold_back"], figure=_of(waits, 0.5)),
        Line(aim=AIMS["G3.hold_back_p95"], figure=_of(waits, 0.95)),
    ]


def _of(values: Sequence[float], share: float) -> Figure:
    value = percentile(values, share)
    return Figure(value=value, low=min(values), high=max(values), n=len(values))


async def _burst(product: Target, engine: PacedAddress, seats: Sequence[Seat], *, rounds: int) -> list[_Added]:
    await engine.set_pace(tokens=10, per_s=PER_S)
    added = []
    for _ in range(rounds):
        bare = bare_first_token_ms(await run_streams(engine.address, count=len(seats)))
        await product.reset()
        visitors = await open_all(product, seats)
        await talk_together(visitors)
        found = await product.ask("/bench/handovers")
        added.append(_added(first_token_ms(visitors, found["handovers"]), bare, screens_s=found["screenings_s"]))
        for visitor in visitors:
            visitor.close()
    return added


async def measure_burst(product: Target, engine: PacedAddress, *, seats: Sequence[Seat], rounds: int = 3) -> list[Line]:
    """G4: 60 turns at the same moment."""
    added = await _burst(product, engine, seats[:TOGETHER], rounds=rounds)
    return [
        Line(aim=AIMS["G4.p50"], figure=of_rounds([one.p50 for one in added])),
        Line(aim=AIMS["G4.p99"], figure=of_rounds([one.p99 for one in added])),
    ]


async def measure_screened_burst(product: Target, engine: PacedAddress, *, seats: Sequence[Seat]) -> list[Line]:
    """G4 with the real encoder."""
    added = await _burst(product, engine, seats[:TOGETHER], rounds=3)
    return [
        Line(aim=AIMS["G4.screened_p50"], figure=of_rounds([one.p50 for one in added])),
        Line(aim=AIMS["G4.screened_late"], figure=of_rounds([one.late_percent for one in added])),
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """What was seen of a steady stretch: tokens a second, and web CPU per token."""

    per_s: float
    cpu_us: float = 0.0


async def _bare_window(engine: PacedAddress, *, begin_s: float, seconds: float) -> Window:
    moment_s = time.monotonic()
    streams = await run_streams(engine.address, count=TOGETHER, spread_s=1.0)
    begin = moment_s + begin_s
    return Window(per_s=rate_between([one.stamps_s for one in streams], begin_s=begin, end_s=begin + seconds))


async def _product_window(product: Target, seats: Sequence[Seat], *, begin_s: float, seconds: float) -> Window:
    await product.reset()
    visitors = await open_all(product, seats)
    talking = asyncio.ensure_future(talk_together(visitors, spread_s=1.0))
    await asyncio.sleep(begin_s)
    begin, cpu_s = time.monotonic(), product.cpu_s()
    await asyncio.sleep(seconds)
    end, spent_s = time.monotonic(), product.cpu_s() - cpu_s
    await talking
    handed = await product.handovers()
    stamps = [replies[-1] for replies in handed.values()]
    for visitor in visitors:
        visitor.close()
    per_s = rate_between(stamps, begin_s=begin, end_s=end)
    return Window(per_s=per_s, cpu_us=spent_s / (per_s * (end - begin)) * 1e6)


async def measure_relay(product: Target, engine: PacedAddress, *, seats: Sequence[Seat], rounds: int = 3) -> list[Line]:
    """G5 and G6: 60 streams at 50/s, a steady stretch of five seconds."""
    await engine.set_pace(tokens=420, per_s=PER_S)
    ours, bare = [], []
    for _ in range(rounds):
        bare.append(await _bare_window(engine, begin_s=2.0, seconds=5.0))
        ours.append(await _product_window(product, seats[:TOGETHER], begin_s=2.0, seconds=5.0))
    rate = ratios([one.per_s * 100 for one in ours], [one.per_s for one in bare])
    note = f"bare {bare[0].per_s:,.0f} tokens/s"
    return [
        Line(aim=AIMS["G5.rate"], figure=rate, note=note),
        Line(aim=AIMS["G6.cpu_us"], figure=of_rounds([one.cpu_us for one in ours])),
    ]


async def _writes(product: Target, engine: PacedAddress, seats: Sequence[Seat], *, tokens: int) -> dict[str, float]:
    """Per turn, over the seats' turns one after another, faster than a heartbeat."""
    await engine.set_pace(tokens=tokens, per_s=2000)
    visitors = await open_all(product, seats)
    await visitors[0].say(TEXT)
    await product.reset()
    for visitor in visitors[1:]:
        await visitor.say(TEXT)
    await asyncio.sleep(0.05)
    found = await product.ask("/bench/database")
    for visitor in visitors:
        visitor.close()
    turns = len(visitors) - 1
    cpu = found["cpu_s"]
    return {
        "transactions": found["transactions"] / turns,
        "writes": found["writes"] / turns,
        "cpu_ms": (cpu["post_message"] + cpu["finish_reply"]) / turns * 1000,
        "all_cpu_ms": sum(cpu.values()) / turns * 1000,
    }


async def measure_persistence(
    product: Target, engine: PacedAddress, *, seats: Sequence[Seat], rounds: int = 3
) -> list[Line]:
    """G8: short and long replies; heartbeats are not counted."""
    short, long = [], []
    for _ in range(rounds):
        short.append(await _writes(product, engine, seats[:16], tokens=40))
        long.append(await _writes(product, engine, seats[:16], tokens=400))
    note = ", ".join(f"{one['writes']:.1f}" for one in short)
    grown = [one["writes"] - other["writes"] for one, other in zip(long, short, strict=True)]
    return [
        Line(aim=AIMS["G8.transactions"], figure=of_rounds([one["transactions"] for one in short])),
        Line(aim=AIMS["G8.cpu_ms"], figure=of_rounds([one["cpu_ms"] for one in short])),
        Line(aim=AIMS["G8.per_token"], figure=of_rounds(grown), note=f"{note} writes a turn"),
        Line(aim=AIMS["G8.all_cpu_ms"], figure=of_rounds([one["all_cpu_ms"] for one in short])),
    ]
