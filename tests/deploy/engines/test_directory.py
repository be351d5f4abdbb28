"""`deploy.engines.directory` on a real Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from django.conf import settings

from chat.store import ENDPOINTS_KEY, ENGINE_READY_KEY, redis_sync
from deploy.engines.directory import READY_TTL_S, EndpointDirectory
from rubric import Dialect, Endpoint, EngineFeatures, TemplateNeeds
from tests.fakes.engine import closed_port

pytestmark = pytest.mark.redis

ENDPOINT = Endpoint(
    base_url="http://127.0.0.1:1",
    model="policy-a",
    driver="llamacpp",
    api_key="k",
    features=EngineFeatures(logprobs=True),
    dialect=Dialect(extras={"top_k": 0}, closes_connections=True),
    template=TemplateNeeds(merges_roles=True),
)


@pytest.fixture
async def directory(clean_redis: None) -> AsyncIterator[EndpointDirectory]:
    one = EndpointDirectory(settings.REDIS_URL)
    yield one
    await one.close()


async def test_what_is_written_is_read_back_whole(directory: EndpointDirectory) -> None:
    assert await directory.write({"policy-a": ENDPOINT}, is_ready=True)
    assert await directory.read() == {"policy-a": ENDPOINT}


async def test_a_version_that_left_is_gone_after_the_next_round(directory: EndpointDirectory) -> None:
    await directory.write({"policy-a": ENDPOINT, "policy-b": ENDPOINT}, is_ready=True)
    await directory.write({"policy-b": ENDPOINT}, is_ready=True)
    assert (await directory.read()).keys() == {"policy-b"}
    await directory.write({}, is_ready=False)
    assert await directory.read() == {}


async def test_ready_ends_by_itself_when_nobody_keeps_it(directory: EndpointDirectory) -> None:
    await directory.write({"policy-a": ENDPOINT}, is_ready=True)
    assert 0 < redis_sync().ttl(ENGINE_READY_KEY) <= READY_TTL_S
    await directory.write({"policy-a": ENDPOINT}, is_ready=False)
    assert not redis_sync().exists(ENGINE_READY_KEY)


async def test_closing_ends_ready_and_keeps_the_directory(directory: EndpointDirectory) -> None:
    await directory.write({"policy-a": ENDPOINT}, is_ready=True)
    await directory.close()
    assert not redis_sync().exists(ENGINE_READY_KEY)
    assert redis_sync().hlen(ENDPOINTS_KEY) == 1


async def test_unreadable_rows_are_left_out(directory: EndpointDirectory) -> None:
    await directory.write({"policy-a": ENDPOINT}, is_ready=True)
    redis_sync().hset(ENDPOINTS_KEY, "policy-odd", "{}")
    assert (await directory.read()).keys() == {"policy-a"}


async def test_redis_away_is_no_error() -> None:
    directory = EndpointDirectory(f"redis://127.0.0.1:{closed_port()}/0")
    assert not await directory.write({"policy-a": ENDPOINT}, is_ready=True)
    assert await directory.read() == {}
    await directory.close()
