"""Rows as the wire shows them: a handful of queries for a page of messages, never one per row."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db.models import Count

from chat.helplines import resources_for
from chat.models import Conversation, Feedback, Message
from chat.models.conversations import MessageKind
from chat.models.statements import Select
from chat.protocol import MAX_CHANGES, ConversationView, MessageView
from chat.services.consent import has_consent


def _sibling_counts(parents: Iterable[object]) -> dict[object, int]:
    rows = (
        Message.objects.filter(parent_id__in=set(parents), kind=MessageKind.REPLY, is_shown=True)
        .values("parent_id")
        .annotate(count=Count("id"))
        .values_list("parent_id", "count")
    )
    return dict(rows)


def _newest_feedback(message_ids: Iterable[object]) -> dict[object, int]:
    rows = Feedback.objects.filter(message_id__in=list(message_ids)).order_by("id").values_list("message_id", "value")
    return dict(rows)  # later rows replace earlier ones: the newest holds


_siblings: Select[tuple[UUID]] = Select(
    lambda parent: (
        Message.objects.filter(parent_id=parent, kind=MessageKind.REPLY, is_shown=True).order_by().values_list("pk")
    ),
    parent=UUID,
)
_thumb: Select[tuple[int]] = Select(
    lambda message: Feedback.objects.filter(message_id=message).order_by("-id").values_list("value")[:1],
    message=UUID,
)


def message_views(messages: Sequence[Message]) -> tuple[MessageView, ...]:
    """The messages as a page sees them, in the order given. Three queries at most, however many there are."""
    replies = [message for message in messages if message.kind == MessageKind.REPLY]
    siblings = _sibling_counts(message.parent_id for message in replies) if replies else {}
    thumbs = _newest_feedback(message.pk for message in replies) if replies else {}
    return tuple(
        _view(message, siblings=siblings.get(message.parent_id, 1), thumb=thumbs.get(message.pk, 0))
        for message in messages
    )


def message_view(message: Message) -> MessageView:
    """One message as a page sees it."""
    if message.kind != MessageKind.REPLY or message.parent_id is None:
        return _view(message, siblings=1, thumb=0)
    newest = _thumb.first(message=message.pk)
    siblings = len(_siblings.all(parent=message.parent_id))
    return _view(message, siblings=siblings or 1, thumb=newest[0] if newest else 0)


def fresh_view(message: Message) -> MessageView:
    """A message that was written just now: it has no siblings and no thumb."""
    return _view(message, siblings=1, thumb=0)


def _view(message: Message, *, siblings: int, thumb: int) -> MessageView:
    return MessageView(
        id=message.pk,
        seq=message.seq,
        changed_seq=message.changed_seq,
        kind=message.kind,
        status=message.status,
        text="" if message.is_unfinished else message.text,
        parent=message.parent_id,
        sibling_index=message.sibling_index,
        sibling_count=siblings,
        selected=message.is_selected,
        created_at=message.created_at.isoformat(),
        client_id=message.client_id,
        code=message.failure_code or None,
        retryable=message.is_retryable,
        feedback=thumb,
        author=message.author.shown_name if message.author else None,
    )


def conversation_view(conversation: Conversation) -> ConversationView:
    """What a page needs to know of the conversation itself."""
    site = conversation.site
    return ConversationView(
        id=conversation.pk,
        state=conversation.state,
        control=conversation.control,
        last_seq=conversation.last_seq,
        site=site.slug,
        consent=has_consent(conversation.visitor),
        policy=conversation.policy.name if conversation.policy else "",
        card=conversation.card_level,
        resources=resources_for(site, country=site.country, locale=conversation.visitor.locale),
    )


def changes_after(conversation: Conversation, *, last_seq: int, limit: int = MAX_CHANGES) -> tuple[MessageView, ...]:
    """Every message that changed after `last_seq` and that a visitor may see, in order of change.

    A page that is further behind than `limit` changes asks again with the newest seq that it got.
    """
    rows = (
        conversation.messages.shown_to_visitor()
        .filter(changed_seq__gt=last_seq)
        .select_related("author")
        .order_by("changed_seq")[:limit]
    )
    return message_views(list(rows))
