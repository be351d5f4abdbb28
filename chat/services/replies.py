"""Who runs a reply: claims with a fence, siblings, and which of them is selected (rules 3 and 5).

A claim is a row: the message (`running`) with its `Generation` (owner, fence, heartbeat); `endings` ends it.
"""

import secrets
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from chat import policies
from chat.events import publish_message
from chat.models import Conversation, Generation, Message
from chat.models.conversations import (
    Control,
    ConversationState,
    MessageKind,
    MessageOrigin,
    MessageStatus,
)
from chat.models.statements import Select, insert, update
from chat.protocol import ErrorCode, MessageView
from chat.services.errors import VerbRefused
from chat.services.views import fresh_view, message_view


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyClaim:
    """A reply that this process has to run."""

    message_id: UUID
    conversation_id: UUID
    visitor_id: UUID
    site_id: int
    parent_id: UUID
    fence: UUID
    seed: int
    policy: str
    policy_config: dict[str, object]
    context_to_seq: int
    view: MessageView
    refusal: str = ""
    moved_to: str = ""  # the version that the conversation moved to just now


# What a turn changes of its conversation; nothing else of the row is written.
TURN_FIELDS = (
    *("last_seq", "visitor_turns", "watch_until_turn", "has_language_card", "card_level", "last_activity_at"),
    *("policy", "policy_since", "assignment_probability"),
)
_locked: Select[Conversation] = Select(
    lambda conversation: Conversation.objects.select_for_update().filter(pk=conversation), conversation=UUID
)
_unfinished_of: Select[tuple[UUID]] = Select(
    lambda visitor: (
        Message.objects.filter(conversation__visitor_id=visitor).unfinished().order_by().values_list("conversation_id")
    ),
    visitor=UUID,
)
_waiting: Select[Message] = Select(
    lambda conversation, after: (
        Message.objects.filter(conversation_id=conversation, kind=MessageKind.VISITOR, seq__gt=after)
        .exclude(answers__kind=MessageKind.SAFETY)
        .order_by("-seq")[:1]
    ),
    conversation=UUID,
    after=int,
)
_answered_to: Select[tuple[int]] = Select(
    lambda conversation: (
        Generation.objects.filter(message__conversation_id=conversation)
        .order_by("-context_to_seq")
        .values_list("context_to_seq")[:1]
    ),
    conversation=UUID,
)


def lock_conversation(conversation_id: UUID) -> Conversation:
    """The row, locked until the transaction ends. Raises Conversation.DoesNotExist."""
    conversation = _locked.first(conversation=conversation_id)
    if conversation is None:
        raise Conversation.DoesNotExist
    return conversation


def claim_next(
    conversation: Conversation, *, owner: str, newest: Message | None = None, after: int = 0
) -> ReplyClaim | None:
    """Claim the reply to everything unanswered; None where one is running or nothing waits.

    The caller holds the conversation's lock inside a transaction and writes its TURN_FIELDS afterwards. `newest` is
    the visitor's message where it was stored just now: nothing is newer, and nobody has answered it. Everything up to
    the seq `after` is known to be answered.
    """
    if conversation.control != Control.MODEL or conversation.state == ConversationState.CLOSED:
        return None
    newest = newest or _newest_waiting(conversation, after=after)
    if newest is None:
        return None
    running = [where for (where,) in _unfinished_of.all(visitor=conversation.visitor_id)]
    if conversation.pk in running:
        return None
    return _claim(conversation, newest, owner=owner, origin=MessageOrigin.SERVED, sibling_index=0, running=len(running))


def _newest_waiting(conversation: Conversation, *, after: int) -> Message | None:
    """The visitor's newest message that no reply has read; mostly there is none after the reply that just ended."""
    newest = _waiting.first(conversation=conversation.pk, after=after)
    answered = _answered_to.first(conversation=conversation.pk) if newest is not None else None
    return None if newest is None or (answered is not None and answered[0] >= newest.seq) else newest


def _claim(
    conversation: Conversation,
    parent: Message,
    *,
    owner: str,
    origin: MessageOrigin,
    sibling_index: int,
    running: int,
) -> ReplyClaim:
    """`running`: how many replies of this visitor run already."""
    now = timezone.now()
    moved_to = policies.settle_version(conversation, now=now)
    refusal = "" if running < settings.RAPPORT_REPLIES_PER_VISITOR else "busy"
    seq = conversation.take_seq()
    message = insert(
        Message(
            conversation=conversation,
            seq=seq,
            changed_seq=seq,
            kind=MessageKind.REPLY,
            parent=parent,
            sibling_index=sibling_index,
            origin=origin,
            status=MessageStatus.RUNNING,
            is_excluded=parent.is_excluded,
        )
    )
    generation = insert(
        Generation(
            message=message,
            policy=conversation.policy,
            context_to_seq=parent.seq,
            mode=conversation.mode,
            seed=secrets.randbelow(2**31),
            owner=owner,
            heartbeat_at=now,
        )
    )
    policy = conversation.policy
    view = fresh_view(message) if sibling_index == 0 else message_view(message)
    publish_message(conversation.pk, view)
    return ReplyClaim(
        message_id=message.pk,
        conversation_id=conversation.pk,
        visitor_id=conversation.visitor_id,
        site_id=conversation.site_id,
        parent_id=parent.pk,
        fence=generation.fence,
        seed=generation.seed or 0,
        policy=policy.name if policy else "",
        policy_config=policy.config if policy else {},
        context_to_seq=parent.seq,
        view=view,
        refusal=refusal,
        moved_to=moved_to,
    )


def regenerate(conversation_id: UUID, message_id: UUID, *, owner: str) -> ReplyClaim:
    """Claim a sibling of a reply; earlier siblings stay, unselected (A8). Raises VerbRefused."""
    with transaction.atomic():
        conversation = lock_conversation(conversation_id)
        reply = _own_reply(conversation, message_id)
        if conversation.state == ConversationState.CLOSED:
            raise VerbRefused(ErrorCode.CLOSED)
        running = [where for (where,) in _unfinished_of.all(visitor=conversation.visitor_id)]
        if conversation.pk in running or conversation.control != Control.MODEL:
            raise VerbRefused(ErrorCode.BUSY)
        siblings = conversation.messages.filter(parent=reply.parent, kind=MessageKind.REPLY)
        index = (siblings.aggregate(newest=Max("sibling_index"))["newest"] or 0) + 1
        for sibling in siblings.filter(is_selected=True):
            _change(conversation, sibling, is_selected=False)
        parent = reply.parent
        if parent is None:
            raise VerbRefused(ErrorCode.NOT_FOUND)
        claim = _claim(
            conversation,
            parent,
            owner=owner,
            origin=MessageOrigin.REGENERATED,
            sibling_index=index,
            running=len(running),
        )
        conversation.last_activity_at = timezone.now()
        update(conversation, *TURN_FIELDS)
    return claim


def select_reply(conversation_id: UUID, message_id: UUID) -> MessageView:
    """Make this sibling the shown one, used in later context. Raises VerbRefused."""
    with transaction.atomic():
        conversation = Conversation.objects.select_for_update().get(pk=conversation_id)
        reply = _own_reply(conversation, message_id)
        if reply.is_unfinished:
            raise VerbRefused(ErrorCode.BUSY)
        siblings = conversation.messages.filter(parent=reply.parent, kind=MessageKind.REPLY, is_selected=True)
        for sibling in siblings.exclude(pk=reply.pk):
            _change(conversation, sibling, is_selected=False)
        _change(conversation, reply, is_selected=True)
        conversation.save()
        return message_view(reply)


def _own_reply(conversation: Conversation, message_id: UUID) -> Message:
    reply = conversation.messages.filter(pk=message_id, kind=MessageKind.REPLY, is_shown=True).first()
    if reply is None:
        raise VerbRefused(ErrorCode.NOT_FOUND)
    return reply


def _change(conversation: Conversation, message: Message, *, is_selected: bool) -> None:
    message.is_selected = is_selected
    message.changed_seq = conversation.take_seq()
    message.save(update_fields=["is_selected", "changed_seq"])
    publish_message(conversation.pk, message_view(message))
