"""What staff do in a conversation: write to the visitor, leave a note, take note of an alert, look behind redaction."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from chat.events import publish_change
from chat.models import Alert, Conversation, Message, User
from chat.models.audit import record
from chat.models.conversations import ConversationState, MessageKind
from chat.protocol import ErrorCode, clean_text
from chat.services.errors import VerbRefused
from chat.services.texts import sha256_of


class ClientIdTaken(Exception):
    """Somebody else's message in this conversation has this `client_id`."""


def post_staff_message(conversation_id: UUID, *, user: User, client_id: str, text: str) -> Message:
    """Store what a member of staff says to the visitor; sending the same `client_id` again gives the same message.

    Raises ProtocolError (text), VerbRefused (closed), ClientIdTaken. Does not take the conversation over.
    """
    return _post(conversation_id, user=user, client_id=client_id, text=text, kind=MessageKind.STAFF)


def post_note(conversation_id: UUID, *, user: User, client_id: str, text: str) -> Message:
    """Store a note that only staff see. Raises as `post_staff_message`; a closed conversation may get notes."""
    return _post(conversation_id, user=user, client_id=client_id, text=text, kind=MessageKind.NOTE)


def _post(conversation_id: UUID, *, user: User, client_id: str, text: str, kind: MessageKind) -> Message:
    cleaned = clean_text(text)
    with transaction.atomic():
        conversation = Conversation.objects.select_for_update().get(pk=conversation_id)
        earlier = Message.objects.filter(conversation=conversation, client_id=client_id).first()
        if earlier is not None:
            if earlier.author_id != user.pk or earlier.kind != kind:
                raise ClientIdTaken
            return earlier
        if conversation.state == ConversationState.CLOSED and kind == MessageKind.STAFF:
            raise VerbRefused(ErrorCode.CLOSED)
        seq = conversation.take_seq()
        message = Message.objects.create(
            conversation=conversation,
            seq=seq,
            changed_seq=seq,
            kind=kind,
            text=cleaned,
            sha256=sha256_of(cleaned),
            client_id=client_id,
            author=user,
        )
        conversation.last_activity_at = timezone.now()
        conversation.save(update_fields=["last_seq", "last_activity_at"])
        record(f"{kind.value}.post", f"conversation {conversation_id}", actor=user, facts={"message": str(message.pk)})
        publish_change(conversation_id, message.pk)
    return message


def acknowledge_alert(alert_id: int, *, user: User) -> Alert:
    """Note who looks after the alert; the first one stays. Raises Alert.DoesNotExist."""
    with transaction.atomic():
        alert = Alert.objects.select_for_update(of=("self",)).select_related("acknowledged_by").get(pk=alert_id)
        if alert.acknowledged_at is None:
            alert.acknowledged_at = timezone.now()
            alert.acknowledged_by = user
            alert.save(update_fields=["acknowledged_at", "acknowledged_by"])
            record("alert.acknowledge", f"alert {alert_id}", actor=user, facts={"kind": alert.kind})
    return alert


def record_reveal(conversation_id: UUID, *, user: User) -> None:
    """Write down that somebody looks at the unredacted text; called before it is shown."""
    record(
        "conversation.reveal", f"conversation {conversation_id}", actor=user, facts={"role": user.role or "superuser"}
    )
