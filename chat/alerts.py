"""Telling staff of alerts: the inbox page, e-mail, a webhook. Ids and a link, never a word of what people wrote.

An alert is a row that was raised in the transaction of its message. `notify_pending_alerts` (a task, every few seconds)
sends what is still unsent; a failed way is tried again with a growing pause, and after MAX_ATTEMPTS the alert stands on
the page alone. The row is claimed before anything is sent, so two workers do not both send it.
"""

import logging
import smtplib
from datetime import datetime, timedelta

import aiohttp
import orjson
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from chat.events import INBOX_GROUP
from chat.models import Alert

logger = logging.getLogger(__name__)
MAX_ATTEMPTS = 6
FIRST_PAUSE = timedelta(seconds=10)  # doubles with each attempt: the last one is about five minutes after the first
BATCH = 50
WEBHOOK_TIMEOUT_S = 5.0


class NotifyFailed(Exception):
    """A way did not take the alert; `way` is mail or webhook."""

    def __init__(self, way: str, *, reason: str) -> None:
        super().__init__(f"{way} did not take the alert: {reason}.")
        self.way = way


def notify_pending_alerts(*, now: datetime | None = None) -> int:
    """Send every alert whose time has come; returns how many were sent on all ways that are set up."""
    now = now or timezone.now()
    due = Alert.objects.filter(notified_at=None, notify_attempts__lt=MAX_ATTEMPTS).order_by("id")
    return sum(_notify_once(alert_id, now=now) for alert_id in list(due.values_list("pk", flat=True)[:BATCH]))


def alert_link(alert: Alert) -> str:
    """The transcript page of the alert's conversation, on our first own origin."""
    path = reverse("staff-transcript", args=[alert.conversation_id])
    origin = settings.RAPPORT_ORIGINS[0] if settings.RAPPORT_ORIGINS else ""
    return f"{origin}{path}"


def _notify_once(alert_id: int, *, now: datetime) -> bool:
    alert = _claim(alert_id, now=now)
    if alert is None:
        return False
    _tell_inbox(alert)
    try:
        _send_mail(alert)
        _call_webhook(alert)
    except NotifyFailed as error:
        logger.warning("alert not sent alert=%d attempt=%d way=%s", alert.pk, alert.notify_attempts, error.way)
        return False
    Alert.objects.filter(pk=alert.pk).update(notified_at=timezone.now())
    return True


def _claim(alert_id: int, *, now: datetime) -> Alert | None:
    """Count the attempt before it is made; None where it is too early or somebody else was first."""
    with transaction.atomic():
        alert = Alert.objects.select_for_update().filter(pk=alert_id, notified_at=None).first()
        if alert is None or now < alert.raised_at + _pause_after(alert.notify_attempts):
            return None
        alert.notify_attempts += 1
        alert.save(update_fields=["notify_attempts"])
    return alert


def _pause_after(attempts: int) -> timedelta:
    """How long after the alert was raised the next attempt is due: at once, then 10 s, 30 s, 70 s, 150 s, 310 s."""
    return FIRST_PAUSE * float(2**attempts - 1)


def _tell_inbox(alert: Alert) -> None:
    """A hint to open staff pages; the page loads the alert itself."""
    event = {"type": "alert.raised", "id": alert.pk, "kind": alert.kind, "conversation": str(alert.conversation_id)}
    message = {"type": "topic.event", "topic": "inbox", "event": orjson.dumps(event).decode()}
    try:
        async_to_sync(get_channel_layer().group_send)(INBOX_GROUP, message)
    except Exception as error:
        logger.warning("inbox not told alert=%d error=%s", alert.pk, type(error).__name__)


def _send_mail(alert: Alert) -> None:
    if not settings.RAPPORT_STAFF_EMAIL:
        return
    text = (
        f"Alert {alert.pk}: {alert.get_kind_display()}.\n"
        f"Conversation {alert.conversation_id}, raised {alert.raised_at.isoformat(timespec='seconds')}.\n\n"
        f"{alert_link(alert)}\n"
    )
    try:
        send_mail(f"Rapport alert: {alert.get_kind_display()}", text, None, [settings.RAPPORT_STAFF_EMAIL])
    except (OSError, smtplib.SMTPException) as error:
        raise NotifyFailed("mail", reason=type(error).__name__) from error


def _call_webhook(alert: Alert) -> None:
    if not settings.RAPPORT_STAFF_WEBHOOK:
        return
    content: dict[str, str | int] = {
        "alert": alert.pk,
        "kind": alert.kind,
        "conversation": str(alert.conversation_id),
        "raised_at": alert.raised_at.isoformat(),
        "link": alert_link(alert),
    }
    try:
        status = async_to_sync(_post)(settings.RAPPORT_STAFF_WEBHOOK, content)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise NotifyFailed("webhook", reason=type(error).__name__) from error
    if not 200 <= status < 300:
        raise NotifyFailed("webhook", reason=f"status {status}")


async def _post(url: str, content: dict[str, str | int]) -> int:
    timeout = aiohttp.ClientTimeout(total=WEBHOOK_TIMEOUT_S)
    async with (
        aiohttp.ClientSession(timeout=timeout) as client,
        client.post(url, json=content, allow_redirects=False) as answer,
    ):
        return answer.status
