"""G7: how many sessions one core carries at 50 tokens a second, on the send path and through the whole turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import orjson

from training.bench.chat_goals import AIMS, Line
from training.bench.figures import gaps, of_rounds, percentile, rate_between, ratios
from training.bench.target import PacedAddress, Target
from training.bench.turns import PER_S, RepliesFailed, open_all, talk_together
from training.bench.visitor import Seat
from training.bench.wire_client import open_socket

SESSIONS = 80
SEND_S = 5.0
STEPS = (30, 45, 60, 80, 100, 120, 140, 160, 180, 200, 220, 240)
BEGIN_AT = 120
DELIVERED = 0.98
MAX_GAP_S = 0.1


async def _product_share(product: Target, seats: Sequence[Seat]) -> float:
    """The share of one core that `SESSIONS` sessions take."""
    visitors = await open_all(product, seats)
    for visitor in visitors:
        visitor.socket.on_text = lambda _frame: None
    cpu_s, began_s = product.cpu_s(), time.monotonic()
    await product.ask(f"/bench/send-path?seconds={SEND_S}&per_s={PER_S}")
    share = (product.cpu_s() - cpu_s) / (time.monotonic() - began_s)
    for visitor in visitors:
        visitor.close()
    return share


async def _twin_share(twin: Target, *, count: int) -> float:
    frames = int(SEND_S * PER_S)
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = count * frames

    def hear(_frame: bytes) -> None:
        nonlocal left
        left -= 1
        if left == 0 and not done.done():
            done.set_result(None)

    sockets = [await open_socket(twin.door.url, hear, origin=twin.address) for _ in range(count)]
    cpu_s, began_s = twin.cpu_s(), time.monotonic()
    for socket in sockets:
        socket.send(orjson.dumps({"type": "stream", "seconds": SEND_S, "per_s": PER_S}))
    await asyncio.wait_for(done, SEND_S * 10)
    share = (twin.cpu_s() - cpu_s) / (time.monotonic() - began_s)
    for socket in sockets:
        socket.close()
    return share


async def measure_send_path(product: Target, twin: Target, *, seats: Sequence[Seat], rounds: int = 3) -> list[Line]:
    """Sessions a core carries are one by the share that a session takes; both arms send one frame per token."""
    ours, raw = [], []
    for _ in range(rounds):
        raw.append(await _twin_share(twin, count=SESSIONS))
        ours.append(await _product_share(product, seats[:SESSIONS]))
    figure = ratios([share * 100 for share in raw], ours)
    note = f"raw {SESSIONS / raw[0]:,.0f} sessions"
    return [Line(aim=AIMS["G7.send_path"], figure=figure, note=note)]


async def _holds(product: Target, engine: PacedAddress, seats: Sequence[Seat]) -> bool:
    """Whether so many sessions get their tokens in time: a stretch of three seconds in the middle of long replies."""
    await engine.set_pace(tokens=350, per_s=PER_S)
    await product.reset()
    visitors = await open_all(product, seats)
    talking = asyncio.ensure_future(talk_together(visitors, spread_s=2.0))
    await asyncio.sleep(3.0)
    begin = time.monotonic()
    await asyncio.sleep(3.0)
    end = time.monotonic()
    try:
        await talking
    except (RepliesFailed, TimeoutError):
        return False
    stamps = [replies[-1] for replies in (await product.handovers()).values()]
    for visitor in visitors:
        visitor.close()
    pauses = [gap for one in stamps for gap in gaps([stamp for stamp in one if begin <= stamp < end])]
    rate = rate_between(stamps, begin_s=begin, end_s=end)
    is_full = rate >= DELIVERED * PER_S * len(seats)
    return is_full and bool(pauses) and percentile(pauses, 0.99) <= MAX_GAP_S


async def _most(product: Target, engine: PacedAddress, seats: Sequence[Seat], *, begin_at: int) -> int:
    """The largest step that holds, looked for from `begin_at`; 0 where none does."""
    place = STEPS.index(begin_at)
    if await _holds(product, engine, seats[: STEPS[place]]):
        while place + 1 < len(STEPS) and await _holds(product, engine, seats[: STEPS[place + 1]]):
            place += 1
        return STEPS[place]
    while place > 0:
        place -= 1
        if await _holds(product, engine, seats[: STEPS[place]]):
            return STEPS[place]
    return 0


async def measure_whole_turn(
    product: Target, engine: PacedAddress, *, seats: Sequence[Seat], rounds: int = 3
) -> list[Line]:
    """Whole turns; later rounds begin where the one before ended."""
    found: list[int] = []
    for _ in range(rounds):
        found.append(await _most(product, engine, seats, begin_at=(found[-1] or STEPS[0]) if found else BEGIN_AT))
    return [Line(aim=AIMS["G7.whole_turn"], figure=of_rounds([float(one) for one in found]))]
