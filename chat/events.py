"""Telling pages what changed, after the commit that changed it.

Verbs call `publish_message` inside their transaction. In a web process the running `live.Hub` carries the event to its
own sockets and to the channel layer; elsewhere (tasks, commands) it goes to the channel layer alone. An event that is
lost here is not lost to anybody: a page asks for the changes after the seq that it knows.
"""

import logging
from collections.abc import Callable
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer

from chat.models import Message
from chat.models.conversations import MessageKind
from chat.protocol import Handover, MessageChanged, MessageView, ServerEvent, encode
from chat.services.database import after_commit
from chat.services.views import message_view

logger = logging.getLogger(__name__)
INBOX_GROUP = "inbox"
ERASED_FRAME = '{"type":"conversation.erased"}'
Publisher = Callable[[UUID, str, bool], None]
_publisher: list[Publisher] = []


def conversation_group(conversation_id: UUID) -> str:
    """Name of the channel-layer group of a conversation's events."""
    return f"conversation.{conversation_id.hex}"


def use_publisher(publisher: Publisher | None) -> None:
    """The web process's hub registers itself here (thread-safe callable), and takes itself out with None."""
    _publisher[:] = [publisher] if publisher else []


def layer_message(
    conversation_id: UUID, frame: str, *, origin: str = "", is_for_visitor: bool = True
) -> dict[str, object]:
    """What travels in a group: the encoded event, the process it came from, and whether visitors may see it."""
    return {
        "type": "conversation.event",
        "conversation": str(conversation_id),
        "event": frame,
        "origin": origin,
        "is_for_visitor": is_for_visitor,
    }


def lost_message(conversation_id: UUID, *, origin: str) -> dict[str, object]:
    """What travels in a group once an event of it could not be sent: whoever follows asks for the changes."""
    return {"type": "conversation.lost", "conversation": str(conversation_id), "origin": origin}


def publish(conversation_id: UUID, frame: str, *, is_for_visitor: bool = True) -> None:
    """Send an encoded event to everybody who follows the conversation, now. Never raises."""
    if _publisher:
        _publisher[0](conversation_id, frame, is_for_visitor)
        return
    layer = get_channel_layer()
    try:
        async_to_sync(layer.group_send)(
            conversation_group(conversation_id), layer_message(conversation_id, frame, is_for_visitor=is_for_visitor)
        )
    except Exception as error:
        logger.warning("event not published conversation=%s error=%s", conversation_id, type(error).__name__)


def publish_event(conversation_id: UUID, event: ServerEvent, *, is_for_visitor: bool = True) -> None:
    """Send an event after the commit of the running transaction (at once where there is none)."""
    after_commit(publish, conversation_id, encode(event), is_for_visitor=is_for_visitor)


def publish_message(conversation_id: UUID, view: MessageView) -> None:
    """Tell followers after the commit that a message is new or changed; notes stay with staff."""
    publish_event(conversation_id, MessageChanged(message=view), is_for_visitor=view.kind != MessageKind.NOTE)


def publish_change(conversation_id: UUID, message_id: UUID) -> None:
    """The same by id, for doors that hold no view."""
    message = Message.objects.select_related("author").get(pk=message_id)
    publish_message(conversation_id, message_view(message))


def publish_handover(conversation_id: UUID, *, control: str, assignee: str | None) -> None:
    """Tell followers who answers now."""
    publish_event(conversation_id, Handover(control=control, assignee=assignee))


def publish_erased(conversation_id: UUID) -> None:
    """Have every socket that follows the conversation closed, in every process; staff are told."""
    after_commit(publish, conversation_id, ERASED_FRAME)


def publish_graded(conversation_id: UUID, visitor_message_id: UUID) -> None:
    """Tell staff that a turn has its rubric and score."""
    frame = f'{{"type":"turn.graded","message_id":"{visitor_message_id}"}}'
    after_commit(publish, conversation_id, frame, is_for_visitor=False)
