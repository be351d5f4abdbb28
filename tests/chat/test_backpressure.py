"""A client that stops reading costs a bounded amount of memory on the real server, and is then let go (B1)."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvicorn
import websockets

from chat.consumers import visitor_socket
from chat.live import hub_here
from chat.outbox import MAX_WAITING_CHARS
from tests.chat.conftest import Room
from tests.fakes.socket import ORIGIN

pytestmark = pytest.mark.redis
FRAME = json.dumps({"type": "presence", "who": "x" * 50_000, "is_typing": True})
FRAMES = 1_200  # 60 MB in all
MB = 1024 * 1024


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


@pytest.fixture
async def address(room: Room) -> AsyncIterator[str]:
    config = uvicorn.Config(
        visitor_socket, port=0, ws="websockets-sansio", ws_per_message_deflate=False, lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"ws://127.0.0.1:{port}/ws/chat/"
    server.should_exit = True
    await serving


async def test_client_that_stops_reading_is_let_go_before_it_costs_much(room: Room, address: str) -> None:
    async with websockets.connect(address, origin=ORIGIN, max_queue=1, compression=None) as page:  # type: ignore[arg-type]
        await page.send(json.dumps({"type": "hello", "token": room.token, "last_seq": 0}))
        assert json.loads(await page.recv())["type"] == "welcome"
        page.transport.pause_reading()
        hub = await hub_here()
        (socket,) = hub.followers[room.conversation.pk]
        before = resident_bytes()
        for number in range(FRAMES):
            socket.push(FRAME + " " * number)  # a string of its own each: shared ones would cost nothing
            await asyncio.sleep(0)
        grown = resident_bytes() - before
        async with asyncio.timeout(10):
            while not socket._outbox.is_closed:  # type: ignore[attr-defined]
                await asyncio.sleep(0.05)
        page.transport.abort()
    assert grown < 2 * MAX_WAITING_CHARS + 8 * MB
    async with asyncio.timeout(10):
        while hub.followers.get(room.conversation.pk):
            await asyncio.sleep(0.05)
