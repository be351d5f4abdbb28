"""The encoder process over HTTP: right answers, clear refusals, and a text's answer whatever its company."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given
from hypothesis import strategies as st

from rubric import EncoderClient, EncoderTimeout, EncoderUnavailable, Level
from rubric.serve.app import build_app
from rubric.serve.bundle import load_bundle
from rubric.serve.networks import Networks
from rubric.serve.requests import BODY_BYTES_MAX, CHARACTERS_MAX, RequestInvalid, parse_request

Client = TestClient[Any, Any]


@pytest.fixture(scope="module")
def networks(tiny_bundle: Path) -> Networks:
    return Networks(load_bundle(tiny_bundle))


@pytest.fixture
async def client(networks: Networks) -> AsyncIterator[Client]:
    async with TestClient(TestServer(build_app(networks))) as running:
        yield running


@pytest.fixture
def encoder(client: Client) -> EncoderClient:
    return EncoderClient(str(client.make_url("/")), timeout_s=5.0, client=client.session)


async def test_health_reports_the_versions(encoder: EncoderClient) -> None:
    health = await encoder.health()
    versions = (health.encoder_version, health.screen_version, health.judge_version)
    assert versions == ("encoder-tiny", "screen-tiny", "judge-tiny")
    assert health.waiting_windows == 0


async def test_each_direction_reads_its_own_three_probabilities(encoder: EncoderClient) -> None:
    texts = ["he has a knife", "take the rope", "nice weather today"]
    visitor = await encoder.screen(texts, direction="visitor")
    reply = await encoder.screen(texts, direction="reply")
    assert [reading.level for reading in visitor] == [Level.HIGH, Level.NONE, Level.NONE]
    assert [reading.level for reading in reply] == [Level.NONE, Level.HIGH, Level.NONE]
    assert visitor[0].probability == pytest.approx(0.98)
    assert visitor[2].probability == pytest.approx(0.02)


async def test_the_worst_window_of_a_long_text_counts(encoder: EncoderClient) -> None:
    long = "and then we went for a walk in the park " * 60
    plain, grave = await encoder.screen([long, f"{long} with a knife {long}"], direction="visitor")
    assert (plain.level, grave.level) == (Level.NONE, Level.HIGH)


async def test_coverage_is_told_per_text(encoder: EncoderClient) -> None:
    readings = await encoder.screen(["hello there, how are you", "no quiero hablar con nadie hoy"], direction="visitor")
    assert [reading.is_covered for reading in readings] == [True, False]


async def test_embeddings_have_unit_length_and_384_numbers(encoder: EncoderClient) -> None:
    (short, long) = await encoder.embed(["hello", "word " * 700])
    assert len(short) == len(long) == 384
    assert sum(number * number for number in long) == pytest.approx(1.0, abs=1e-5)


async def test_a_text_with_half_a_surrogate_is_read(encoder: EncoderClient) -> None:
    (reading,) = await encoder.screen(["a knife \ud83d"], direction="visitor")
    assert reading.level is Level.HIGH


async def post(client: Client, path: str, *, body: bytes) -> tuple[int, dict[str, Any]]:
    async with client.post(path, data=body, headers={"Content-Type": "application/json"}) as response:
        return response.status, await response.json()


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"texts": ' + b"9" * 5000 + b"}",
        b"{}",
        b'{"texts": [], "direction": "visitor"}',
        b'{"texts": "a", "direction": "visitor"}',
        b'{"texts": [1], "direction": "visitor"}',
        b'{"texts": ["a"]}',
        b'{"texts": ["a"], "direction": "inward"}',
        b'{"texts": ["a"], "direction": "visitor", "deadline_ms": 0}',
        b'{"texts": ["a"], "direction": "visitor", "deadline_ms": true}',
        b'{"texts": ["a"], "direction": "visitor", "deadline_ms": 1.5}',
        b"\xff\xfe",
    ],
)
async def test_what_is_no_request_gets_400_and_a_sentence(client: Client, body: bytes) -> None:
    status, answer = await post(client, "/v1/screen", body=body)
    assert (status, answer["error"]["code"]) == (400, "invalid_request")


async def test_too_many_too_long_and_too_large_get_413(client: Client) -> None:
    for texts in (["a"] * 65, ["a" * (CHARACTERS_MAX + 1)], ["a" * BODY_BYTES_MAX]):
        status, answer = await post(client, "/v1/embed", body=json.dumps({"texts": texts}).encode())
        assert (status, answer["error"]["code"]) == (413, "too_large")


async def test_refusals_never_echo_a_text(client: Client) -> None:
    secret = "a very private sentence"
    _, answer = await post(
        client, "/v1/screen", body=json.dumps({"texts": [secret, 5], "direction": "visitor"}).encode()
    )
    assert "private" not in json.dumps(answer)


async def test_nothing_that_was_sent_is_logged(encoder: EncoderClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await encoder.screen(["a very private knife"], direction="visitor")
    assert "private" not in caplog.text


async def test_past_its_bound_the_process_answers_503(networks: Networks) -> None:
    async with TestClient(TestServer(build_app(networks, windows_max=3))) as client:
        body = json.dumps({"texts": ["a", "b", "c", "d"], "direction": "visitor"}).encode()
        status, answer = await post(client, "/v1/screen", body=body)
        assert (status, answer["error"]["code"]) == (503, "queue_full")
        encoder = EncoderClient(str(client.make_url("/")), client=client.session)
        with pytest.raises(EncoderUnavailable, match="503"):
            await encoder.screen(["a", "b", "c", "d"], direction="visitor")


async def test_a_deadline_that_cannot_be_met_is_a_timeout(client: Client) -> None:
    body = json.dumps({"texts": ["word " * 7000] * 8, "deadline_ms": 1}).encode()
    status, answer = await post(client, "/v1/embed", body=body)
    assert (status, answer["error"]["code"]) == (504, "deadline_passed")
    encoder = EncoderClient(str(client.make_url("/")), timeout_s=0.0001, client=client.session)
    with pytest.raises(EncoderTimeout):
        await encoder.screen(["a"], direction="visitor")


async def test_a_text_gets_the_same_answer_alone_and_in_company(encoder: EncoderClient) -> None:
    texts = [f"text number {number} " * (1 + number % 9) for number in range(24)]
    alone = [(await encoder.embed([text]))[0] for text in texts]
    together = await encoder.embed(texts)
    crowded = await asyncio.gather(*(encoder.embed(texts[at : at + 3]) for at in range(0, 24, 3)))
    assert list(together) == alone
    assert [vector for part in crowded for vector in part] == alone


async def test_an_unknown_path_is_404(client: Client) -> None:
    async with client.get("/v1/other") as response:
        assert response.status == 404


async def test_a_client_that_goes_away_leaves_the_process_well(client: Client, encoder: EncoderClient) -> None:
    with pytest.raises((TimeoutError, aiohttp.ClientError)):
        await client.session.post(
            client.make_url("/v1/embed"),
            json={"texts": ["word " * 7000] * 8},
            timeout=aiohttp.ClientTimeout(total=0.01),
        )
    assert (await encoder.screen(["a knife"], direction="visitor"))[0].level is Level.HIGH


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(body=json_values | st.fixed_dictionaries({"texts": json_values, "direction": json_values}))
def test_any_json_is_a_request_or_named_invalid(body: Any) -> None:
    with suppress(RequestInvalid):
        asked = parse_request(body, wants_direction=True)
        assert asked.texts
        assert asked.direction in ("visitor", "reply")
