"""The encoder client turns every answer into readings or one of two named errors, and the pure rules hold."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from rubric import EncoderClient, EncoderTimeout, EncoderUnavailable, Level, combine_levels, texts_to_screen
from rubric.encoder import JOINED_CHARACTERS
from rubric.serve.requests import DEADLINE_MS_MAX

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
READING = {"probability": 0.75, "level": "watch", "is_covered": True}


@asynccontextmanager
async def encoder_answering(answer: Answer, *, timeout_s: float = 2.0) -> AsyncIterator[EncoderClient]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", answer)
    async with TestServer(app) as server, EncoderClient(str(server.make_url("/")), timeout_s=timeout_s) as client:
        yield client


def saying(body: object, *, status: int = 200) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(body, status=status)

    return answer


async def test_readings_come_back_in_order_with_the_version() -> None:
    body = {"version": "screen-1", "readings": [READING, {"probability": 0.0, "level": "none", "is_covered": False}]}
    async with encoder_answering(saying(body)) as client:
        first, second = await client.screen(["a", "b"], direction="visitor")
    assert (first.level, first.probability, first.is_covered, first.version) == (Level.WATCH, 0.75, True, "screen-1")
    assert (second.level, second.is_covered) == (Level.NONE, False)


async def test_the_request_says_direction_texts_and_deadline() -> None:
    seen: list[object] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(await request.json())
        return web.json_response({"version": "v", "readings": [READING]})

    async with encoder_answering(answer, timeout_s=1.0) as client:
        await client.screen(["x" * 1000], direction="reply")
    assert seen == [{"texts": ["x" * 1000], "direction": "reply", "deadline_ms": 1300}]


async def test_no_deadline_is_longer_than_the_process_accepts() -> None:
    seen: list[int] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((await request.json())["deadline_ms"])
        return web.json_response({"embeddings": [[1.0]]})

    async with encoder_answering(answer, timeout_s=29.0) as client:
        await client.embed(["x" * 30_000])
    assert seen == [DEADLINE_MS_MAX]


async def test_no_texts_need_no_request() -> None:
    async with EncoderClient("http://127.0.0.1:9") as client:
        assert await client.screen([], direction="visitor") == ()
        assert await client.embed([]) == ()


async def test_a_closed_port_is_unavailable() -> None:
    async with EncoderClient("http://127.0.0.1:9") as client:
        with pytest.raises(EncoderUnavailable):
            await client.screen(["a"], direction="visitor")


async def test_a_silent_process_is_a_timeout() -> None:
    async def answer(_: web.Request) -> web.Response:
        await asyncio.sleep(5)
        return web.json_response({})

    async with encoder_answering(answer, timeout_s=0.05) as client:
        with pytest.raises(EncoderTimeout) as raised:
            await client.screen(["a"], direction="visitor")
    assert raised.value.limit_s == pytest.approx(0.0503)


async def test_a_deadline_passed_over_there_is_a_timeout() -> None:
    async with encoder_answering(saying({"error": {"code": "deadline_passed"}}, status=504)) as client:
        with pytest.raises(EncoderTimeout):
            await client.embed(["a"])


@pytest.mark.parametrize("status", [400, 413, 500, 503])
async def test_any_other_status_is_unavailable(status: int) -> None:
    async with encoder_answering(saying({"error": {}}, status=status)) as client:
        with pytest.raises(EncoderUnavailable, match=str(status)):
            await client.screen(["a"], direction="visitor")


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"version": "v", "readings": []},
        {"version": "v", "readings": [READING, READING]},
        {"version": 1, "readings": [READING]},
        {"version": "v", "readings": ["watch"]},
        {"version": "v", "readings": [{**READING, "level": "fine"}]},
        {"version": "v", "readings": [{**READING, "probability": 1.5}]},
        {"version": "v", "readings": [{**READING, "probability": float("nan")}]},
        {"version": "v", "readings": [{**READING, "probability": True}]},
        {"version": "v", "readings": [{**READING, "is_covered": 1}]},
        {"version": "v", "readings": [{"level": "none"}]},
    ],
)
async def test_what_is_no_reading_is_unavailable(body: object) -> None:
    async with encoder_answering(saying(body)) as client:
        with pytest.raises(EncoderUnavailable):
            await client.screen(["a"], direction="visitor")


async def test_a_body_that_is_no_json_is_unavailable() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="<html>", content_type="application/json")

    async with encoder_answering(answer) as client:
        with pytest.raises(EncoderUnavailable):
            await client.health()


async def test_embeddings_and_health_are_parsed() -> None:
    async with encoder_answering(saying({"embeddings": [[0.6, 0.8]]})) as client:
        assert await client.embed(["a"]) == ((0.6, 0.8),)
    versions = {"encoder_version": "encoder-1", "screen_version": "screen-1", "judge_version": "judge-1"}
    async with encoder_answering(saying({**versions, "waiting_windows": 0})) as client:
        health = await client.health()
    assert (health.screen_version, health.judge_version) == ("screen-1", "judge-1")


async def test_errors_never_carry_the_text() -> None:
    async with encoder_answering(saying({}, status=500)) as client:
        with pytest.raises(EncoderUnavailable) as raised:
            await client.screen(["a very private sentence"], direction="visitor")
    assert "private" not in str(raised.value)


def test_one_client_serves_two_event_loops_in_turn() -> None:
    client = EncoderClient("http://127.0.0.1:9")

    async def ask() -> None:
        with pytest.raises(EncoderUnavailable):
            await client.health()
        await client.aclose()

    asyncio.run(ask())
    asyncio.run(ask())


def test_a_first_message_is_screened_alone() -> None:
    assert texts_to_screen(["hello"]) == ("hello",)


def test_three_messages_before_are_joined_to_the_newest() -> None:
    assert texts_to_screen(["a", "b", "c", "d", "e"]) == ("e", "b\nc\nd\ne")


def test_a_long_message_before_ends_the_joining() -> None:
    assert texts_to_screen(["first", "x" * 1200, "third", "newest"]) == ("newest", "third\nnewest")


def test_screening_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no message"):
        texts_to_screen([])


@given(st.lists(st.text(), min_size=1, max_size=6))
def test_the_newest_is_always_screened_alone_and_last_in_the_joined_text(messages: list[str]) -> None:
    alone, *joined = texts_to_screen(messages)
    assert alone == messages[-1]
    assert all(text.endswith(messages[-1]) and len(text) <= JOINED_CHARACTERS for text in joined)


@pytest.mark.parametrize(
    ("levels", "since_high", "expected"),
    [
        ([], None, Level.NONE),
        ([Level.NONE, Level.WATCH], None, Level.WATCH),
        ([Level.HIGH, Level.NONE], None, Level.HIGH),
        ([Level.NONE], 1, Level.WATCH),
        ([Level.NONE], 6, Level.WATCH),
        ([Level.NONE], 7, Level.NONE),
        ([Level.HIGH], 2, Level.HIGH),
    ],
)
def test_the_highest_level_counts_and_a_high_lingers_as_watch(
    levels: list[Level], since_high: int | None, expected: Level
) -> None:
    assert combine_levels(levels, messages_since_high=since_high) is expected
