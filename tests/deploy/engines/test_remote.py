"""`deploy.engines.remote`: what a server can do is found out by asking, whatever it is like."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from deploy.engines.driver import ServedVersion
from deploy.engines.errors import EngineStartFailed, VersionUnservable
from deploy.engines.remote import RemoteDriver
from rubric import EngineError, EngineFeatures, TemplateNeeds, open_client

OWN = ServedVersion(name="policy-remote", folder=None, kind="operator")


@dataclass
class Likeness:
    """What the server is like."""

    models: list[str] = field(default_factory=lambda: ["big-model"])
    has_logprobs: bool = True
    has_ids: bool = True
    has_schema: bool = True
    is_strict: bool = False  # refuses fields that it does not know, and roles out of turn
    status: int = 200
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)


@pytest.fixture
def likeness() -> Likeness:
    return Likeness()


@pytest.fixture
async def address(likeness: Likeness) -> AsyncIterator[str]:
    async def models(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": name} for name in likeness.models]})

    async def complete(request: web.Request) -> web.Response:
        body = await request.json()
        likeness.asked.append(body)
        likeness.keys.add(request.headers.get("Authorization", ""))
        roles = [message["role"] for message in body["messages"]]
        wanted = ["user", "assistant"] * 4
        if likeness.status != 200 or (likeness.is_strict and roles != wanted[: len(roles)]):
            return web.json_response({"error": {}}, status=likeness.status if likeness.status != 200 else 400)
        is_held = likeness.has_schema and "response_format" in body
        entry: dict[str, Any] = {"token": "The", "logprob": -0.1} | ({"id": 5} if likeness.has_ids else {})
        has_entries = likeness.has_logprobs and body.get("logprobs")
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": json.dumps({"is_blue": True}) if is_held else "The sea"},
            "logprobs": {"content": [entry]} if has_entries else None,
        }
        return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 1}})

    app = web.Application()
    app.router.add_get("/v1/models", models)
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_client() as opened:
        yield opened


def driver_at(address: str, client: aiohttp.ClientSession, *, model: str = "") -> RemoteDriver:
    return RemoteDriver(base_url=f"{address}/v1", model=model, api_key="k1", client=client)


async def test_a_full_server_keeps_every_feature_but_adapters(
    likeness: Likeness, address: str, client: aiohttp.ClientSession
) -> None:
    endpoint = await driver_at(address, client).ensure(OWN)
    assert (endpoint.base_url, endpoint.model, endpoint.api_key) == (address, "big-model", "k1")
    assert endpoint.features == EngineFeatures(logprobs=True, schema=True, token_ids=True)
    assert endpoint.features.missing == ("adapters", "priority", "prompt_logprobs")
    assert endpoint.template == TemplateNeeds()
    assert likeness.keys == {"Bearer k1"}


async def test_a_poor_server_loses_what_it_lacks(
    likeness: Likeness, address: str, client: aiohttp.ClientSession
) -> None:
    likeness.has_logprobs = likeness.has_schema = False
    endpoint = await driver_at(address, client).ensure(OWN)
    assert endpoint.features == EngineFeatures()
    assert "priority" not in json.dumps(likeness.asked)


async def test_a_server_without_token_ids_says_so(
    likeness: Likeness, address: str, client: aiohttp.ClientSession
) -> None:
    likeness.has_ids = False
    endpoint = await driver_at(address, client).ensure(OWN)
    assert (endpoint.features.logprobs, endpoint.features.token_ids) == (True, False)


async def test_a_strict_template_is_found_and_served(
    likeness: Likeness, address: str, client: aiohttp.ClientSession
) -> None:
    likeness.is_strict = True
    driver = driver_at(address, client)
    endpoint = await driver.ensure(OWN)
    assert endpoint.template == TemplateNeeds(folds_system=True, merges_roles=True, starts_with_user=True)
    assert (await driver.health(endpoint)).is_well


async def test_only_standard_fields_are_sent(likeness: Likeness, address: str, client: aiohttp.ClientSession) -> None:
    await driver_at(address, client).ensure(OWN)
    standard = {
        "model",
        "messages",
        "max_tokens",
        "temperature",
        "top_p",
        "logprobs",
        "top_logprobs",
        "response_format",
    }
    assert set().union(*likeness.asked) <= standard


async def test_the_server_is_asked_once(likeness: Likeness, address: str, client: aiohttp.ClientSession) -> None:
    driver = driver_at(address, client)
    await driver.ensure(OWN)
    asked = len(likeness.asked)
    await driver.ensure(OWN)
    assert len(likeness.asked) == asked
    await driver.renew(OWN)
    assert len(likeness.asked) > asked


async def test_several_models_need_a_choice(likeness: Likeness, address: str, client: aiohttp.ClientSession) -> None:
    likeness.models = ["a", "b"]
    with pytest.raises(EngineStartFailed, match="RAPPORT_ENGINE_MODEL"):
        await driver_at(address, client).ensure(OWN)
    assert (await driver_at(address, client, model="b").ensure(OWN)).model == "b"


@pytest.mark.parametrize("status", [401, 500])
async def test_a_server_that_answers_nothing_is_not_served(
    likeness: Likeness, address: str, client: aiohttp.ClientSession, status: int
) -> None:
    likeness.status = status
    with pytest.raises(EngineError):
        await driver_at(address, client).ensure(OWN)


async def test_trained_versions_are_refused(address: str, client: aiohttp.ClientSession) -> None:
    with pytest.raises(VersionUnservable):
        await driver_at(address, client).ensure(ServedVersion(name="policy-a", folder=Path("a"), kind="adapter"))
