"""G10 and G11: connections that are cut in mid-answer, and a Redis that goes away for two seconds."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from training.bench.chat_goals import AIMS, Line
from training.bench.figures import of_rounds, of_samples
from training.bench.target import PacedAddress, Target
from training.bench.turns import PER_S, TEXT, open_all
from training.bench.visitor import Seat, Visitor

READERS = 20
CUTS = 5
AWAY_S = 2.0


async def _cut_and_resume(visitor: Visitor, dice: random.Random) -> float:
    """Cut at a random moment and come back; milliseconds from coming back to the welcome."""
    await asyncio.sleep(dice.uniform(0.3, 1.0))
    visitor.socket.cut()
    await asyncio.sleep(dice.uniform(0.0, 0.2))
    began_s = time.monotonic()
    await visitor.open()
    return (visitor.welcomes[-1] - began_s) * 1000


async def _read_with_cuts(visitor: Visitor, dice: random.Random) -> list[float]:
    visitor.say(TEXT)
    found = [await _cut_and_resume(visitor, dice) for _ in range(CUTS)]
    with suppress(TimeoutError):
        await asyncio.wait_for(visitor.heard.over.wait(), 30)
    return found


def differs(visitor: Visitor, expected: str) -> bool:
    """Whether the page's own text, or the server's, is not what the engine said."""
    heard = visitor.heard
    return not heard.status or heard.final_text != expected or not expected.startswith(heard.text)


async def measure_resume(
    product: Target, engine: PacedAddress, *, seats: Sequence[Seat], reply_of: Callable[[int], str]
) -> list[Line]:
    """20 readers, five cuts each; `reply_of(tokens)` is what the engine says."""
    tokens = 420
    await engine.set_pace(tokens=tokens, per_s=PER_S)
    waits: list[float] = []
    wrong = 0
    for number in range(3):
        visitors = await open_all(product, seats[number * READERS : (number + 1) * READERS])
        dices = [random.Random(number * 1000 + index) for index in range(len(visitors))]
        for found in await asyncio.gather(*map(_read_with_cuts, visitors, dices)):
            waits += found
        wrong += sum(differs(visitor, reply_of(tokens)) for visitor in visitors)
        for visitor in visitors:
            visitor.close()
    return [
        Line(aim=AIMS["G10.resume"], figure=of_samples(waits, 0.95)),
        Line(aim=AIMS["G10.texts"], figure=of_rounds([float(wrong)]), note=f"{3 * READERS} replies"),
    ]


async def measure_outage(
    product: Target,
    second: Target,
    engine: PacedAddress,
    *,
    seats: Sequence[Seat],
    stop_redis: Callable[[], Awaitable[None]],
    start_redis: Callable[[], Awaitable[None]],
    reply_of: Callable[[int], str],
) -> list[Line]:
    """20 replies run at one web process, followed at another; ten messages are sent while Redis is away."""
    dropped, lost, again = [], [], []
    for number in range(3):
        here = seats[number * 30 : number * 30 + 20]
        late = seats[number * 30 + 20 : number * 30 + 30]
        await engine.set_pace(tokens=500, per_s=PER_S)
        near, far, others = await open_all(product, here), await open_all(second, here), await open_all(product, late)
        replies = [visitor.say(TEXT) for visitor in near]
        await asyncio.sleep(3.0)
        await stop_redis()
        await asyncio.sleep(AWAY_S / 2)
        later = [visitor.say(TEXT) for visitor in others]
        await asyncio.sleep(AWAY_S / 2)
        await start_redis()
        back_s = time.monotonic()
        await asyncio.gather(*replies, *later)
        await asyncio.sleep(1.5)
        everyone = [*near, *far, *others]
        dropped.append(float(sum(not visitor.is_open for visitor in everyone)))
        lost.append(float(sum(differs(visitor, reply_of(500)) for visitor in everyone)))
        again.append(max(_first_after(visitor, back_s) for visitor in far))
        for visitor in everyone:
            visitor.close()
        await asyncio.sleep(0.5)
    return [
        Line(aim=AIMS["G11.dropped"], figure=of_rounds(dropped), note="50 sockets a round"),
        Line(aim=AIMS["G11.lost"], figure=of_rounds(lost)),
        Line(aim=AIMS["G11.again"], figure=of_rounds(again), note="the slowest of 20 followers"),
    ]


def _first_after(visitor: Visitor, moment_s: float) -> float:
    """Milliseconds until the first delta or welcome after a moment; a minute where none came."""
    heard = [when for when, _, _ in visitor.heard.deltas if when > moment_s]
    heard += [when for when in visitor.welcomes if when > moment_s]
    return (min(heard) - moment_s) * 1000 if heard else 60_000.0
