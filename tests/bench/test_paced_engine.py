"""The paced engine speaks what the product reads, at its pace."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from rubric import Completion, Deadlines, Dialect, Endpoint, EngineFeatures, HttpChatModel, Sampling, Transcript
from rubric.engine import open_client
from tests.bench.paced_engine import Pace, PacedEngine
from training.bench.bare_engine import run_streams
from training.bench.paced_text import TOKEN_CHARS, reply_text, token_text

ASKED = Transcript.of(("user", "Hello."))
SAMPLING = Sampling(max_tokens=50)


@dataclass
class Running:
    engine: PacedEngine
    address: str

    async def hear(self) -> tuple[list[str], Completion]:
        endpoint = Endpoint(
            base_url=self.address,
            model="paced",
            driver="remote",
            features=EngineFeatures(logprobs=True, token_ids=True),
            dialect=Dialect(sampled_kind="processed"),
        )
        async with open_client() as client:
            stream = HttpChatModel(endpoint, client).stream(
                ASKED, sampling=SAMPLING, deadlines=Deadlines(), request_id="r"
            )
            pieces = [piece async for piece in stream]
        *texts, completion = pieces
        assert isinstance(completion, Completion)
        return [piece.text for piece in texts], completion


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    engine = PacedEngine()
    server = await asyncio.get_running_loop().create_server(engine.connect, "127.0.0.1", 0)
    async with server:
        yield Running(engine, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")


async def test_the_product_s_client_reads_every_token_with_id_and_log_probability(running: Running) -> None:
    running.engine.pace = Pace(tokens=45, per_s=5000)
    texts, completion = await running.hear()
    assert texts == [token_text(index) for index in range(45)]
    assert len(completion.token_ids) == len(completion.logprobs) == 45
    assert completion.logprob_gap is None
    assert completion.finish_reason == "stop"


async def test_tokens_come_at_the_pace(running: Running) -> None:
    running.engine.pace = Pace(tokens=21, per_s=100, first_s=0.05)
    began_s = time.monotonic()
    (stream,) = await run_streams(running.address, count=1)
    assert len(stream.stamps_s) == 21
    assert stream.stamps_s[0] - began_s >= 0.049
    assert stream.stamps_s[-1] - began_s >= 0.24


async def test_padding_makes_tokens_long(running: Running) -> None:
    running.engine.pace = Pace(tokens=2, per_s=5000, pad=1000)
    texts, _ = await running.hear()
    assert [len(text) for text in texts] == [1005, 1005]


async def test_a_pace_can_be_set_over_the_wire(running: Running) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(running.address.rpartition(":")[2]))
    body = json.dumps({"tokens": 3, "per_s": 10}).encode()
    writer.write(b"POST /pace HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()
    assert running.engine.pace == Pace(tokens=3, per_s=10)


def test_a_reply_is_its_tokens_and_ends_in_a_sentence() -> None:
    assert reply_text(45) == "".join(token_text(index) for index in range(45))[1:]
    assert reply_text(20).endswith(" far.")
    assert {len(token_text(index)) for index in range(200)} == {TOKEN_CHARS}
