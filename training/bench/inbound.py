"""G1 and G2: what a message from a page costs, and whether one that is stuck delays the others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from uuid import uuid4

import orjson

from training.bench.chat_goals import AIMS, Line
from training.bench.figures import of_rounds, percentile, ratios
from training.bench.target import Target
from training.bench.visitor import Seat, Visitor
from training.bench.wire_client import LeanSocket, open_socket

PER_SOCKET = 300  # a socket may send 400 frames in 10 s
PING = orjson.dumps({"type": "ping"})
BLANK = orjson.dumps({"type": "message.send", "client_id": "b" * 32, "text": " " * 60})
LONG = "I do not know how to tell my sister that I cannot come to her wedding next month."
OTHERS = 20
BLOCK_S = 1.0


async def ping_pong(sockets: Sequence[LeanSocket], payloads: Sequence[bytes], *, per_socket: int) -> None:
    """Each socket sends its payload and, at each answer, the next one, until it has had its number of answers."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = len(sockets)

    def play(socket: LeanSocket, payload: bytes) -> Callable[[bytes], None]:
        answers = 0

        def answer(_frame: bytes) -> None:
            nonlocal answers, left
            answers += 1
            if answers < per_socket:
                socket.send(payload)
                return
            left -= 1
            if left == 0 and not done.done():
                done.set_result(None)

        return answer

    for socket, payload in zip(sockets, payloads, strict=True):
        socket.on_text = play(socket, payload)
        socket.send(payload)
    await asyncio.wait_for(done, 120)


async def _product_us(target: Target, seats: Sequence[Seat], payloads: Sequence[bytes]) -> float:
    visitors = [Visitor(seat, target.door) for seat in seats]
    await asyncio.gather(*(visitor.open() for visitor in visitors))
    began_s = target.cpu_s()
    await ping_pong([visitor.socket for visitor in visitors], payloads, per_socket=PER_SOCKET)
    spent_s = target.cpu_s() - began_s
    for visitor in visitors:
        visitor.close()
    return spent_s / (len(seats) * PER_SOCKET) * 1e6


async def _twin_us(twin: Target, payload: bytes, *, count: int) -> float:
    sockets = [await open_socket(twin.door.url, lambda _: None, origin=twin.address) for _ in range(count)]
    began_s = twin.cpu_s()
    await ping_pong(sockets, [payload] * count, per_socket=PER_SOCKET)
    spent_s = twin.cpu_s() - began_s
    for socket in sockets:
        socket.close()
    return spent_s / (count * PER_SOCKET) * 1e6


async def measure_inbound(
    product: Target,
    twin: Target,
    *,
    seats: Sequence[Seat],
    use_up_limit: Callable[[Sequence[Seat]], Awaitable[None]],
    rounds: int = 3,
) -> list[Line]:
    """CPU per message; `use_up_limit` makes the next valid message of these visitors one too many."""
    raw, pings, blanks, limited = [], [], [], []
    for _ in range(rounds):
        raw.append(await _twin_us(twin, PING, count=len(seats)))
        pings.append(await _product_us(product, seats, [PING] * len(seats)))
        blanks.append(await _product_us(product, seats, [BLANK] * len(seats)))
        await use_up_limit(seats)
        sends = [_send_event() for _ in seats]
        limited.append(await _product_us(product, seats, sends))
    shown = ", ".join(f"{value:.0f}" for value in pings)
    return [
        Line(aim=AIMS["G1.ping"], figure=ratios(pings, raw), note=f"{shown} us"),
        Line(aim=AIMS["G1.invalid"], figure=ratios(blanks, raw)),
        Line(aim=AIMS["G1.limited"], figure=ratios(limited, raw)),
        Line(aim=AIMS["G1.raw_us"], figure=of_rounds(raw)),
    ]


def _send_event() -> bytes:
    return orjson.dumps({"type": "message.send", "client_id": uuid4().hex, "text": LONG})


async def measure_blocked(product: Target, *, seats: Sequence[Seat], message_id: str, rounds: int = 3) -> list[Line]:
    """The first seat's visitor blocks; the last one's sends a message; those between them ping every 20 ms."""
    delays, stored = [], []
    for _ in range(rounds):
        visitors = [Visitor(seat, product.door) for seat in seats[: OTHERS + 2]]
        await asyncio.gather(*(visitor.open() for visitor in visitors))
        blocker, sender, others = visitors[0], visitors[-1], visitors[1:-1]
        calm = await _pings(others)
        blocker.send(_block(message_id))
        await asyncio.sleep(0.05)
        accepted = sender.wait("message.accepted")
        sender.say("Good evening.")
        during = await _pings(others)
        await accepted
        delays.append((percentile(during, 0.99) - percentile(calm, 0.99)) * 1000)
        stored.append((sender.heard.accepted_s - sender.heard.sent_s) * 1000)
        await asyncio.sleep(0.5)
        for visitor in visitors:
            visitor.close()
    return [
        Line(aim=AIMS["G2.echo"], figure=of_rounds(delays), note=f"{OTHERS} sockets"),
        Line(aim=AIMS["G2.stored"], figure=of_rounds(stored)),
    ]


def _block(message_id: str) -> dict[str, object]:
    return {"type": "feedback.set", "message_id": message_id, "value": 1, "reasons": [], "comment": "block"}


async def _pings(visitors: Sequence[Visitor]) -> list[float]:
    """The delays of all of them, for a stretch that is shorter than the block."""
    found = await asyncio.gather(*(_ping_for(visitor, seconds=BLOCK_S - 0.15) for visitor in visitors))
    return [delay for delays in found for delay in delays]


async def _ping(visitor: Visitor) -> float:
    pong = visitor.wait("pong")
    began_s = time.monotonic()
    visitor.socket.send(PING)
    await pong
    return time.monotonic() - began_s


async def _ping_for(visitor: Visitor, *, seconds: float) -> list[float]:
    end_s, delays = time.monotonic() + seconds, []
    while time.monotonic() < end_s:
        delays.append(await _ping(visitor))
        await asyncio.sleep(0.02)
    return delays
