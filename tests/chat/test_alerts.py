"""Alerts reach staff on every way that is set up, once, with ids and a link and no word of what was written."""

import asyncio
import json
import smtplib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.core import mail
from django.utils import timezone

from chat import alerts
from chat.alerts import MAX_ATTEMPTS, alert_link, notify_pending_alerts
from chat.models import Alert
from tests.factories import make_conversation, make_message

pytestmark = pytest.mark.redis


def raise_alert(text: str = "WORDS of a visitor") -> Alert:
    conversation = make_conversation()
    return Alert.objects.create(kind="crisis", conversation=conversation, message=make_message(conversation, text))


@pytest.mark.django_db
def test_mail_holds_ids_and_a_link_and_no_words(settings: Any) -> None:
    settings.RAPPORT_STAFF_EMAIL = "staff@example.org"
    alert = raise_alert()
    assert notify_pending_alerts() == 1
    (letter,) = mail.outbox
    assert letter.to == ["staff@example.org"]
    assert alert_link(alert) == f"http://testserver/staff/conversations/{alert.conversation_id}/"
    assert alert_link(alert) in letter.body
    assert "WORDS" not in f"{letter.subject}{letter.body}"
    alert.refresh_from_db()
    assert alert.notified_at is not None


@pytest.mark.django_db
def test_an_alert_is_sent_once(settings: Any) -> None:
    settings.RAPPORT_STAFF_EMAIL = "staff@example.org"
    raise_alert()
    assert [notify_pending_alerts(), notify_pending_alerts()] == [1, 0]
    assert len(mail.outbox) == 1


@pytest.mark.django_db
def test_failing_way_is_tried_again_with_growing_pauses_and_then_given_up(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RAPPORT_STAFF_EMAIL = "staff@example.org"
    tried: list[int] = []

    def fail(*_: object, **__: object) -> None:
        tried.append(1)
        raise smtplib.SMTPServerDisconnected

    monkeypatch.setattr(alerts, "send_mail", fail)
    alert = raise_alert()
    now = alert.raised_at
    assert notify_pending_alerts(now=now) == 0
    assert notify_pending_alerts(now=now + timedelta(seconds=9)) == 0
    assert len(tried) == 1
    for seconds in range(10, 2_000, 10):
        notify_pending_alerts(now=now + timedelta(seconds=seconds))
    assert len(tried) == MAX_ATTEMPTS
    alert.refresh_from_db()
    assert (alert.notified_at, alert.notify_attempts) == (None, MAX_ATTEMPTS)


@pytest.mark.django_db
def test_a_way_that_comes_back_gets_the_alert(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.RAPPORT_STAFF_EMAIL = "staff@example.org"
    alert = raise_alert()
    with monkeypatch.context() as broken:
        broken.setattr(alerts, "send_mail", _raise_os_error)
        assert notify_pending_alerts() == 0
    assert notify_pending_alerts(now=timezone.now() + timedelta(seconds=11)) == 1
    alert.refresh_from_db()
    assert alert.notify_attempts == 2


def _raise_os_error(*_: object, **__: object) -> None:
    raise ConnectionRefusedError


class Hook:
    """A staff webhook that answers as it is told."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.got: list[dict[str, Any]] = []
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        self.got.append(await request.json())
        return web.Response(status=self.statuses.pop(0) if self.statuses else 204)


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    hook = Hook()
    app = web.Application()
    app.router.add_post("/hook", hook.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    hook.url = f"{site.name.rstrip('/')}/hook"
    yield hook
    await runner.cleanup()


async def test_webhook_gets_ids_and_a_link_and_is_tried_again(
    transactional_db: None, hook: Hook, settings: Any
) -> None:
    settings.RAPPORT_STAFF_WEBHOOK = hook.url
    hook.statuses = [500, 302]
    alert = await sync_to_async(raise_alert)()
    for seconds, sent in ((0, 0), (11, 0), (31, 1)):
        now = alert.raised_at + timedelta(seconds=seconds)
        assert await sync_to_async(notify_pending_alerts)(now=now) == sent
    assert len(hook.got) == 3
    assert hook.got[-1] == {
        "alert": alert.pk,
        "kind": "crisis",
        "conversation": str(alert.conversation_id),
        "raised_at": alert.raised_at.isoformat(),
        "link": alert_link(alert),
    }
    assert "WORDS" not in json.dumps(hook.got)


async def test_open_inbox_pages_are_told_at_once(transactional_db: None) -> None:
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add("inbox", channel)
    alert = await sync_to_async(raise_alert)()
    await sync_to_async(notify_pending_alerts)()
    message = await asyncio.wait_for(layer.receive(channel), timeout=5)
    assert message["topic"] == "inbox"
    assert json.loads(message["event"]) == {
        "type": "alert.raised",
        "id": alert.pk,
        "kind": "crisis",
        "conversation": str(alert.conversation_id),
    }
    await layer.group_discard("inbox", channel)
