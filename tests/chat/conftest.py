"""A conversation that can be talked in: real database and Redis, programmable engine and encoder, a fresh hub."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from pytest_django import Settings

from chat import live, policies, screening
from chat.live import stop_hub_here
from chat.models import Conversation, PolicyVersion, Visitor
from chat.services.visitors import token_for
from chat.store import ENDPOINTS_KEY, close_redis_here, redis_here, redis_sync
from deploy.celery import app as celery_app
from deploy.local.services import PrivateRedis
from tests.factories import make_conversation, make_site, make_version, make_visitor
from tests.fakes.encoder import FakeEncoder
from tests.fakes.engine import FakeEngine, Script
from tests.fakes.socket import SocketClient
from tests.fakes.web import WebProcess

celery_app.set_default()  # as in a web process: a finished reply asks the real broker for its grade


@dataclass
class Room:
    """A visitor's open conversation with everything around it."""

    conversation: Conversation
    visitor: Visitor
    token: str
    policy: PolicyVersion
    engine: FakeEngine
    encoder: FakeEncoder

    def page(self, **options: object) -> SocketClient:
        return SocketClient(self.token, **options)  # type: ignore[arg-type]


def new_conversation(visitor: Visitor | None = None) -> tuple[Conversation, str]:
    conversation = make_conversation(visitor or make_visitor(make_site()))
    expires_at = timezone.now() + timedelta(hours=1)
    return conversation, token_for(conversation, visitor=conversation.visitor, expires_at=expires_at)


@pytest.fixture
async def room(transactional_db: None, clean_redis: None, settings: Settings) -> AsyncIterator[Room]:
    policies.directory._rows.clear()
    async with (
        FakeEngine(Script(tokens=("I ", "hear ", "you. ", "That ", "is ", "hard."))) as engine,
        FakeEncoder(visitor={"END IT": "high", "no point": "watch"}, reply={"HARM": "high"}) as encoder,
    ):
        settings.RAPPORT_ENCODER_URL = encoder.url
        policy = await sync_to_async(make_version)()
        conversation, token = await sync_to_async(new_conversation)()
        await redis_here().hset(ENDPOINTS_KEY, policy.name, engine.endpoint(slots=2).to_json())
        yield Room(conversation, conversation.visitor, token, policy, engine, encoder)
        await stop_hub_here()
        await policies.close_client_here()
        await screening.encoder().aclose()
        await close_redis_here()


@pytest.fixture
def own_redis(settings: Settings) -> Iterator[PrivateRedis]:
    """A Redis that a test may kill; requested before `room`."""
    server = PrivateRedis()
    server.start()
    settings.REDIS_URL = server.url
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "chat.pubsub.PubSubLayer", "CONFIG": {"hosts": [server.url]}}}
    redis_sync.cache_clear()
    yield server
    redis_sync.cache_clear()
    server.remove()


@pytest.fixture
async def here(room: Room) -> AsyncIterator[WebProcess]:
    """Process A, which the room's pages reach; the room stops it."""
    process = WebProcess()
    await process.hub.start()
    process.serve_this_loop()
    yield process
    if not process._is_dead:
        return
    live._hubs.pop(asyncio.get_running_loop(), None)


@pytest.fixture
async def elsewhere(here: WebProcess) -> AsyncIterator[WebProcess]:
    """Process B."""
    async with WebProcess() as process:
        here.serve_this_loop()
        yield process
