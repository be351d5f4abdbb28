"""Thumbs on replies: append-only, the newest holds, and no regeneration takes one away (A8)."""

from uuid import UUID

from django.db import transaction

from chat.events import publish_message
from chat.models import Conversation, Feedback
from chat.models.conversations import MessageKind
from chat.protocol import ErrorCode, MessageView
from chat.services.errors import VerbRefused
from chat.services.views import message_view


def set_feedback(
    conversation_id: UUID, message_id: UUID, *, visitor_id: UUID, value: int, reasons: tuple[str, ...], comment: str
) -> MessageView:
    """Append a visitor's thumb on a finished reply; the same thumb again adds nothing. Raises VerbRefused."""
    with transaction.atomic():
        conversation = Conversation.objects.select_for_update().get(pk=conversation_id)
        message = conversation.messages.filter(pk=message_id, kind=MessageKind.REPLY, is_shown=True).first()
        if message is None:
            raise VerbRefused(ErrorCode.NOT_FOUND)
        if message.is_unfinished:
            raise VerbRefused(ErrorCode.BUSY)
        newest = Feedback.objects.filter(message=message).order_by("-id").first()
        said = (value, list(reasons), comment)
        if newest is None or (newest.value, newest.reasons, newest.comment) != said:
            Feedback.objects.create(
                message=message, visitor_id=visitor_id, value=value, reasons=list(reasons), comment=comment
            )
            message.changed_seq = conversation.take_seq()
            message.save(update_fields=["changed_seq"])
            conversation.save(update_fields=["last_seq"])
        view = message_view(message)
        publish_message(conversation_id, view)
    return view
