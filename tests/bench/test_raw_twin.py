"""The raw twin echoes and streams; the instant screen answers the product's client; the lean socket reads both."""

import asyncio
import socket
from collections.abc import AsyncIterator

import orjson
import pytest
import uvicorn

from rubric import EncoderClient, Level
from tests.bench.instant_screen import _Connection
from tests.bench.raw_twin import application
from training.bench.inbound import ping_pong
from training.bench.wire_client import HandshakeRefused, LeanSocket, masked_frame, open_socket


@pytest.fixture
async def twin() -> AsyncIterator[str]:
    line = socket.socket()
    line.bind(("127.0.0.1", 0))
    config = uvicorn.Config(application, ws="websockets-sansio", lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[line]))
    while not server.started:
        await asyncio.sleep(0.01)
    yield f"ws://127.0.0.1:{line.getsockname()[1]}/"
    server.should_exit = True
    await serving


async def heard(url: str, *sent: bytes, count: int) -> list[bytes]:
    frames: list[bytes] = []
    enough = asyncio.Event()

    def take(frame: bytes) -> None:
        frames.append(frame)
        if len(frames) == count:
            enough.set()

    client = await open_socket(url, take, origin="http://here")
    for payload in sent:
        client.send(payload)
    await asyncio.wait_for(enough.wait(), 5)
    client.close()
    await client.closed
    return frames


async def test_the_twin_echoes_what_it_gets(twin: str) -> None:
    long = b'"' + b"x" * 70_000 + b'"'
    assert await heard(twin, b'{"type":"ping"}', long, count=2) == [b'{"type":"ping"}', long]


async def test_the_twin_streams_deltas_that_fit_together(twin: str) -> None:
    asked = orjson.dumps({"type": "stream", "seconds": 0.1, "per_s": 100})
    deltas = [orjson.loads(frame) for frame in await heard(twin, asked, count=10)]
    assert [delta["offset"] for delta in deltas] == [index * 5 for index in range(10)]


async def test_every_socket_gets_its_number_of_answers(twin: str) -> None:
    sockets = [await open_socket(twin, lambda _: None, origin="http://here") for _ in range(3)]
    await ping_pong(sockets, [b"{}"] * 3, per_socket=20)
    for one in sockets:
        one.cut()
        await one.closed


async def test_a_door_that_stays_shut_is_an_error() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(HandshakeRefused, match="403"):
            await open_socket(f"ws://127.0.0.1:{port}/", lambda _: None, origin="http://here")


async def test_frames_that_come_in_pieces_are_put_together() -> None:
    frames: list[bytes] = []
    client = LeanSocket(frames.append, host="here", path="/", origin="http://here")
    server = b"\x81\x05hello\x81\x7e\x01\x00" + b"y" * 256 + b"\x88\x02\x11\x54"
    for byte in b"HTTP/1.1 101 Switching\r\n\r\n" + server:
        client.data_received(bytes([byte]))
    assert frames == [b"hello", b"y" * 256]
    assert client.close_code == 4436


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_a_client_frame_carries_its_length_and_an_empty_mask(size: int) -> None:
    frame = masked_frame(0x1, b"z" * size)
    assert frame.endswith(b"\x00" * 4 + b"z" * size)
    assert frame[0] == 0x81
    assert frame[1] & 0x80


async def test_the_instant_screen_lets_every_text_pass() -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with EncoderClient(url) as client:
            readings = await client.screen(("one", "two"), direction="reply")
            assert (await client.health()).waiting_windows == 0
    assert [reading.level for reading in readings] == [Level.NONE, Level.NONE]
