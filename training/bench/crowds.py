"""G9, leak, idle and slow: many sockets in one web process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from training.bench.chat_goals import AIMS, Line
from training.bench.figures import Figure, of_rounds, percentile, rate_between
from training.bench.paced_text import TOKEN_CHARS
from training.bench.target import PacedAddress, Target
from training.bench.turns import TEXT, talk_together
from training.bench.visitor import Heard, Seat, Visitor

AT_ONCE = 24
WAVES = 4
WAVE = 1_000
NORMAL, SLOW = 200, 50
SLOW_PACE = {"tokens": 240, "per_s": 20, "pad": 1000}  # 20 KB/s, for as long as the others talk
SETTLE_S = 2.0


async def open_many(target: Target, seats: Sequence[Seat]) -> list[Visitor]:
    """Open them a few at a time, from as many loopback addresses as their ports need."""
    free = asyncio.Semaphore(AT_ONCE)
    visitors = [Visitor(seat, target.door) for seat in seats]

    async def one(number: int, visitor: Visitor) -> None:
        async with free:
            await visitor.open(from_address=f"127.0.0.{2 + number % 4}")

    await asyncio.gather(*(one(number, visitor) for number, visitor in enumerate(visitors)))
    return visitors


async def close_all(visitors: Sequence[Visitor]) -> None:
    """Leave, and wait until the server has let go."""
    for visitor in visitors:
        visitor.close()
    await asyncio.sleep(SETTLE_S)


async def measure_waves(target: Target, *, seats: Sequence[Seat]) -> list[Line]:
    """Memory after each wave of connections that come and go."""
    after = []
    for _ in range(WAVES):
        await close_all(await open_many(target, seats[:WAVE]))
        after.append(target.memory_bytes())
    shown = ", ".join(f"{memory / 1e6:.0f}" for memory in after)
    growth = after[3] / after[1]
    figure = Figure(value=growth, low=growth, high=growth, n=WAVES)
    return [Line(aim=AIMS["leak.waves"], figure=figure, note=f"{shown} MB")]


async def measure_idle(target: Target, *, seats: Sequence[Seat]) -> list[Line]:
    """Memory of idle connections in three portions, and how many are open at the end."""
    visitors: list[Visitor] = []
    portions = []
    size = len(seats) // 3 + 1
    for begin in range(0, len(seats), size):
        before = target.memory_bytes()
        opened = await open_many(target, seats[begin : begin + size])
        visitors += opened
        await asyncio.sleep(0.5)
        portions.append((target.memory_bytes() - before) / len(opened) / 1024)
    await asyncio.sleep(SETTLE_S)
    whole = target.memory_bytes() / 1e9
    opened_count = sum(visitor.is_open for visitor in visitors)
    pongs = [visitor.wait("pong") for visitor in visitors[:: max(1, len(visitors) // 100)]]
    for visitor in visitors[:: max(1, len(visitors) // 100)]:
        visitor.send({"type": "ping"})
    await asyncio.gather(*pongs)
    await close_all(visitors)
    return [
        Line(aim=AIMS["G9.per_connection"], figure=of_rounds(portions)),
        Line(aim=AIMS["G9.process"], figure=of_rounds([whole])),
        Line(aim=AIMS["idle.open"], figure=of_rounds([float(opened_count)])),
    ]


def last_token_delay_ms(heard: Heard, stamps_s: Sequence[float]) -> list[float]:
    """For each delta: from the hand-over of its last token to its arrival at the page."""
    waits = []
    for moment_s, offset, characters in heard.deltas:
        index = (offset + characters + 1) // TOKEN_CHARS - 1
        if 0 <= index < len(stamps_s):
            waits.append((moment_s - stamps_s[index]) * 1000)
    return waits


async def _readers(target: Target, engine: PacedAddress, seats: Sequence[Seat], *, is_slow: bool) -> dict[str, float]:
    """200 normal readers beside 50 who get 20 KB/s each and either read it or not."""
    await target.reset()
    slow = [Visitor(seat, target.door) for seat in seats[NORMAL : NORMAL + SLOW]]
    await asyncio.gather(*(visitor.open(receive_bytes=4096) for visitor in slow))
    normal = await open_many(target, seats[:NORMAL])
    await engine.set_pace(**SLOW_PACE)
    for visitor in slow:
        visitor.say(TEXT)
        if is_slow:
            visitor.socket.pause()
    await asyncio.sleep(1.5)
    await engine.set_pace(tokens=80, per_s=10)
    talking = asyncio.ensure_future(talk_together(normal, spread_s=1.0))
    await asyncio.sleep(2.0)
    begin = time.monotonic()
    await asyncio.sleep(5.0)
    end = time.monotonic()
    await talking
    handed = await target.handovers()
    stamps = [handed[visitor.seat.conversation][-1] for visitor in normal]
    behind = (await target.ask("/bench/behind"))["behind"]
    waits = [ms for visitor, own in zip(normal, stamps, strict=True) for ms in last_token_delay_ms(visitor.heard, own)]
    for visitor in slow:
        visitor.socket.cut()
    await close_all(normal)
    per_s = rate_between(stamps, begin_s=begin, end_s=end)
    return {"per_s": per_s, "p99_ms": percentile(waits, 0.99), "behind": float(behind)}


async def measure_slow_readers(
    target: Target, engine: PacedAddress, *, fresh_seats: Callable[[int], Sequence[Seat]]
) -> list[Line]:
    """The normal ones with 50 others that read, and with 50 that do not; conversations of their own for every arm.

    A reply whose reader is cut off goes on: a message to the same conversation would wait for it.
    """
    rates, more, behind = [], [], []
    for _ in range(3):
        calm = await _readers(target, engine, fresh_seats(NORMAL + SLOW), is_slow=False)
        beside = await _readers(target, engine, fresh_seats(NORMAL + SLOW), is_slow=True)
        rates.append(beside["per_s"] / calm["per_s"] * 100)
        more.append(beside["p99_ms"] - calm["p99_ms"])
        behind.append(beside["behind"])
    note = f"{min(behind):.0f} of {SLOW} kept the server waiting"
    return [
        Line(aim=AIMS["slow.rate"], figure=of_rounds(rates), note=note),
        Line(aim=AIMS["slow.gap"], figure=of_rounds(more)),
    ]
