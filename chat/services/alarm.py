"""Raising an alert: the row in the transaction of what it is about, the call to staff right after the commit."""

from collections.abc import Callable
from uuid import UUID

from chat.models import Alert, Message
from chat.models.safety import AlertKind
from chat.services.database import after_commit

AfterAlert = Callable[[], None]
_after_alert: list[AfterAlert] = []


def call_after_alert(hook: AfterAlert) -> None:
    """Register what happens after an alert was committed (`tasks` registers the notification)."""
    _after_alert.append(hook)


def raise_alert(kind: AlertKind, *, conversation_id: UUID, message: Message) -> Alert:
    """Store an alert and have staff told at once; what the broker loses, the ten-second task finds."""
    alert = Alert.objects.create(kind=kind, conversation_id=conversation_id, message=message)
    for hook in _after_alert:
        after_commit(hook)
    return alert
