"""`rubric.engine` against a server that misbehaves on demand."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, aclosing
from typing import Any

import aiohttp
import pytest

from rubric.dialogue import Transcript
from rubric.engine import Completion, Deadlines, Dialect, EngineFeatures, HttpChatModel, Piece, Sampling, open_client
from rubric.errors import EngineBroken, EngineRefused, EngineTimeout, EngineUnreachable
from rubric.json_types import JsonObject
from tests.fakes.engine import FakeEngine, Script, closed_port

TALK = Transcript.of(("system", "Be kind."), ("user", "hello"))
SAMPLING = Sampling(max_tokens=64, seed=1)
QUICK = Deadlines(connect_s=0.5, first_token_s=0.3, between_tokens_s=0.2, whole_s=3.0)
WORDS = tuple(f"word{i} " for i in range(60))


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_client() as opened:
        yield opened


@pytest.fixture
async def engine() -> AsyncIterator[FakeEngine]:
    async with FakeEngine() as fake:
        yield fake


class Heard:
    """What a stream gave before it ended or broke."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.completion: Completion | None = None

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


async def hear(
    engine: FakeEngine,
    client: aiohttp.ClientSession,
    *,
    into: Heard | None = None,
    sampling: Sampling = SAMPLING,
    deadlines: Deadlines = QUICK,
    **endpoint: Any,
) -> Heard:
    heard = into or Heard()
    model = HttpChatModel(engine.endpoint(**endpoint), client)
    async with aclosing(model.stream(TALK, sampling=sampling, deadlines=deadlines, request_id="r1")) as stream:
        async for step in stream:
            if isinstance(step, Piece):
                heard.pieces.append(step)
            else:
                heard.completion = step
    return heard


async def completed(engine: FakeEngine, client: aiohttp.ClientSession, **rest: Any) -> Completion:
    heard = await hear(engine, client, **rest)
    assert heard.completion is not None
    assert heard.completion.text == heard.text
    return heard.completion


async def until(claim: Any, *, within_s: float = 2.0) -> None:
    end = time.monotonic() + within_s
    while not claim():
        assert time.monotonic() < end, "it never came true"
        await asyncio.sleep(0.01)


async def test_a_reply_comes_with_text_ids_log_probabilities_and_usage(
    engine: FakeEngine, client: aiohttp.ClientSession
) -> None:
    engine.script = Script(tokens=("Hel", "lo", "!"))
    reply = await completed(engine, client)
    assert reply.text == "Hello!"
    assert reply.token_ids == (1000, 1001, 1002)
    assert reply.logprobs == (-0.5, -0.5, -0.5)
    assert (reply.logprob_kind, reply.logprob_gap, reply.finish_reason) == ("processed", None, "stop")
    assert (reply.prompt_tokens, reply.completion_tokens, reply.request_id) == (7, 3, "r1")
    assert reply.first_token_ms is not None
    assert 0 < reply.first_token_ms <= reply.total_ms


async def test_the_request_carries_the_sampling_and_the_dialect(
    engine: FakeEngine, client: aiohttp.ClientSession
) -> None:
    dialect = Dialect(
        extras={"top_k": 0},
        sampled_extras={"post_sampling_probs": True},
        repetition_field="repeat_penalty",
        penalty_extras={"repeat_last_n": -1},
        min_top_logprobs=1,
        closes_connections=True,
        sends_request_id=True,
    )
    sampling = Sampling(max_tokens=5, temperature=0.5, top_p=0.9, repetition_penalty=1.1, stop=("\nUser",), seed=9)
    await completed(engine, client, sampling=sampling, dialect=dialect, api_key="k1")
    asked = engine.asked[0]
    assert asked.body == {
        "model": "fake-1",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hello"}],
        "max_tokens": 5,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 0,
        "post_sampling_probs": True,
        "repeat_penalty": 1.1,
        "repeat_last_n": -1,
        "stop": ["\nUser"],
        "seed": 9,
        "logprobs": True,
        "top_logprobs": 1,
        "stream": True,
        "stream_options": {"include_usage": True},
        "request_id": "r1",
    }
    assert asked.headers["Authorization"] == "Bearer k1"
    assert asked.headers["Connection"] == "close"


async def test_a_greedy_request_asks_for_no_sampled_distribution(
    engine: FakeEngine, client: aiohttp.ClientSession
) -> None:
    dialect = Dialect(sampled_extras={"post_sampling_probs": True}, sampled_kind="processed", greedy_kind="raw")
    reply = await completed(engine, client, sampling=Sampling(max_tokens=5, temperature=0), dialect=dialect)
    assert "post_sampling_probs" not in engine.asked[0].body
    assert reply.logprob_kind == "raw"


@pytest.mark.parametrize("sends_role", [True, False])
@pytest.mark.parametrize("sends_usage", [True, False])
@pytest.mark.parametrize("sends_done", [True, False])
async def test_role_only_and_usage_only_chunks_are_no_tokens(
    engine: FakeEngine, client: aiohttp.ClientSession, sends_role: bool, sends_usage: bool, sends_done: bool
) -> None:
    engine.script = Script(tokens=("a", "b"), sends_role=sends_role, sends_usage=sends_usage, sends_done=sends_done)
    heard = await hear(engine, client)
    assert [piece.text for piece in heard.pieces] == ["a", "b"]
    assert heard.completion is not None
    assert heard.completion.completion_tokens == (2 if sends_usage else None)


async def test_a_closed_port_is_unreachable(client: aiohttp.ClientSession) -> None:
    engine = FakeEngine(port=closed_port())
    with pytest.raises(EngineUnreachable) as caught:
        await hear(engine, client)
    assert caught.value.code == "engine_unreachable"
    assert caught.value.is_retryable


@pytest.mark.parametrize(
    ("status", "is_retryable"), [(400, False), (404, False), (429, True), (500, True), (503, True)]
)
async def test_a_refusal_keeps_its_status_and_not_its_words(
    engine: FakeEngine, client: aiohttp.ClientSession, status: int, is_retryable: bool
) -> None:
    engine.script = Script(status=status)
    with pytest.raises(EngineRefused) as caught:
        await hear(engine, client)
    assert (caught.value.status, caught.value.is_retryable) == (status, is_retryable)
    assert '"no"' not in str(caught.value)


@pytest.mark.parametrize(
    ("script", "stage"),
    [
        (Script(hangs=True), "first_token"),
        (Script(hang_at=0), "first_token"),
        (Script(hang_at=0, ping_s=0.05), "first_token"),
        (Script(hang_at=2), "between_tokens"),
        (Script(hang_at=2, ping_s=0.05), "between_tokens"),
        (Script(tokens=WORDS, gap_s=0.1), "whole"),
    ],
    ids=["silent", "headers-only", "pings-only", "falls-silent", "falls-to-pings", "too-slow"],
)
async def test_each_deadline_has_its_stage_and_ends_the_engines_work(
    engine: FakeEngine, client: aiohttp.ClientSession, script: Script, stage: str
) -> None:
    engine.script = script
    deadlines = Deadlines(connect_s=0.5, first_token_s=0.3, between_tokens_s=0.3, whole_s=1.0)
    with pytest.raises(EngineTimeout) as caught:
        await hear(engine, client, deadlines=deadlines)
    assert (caught.value.stage, caught.value.code) == (stage, f"timeout_{stage}")
    await until(lambda: engine.lost_clients == 1 and engine.running == 0)


async def test_a_host_that_takes_no_connection_passes_the_connect_deadline(client: aiohttp.ClientSession) -> None:
    with ExitStack() as opened:
        # Nobody accepts and the backlog is full: further connections wait in the kernel.
        deaf = opened.enter_context(socket.socket())
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(4):
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(deaf.getsockname())
        engine = FakeEngine(port=deaf.getsockname()[1])
        with pytest.raises(EngineTimeout) as caught:
            await hear(engine, client, deadlines=Deadlines(connect_s=0.2))
        assert caught.value.stage == "connect"


@pytest.mark.parametrize("place", [0, 1, 50])
@pytest.mark.parametrize(
    "fault",
    [
        lambda place: Script(tokens=WORDS, die_at=place),
        lambda place: Script(tokens=WORDS, error_at=place),
        lambda place: Script(tokens=WORDS, garbage_at=place),
    ],
    ids=["die", "error-event", "garbage"],
)
async def test_a_death_in_mid_stream_keeps_the_tokens_before_it(
    engine: FakeEngine, client: aiohttp.ClientSession, place: int, fault: Callable[[int], Script]
) -> None:
    engine.script = fault(place)
    heard = Heard()
    with pytest.raises(EngineBroken) as caught:
        await hear(engine, client, into=heard)
    assert heard.text == "".join(WORDS[:place])
    assert caught.value.code == "engine_broken"
    assert "word" not in str(caught.value)
    assert heard.completion is None


async def test_a_stream_without_a_finish_reason_is_broken(engine: FakeEngine, client: aiohttp.ClientSession) -> None:
    engine.script = Script(tokens=("a", "b"), finish_reason=None)
    with pytest.raises(EngineBroken):
        await hear(engine, client)


async def test_a_missing_usage_event_costs_the_counts_and_not_the_reply(
    engine: FakeEngine, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rubric.engine._USAGE_WAIT_S", 0.1)
    chunk = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
    engine.script = Script(raw=[chunk, *[b": ping\n\n"] * 20])
    reply = await completed(engine, client)
    assert (reply.text, reply.completion_tokens) == ("hi", None)


async def test_closing_the_stream_stops_the_engine_within_ten_tokens(
    engine: FakeEngine, client: aiohttp.ClientSession
) -> None:
    engine.script = Script(tokens=WORDS, gap_s=0.02)
    model = HttpChatModel(engine.endpoint(), client)
    async with aclosing(model.stream(TALK, sampling=SAMPLING, deadlines=QUICK, request_id="r1")) as stream:
        seen = 0
        async for _ in stream:
            seen += 1
            if seen == 3:
                break
    at_stop = engine.generated_tokens
    await until(lambda: engine.lost_clients == 1)
    assert engine.generated_tokens - at_stop <= 10


@pytest.mark.parametrize("script", [Script(hangs=True), Script(hang_at=3)], ids=["before-headers", "in-mid-stream"])
async def test_a_cancelled_task_drops_its_connection(
    engine: FakeEngine, client: aiohttp.ClientSession, script: Script
) -> None:
    engine.script = script
    task = asyncio.ensure_future(hear(engine, client, deadlines=Deadlines()))
    await until(lambda: engine.running == 1)
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: engine.lost_clients == 1 and engine.running == 0)


async def test_a_cancelled_whole_request_drops_its_connection(
    engine: FakeEngine, client: aiohttp.ClientSession
) -> None:
    engine.script = Script(tokens=WORDS, gap_s=0.05)
    model = HttpChatModel(engine.endpoint(), client)
    work = model.complete(TALK, sampling=SAMPLING, deadlines=Deadlines(), request_id="r1")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(work, 0.2)
    await until(lambda: engine.lost_clients == 1 and engine.running == 0)


async def test_a_caller_that_takes_its_time_is_not_the_engines_silence(
    engine: FakeEngine, client: aiohttp.ClientSession
) -> None:
    engine.script = Script(tokens=("a", "b", "c"), gap_s=0.01)
    model = HttpChatModel(engine.endpoint(), client)
    texts = []
    deadlines = Deadlines(between_tokens_s=0.1)
    async with aclosing(model.stream(TALK, sampling=SAMPLING, deadlines=deadlines, request_id="r1")) as stream:
        async for step in stream:
            texts.append(step.text)
            await asyncio.sleep(0.15)
    assert texts == ["a", "b", "c", "abc"]


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\u0085"])
async def test_a_raw_line_separator_in_a_delta_is_text(
    engine: FakeEngine, client: aiohttp.ClientSession, odd: str
) -> None:
    chunk = json.dumps({"choices": [{"delta": {"content": f"a{odd}b"}, "finish_reason": "stop"}]}, ensure_ascii=False)
    engine.script = Script(raw=[f"data: {chunk}\n\n".encode()])
    assert (await completed(engine, client)).text == f"a{odd}b"


FAMILY = "👨‍👩‍👧‍👦"
ELEVEN = [FAMILY.encode()[i : i + 2] for i in range(0, 20, 2)] + [FAMILY.encode()[20:]]


async def test_a_family_in_eleven_tokens_arrives_whole(engine: FakeEngine, client: aiohttp.ClientSession) -> None:
    shown = [part.decode("utf-8", "replace") for part in ELEVEN]
    engine.script = Script(tokens=[*shown, "!"], token_bytes=[*ELEVEN, b"!"])
    reply = await completed(engine, client)
    assert reply.text == FAMILY + "!"
    assert len(reply.token_ids) == 12


async def test_raw_bytes_of_half_characters_are_joined(engine: FakeEngine, client: aiohttp.ClientSession) -> None:
    chunks = [b'data: {"choices":[{"delta":{"content":"' + part + b'"}}]}\n\n' for part in ELEVEN]
    end = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
    engine.script = Script(raw=[*chunks, end])
    assert (await completed(engine, client)).text == FAMILY


async def test_escaped_halves_of_a_pair_are_joined(engine: FakeEngine, client: aiohttp.ClientSession) -> None:
    chunks = [b'data: {"choices":[{"delta":{"content":"' + part + b'"}}]}\n\n' for part in (b"\\ud83d", b"\\udc4d!")]
    end = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
    engine.script = Script(raw=[*chunks, end])
    assert (await completed(engine, client)).text == "👍!"


async def test_empty_deltas_keep_their_tokens(engine: FakeEngine, client: aiohttp.ClientSession) -> None:
    engine.script = Script(tokens=("a", "", "", "é"), token_bytes=[b"a", b"\xc3", b"", b"\xa9"])
    reply = await completed(engine, client)
    assert reply.text == "aé"
    assert len(reply.token_ids) == 4
    assert reply.logprob_gap is None


async def test_an_old_lone_surrogate_does_not_poison_the_request(
    engine: FakeEngine, client: aiohttp.ClientSession
) -> None:
    model = HttpChatModel(engine.endpoint(), client)
    talk = Transcript.of(("user", "x\ud83dy"))
    await model.complete(talk, sampling=SAMPLING, deadlines=QUICK, request_id="r1")
    assert engine.asked[0].body["messages"] == [{"role": "user", "content": "x\ufffdy"}]


@pytest.mark.parametrize(
    ("script", "gap"),
    [
        (Script(tokens=("a", "b"), extra_tokens=1), None),  # the end token has no entry
        (Script(tokens=("a", "b"), extra_tokens=1, finish_reason="length"), "2 entries for 3 tokens"),
        (Script(tokens=("a", "b"), extra_tokens=4), "2 entries for 6 tokens"),
        (Script(tokens=("a", "b", "c", "d"), entry_step=2), "2 entries for 4 tokens"),
        (Script(tokens=("a", "b"), logprob=None), "2 of 2 are no numbers"),
        (Script(tokens=("a", "b"), has_entries=False), "none came back"),
        (Script(tokens=("a", "b"), logprob=float("-inf")), "2 of 2 are no numbers"),
    ],
)
async def test_missing_log_probabilities_are_named(
    engine: FakeEngine, client: aiohttp.ClientSession, script: Script, gap: str | None
) -> None:
    engine.script = script
    assert (await completed(engine, client)).logprob_gap == gap


async def test_probabilities_are_read_as_log_probabilities(engine: FakeEngine, client: aiohttp.ClientSession) -> None:
    engine.script = Script(tokens=("a",), uses_prob=True, logprob=-1.25)
    assert (await completed(engine, client)).logprobs == pytest.approx((-1.25,))


async def test_an_engine_without_log_probabilities_is_not_asked_for_them(
    engine: FakeEngine, client: aiohttp.ClientSession
) -> None:
    engine.script = Script(tokens=("a",), has_entries=False)
    reply = await completed(engine, client, features=EngineFeatures())
    assert "logprobs" not in engine.asked[0].body
    assert (reply.logprob_kind, reply.logprob_gap) == ("none", "the engine offers none")


async def test_n_completions_come_in_the_order_of_their_indexes(
    engine: FakeEngine, client: aiohttp.ClientSession
) -> None:
    engine.script = Script(tokens=("a", "b"))
    model = HttpChatModel(engine.endpoint(), client)
    schema: JsonObject = {"type": "object"}
    replies = await model.complete(
        TALK, sampling=SAMPLING, deadlines=QUICK, request_id="r1", n=4, schema=schema, priority=3
    )
    assert [reply.text for reply in replies] == ["ab"] * 4
    body = engine.asked[0].body
    assert (body["n"], body["priority"], body["response_format"]["json_schema"]["schema"]) == (4, 3, schema)
    assert "stream" not in body


async def test_priority_is_sent_only_where_it_is_understood(engine: FakeEngine, client: aiohttp.ClientSession) -> None:
    model = HttpChatModel(engine.endpoint(features=EngineFeatures(logprobs=True)), client)
    await model.complete(TALK, sampling=SAMPLING, deadlines=QUICK, request_id="r1", priority=3)
    assert "priority" not in engine.asked[0].body


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b'{"choices":[]}', b'{"choices":[{"index":0}]}', b"<html>", b'{"choices":3}', b"[" * 100_000]
)
async def test_an_unreadable_answer_is_broken(engine: FakeEngine, client: aiohttp.ClientSession, raw: bytes) -> None:
    engine.script = Script(raw=[raw])
    model = HttpChatModel(engine.endpoint(), client)
    with pytest.raises(EngineBroken):
        await model.complete(TALK, sampling=SAMPLING, deadlines=QUICK, request_id="r1")


@pytest.mark.parametrize(
    "raw",
    [
        b"[]",
        b'{"choices":[{"index":0}]}',
        b'{"choices":[3]}',
        b'{"choices":[{"delta":{"content":"a"},"logprobs":{"content":[3]}}]}',
    ],
)
async def test_an_unreadable_chunk_is_broken(engine: FakeEngine, client: aiohttp.ClientSession, raw: bytes) -> None:
    engine.script = Script(raw=[b"data: " + raw + b"\n\n"])
    with pytest.raises(EngineBroken):
        await hear(engine, client)


async def test_sixty_streams_cost_little_per_token(engine: FakeEngine, client: aiohttp.ClientSession) -> None:
    """The goal is 150 us a token beside a real engine; the fake shares this process, so the bound is loose."""
    chunk = (
        b'data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":" word"},"logprobs":{"content":'
        b'[{"id":253,"token":" word","bytes":[32,97],"prob":0.065,"top_probs":[{"id":284,"token":" and",'
        b'"bytes":[32,97,110,100],"prob":0.31}]}]}}],"created":1,"id":"chatcmpl-x","model":"m"}\n\n'
    )
    end = b'data: {"choices":[{"delta":{},"finish_reason":"length"}]}\n\ndata: [DONE]\n\n'
    engine.script = Script(raw=[chunk * 2000 + end])
    started = time.process_time()
    reply = await completed(engine, client, deadlines=Deadlines())
    assert len(reply.token_ids) == 2000
    assert (time.process_time() - started) / 2000 < 150e-6
