"""A visitor's message, its verdict and what it sets off: one transaction (rules 4, 7 and 3).

The screen has read the text before this is called, so no message is ever stored without its verdict, and a message,
its verdict and the claim of the reply appear together or not at all.
"""

from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from chat import safety
from chat.events import publish_message
from chat.models import Conversation, Message, SafetyVerdict
from chat.models.conversations import Control, ConversationState, MessageKind
from chat.models.safety import AlertKind, Direction
from chat.models.statements import Select, insert, update
from chat.protocol import ErrorCode, MessageView, SendMessage
from chat.services.alarm import raise_alert
from chat.services.errors import VerbRefused
from chat.services.replies import TURN_FIELDS, ReplyClaim, claim_next, lock_conversation
from chat.services.texts import sha256_of
from chat.services.views import message_view
from rubric import MESSAGES_WATCHED_AFTER_HIGH, Level


@dataclass(frozen=True, kw_only=True, slots=True)
class Posted:
    """What became of a message; `claim` is the reply that this process now has to run."""

    view: MessageView
    is_new: bool
    level: str = "none"
    card: str = "none"
    safety_view: MessageView | None = None
    claim: ReplyClaim | None = None
    alert_kind: str | None = None


RECENT_TEXTS = 3
_newest_texts: Select[tuple[UUID, str]] = Select(
    lambda conversation: (
        Message.objects.filter(conversation_id=conversation, kind=MessageKind.VISITOR)
        .order_by("-seq")
        .values_list("pk", "text")[:RECENT_TEXTS]
    ),
    conversation=UUID,
)
_own_levels: Select[tuple[UUID]] = Select(
    lambda conversation: SafetyVerdict.objects.filter(
        message__conversation_id=conversation, message__kind=MessageKind.VISITOR, own_level=Level.HIGH
    ).values_list("message_id"),
    conversation=UUID,
)
_sent: Select[Message] = Select(
    lambda conversation, client: Message.objects.filter(conversation_id=conversation, client_id=client).order_by()[:1],
    conversation=UUID,
    client=str,
)


def recent_visitor_texts(conversation_id: UUID) -> tuple[str, ...]:
    """The visitor's newest messages, oldest first: the screen reads them joined with the next one.

    Only those after the last one that was high by itself: it had its card, its alert and its watched turns, and read
    again it would silence the chat for every message that follows.
    """
    newest = _newest_texts.all(conversation=conversation_id)
    high = {message for (message,) in _own_levels.all(conversation=conversation_id)} if newest else set()
    texts: list[str] = []
    for message, text in newest:
        if message in high:
            break
        texts.append(text)
    return tuple(reversed(texts))


def find_sent(conversation_id: UUID, client_id: str) -> Posted | None:
    """The message that was already stored under this `client_id`: sending again gives the identical answer."""
    found = _sent.first(conversation=conversation_id, client=client_id)
    return Posted(view=message_view(found), is_new=False) if found else None


def post_message(
    conversation_id: UUID, event: SendMessage, *, reading: safety.Reading, owner: str, safety_text: str
) -> Posted:
    """Store a visitor's message with its verdict and claim the reply. Raises VerbRefused (closed).

    `owner` names the process that will run the reply. Where a reply is already running the claim is None: whoever
    runs it answers this message next.
    """
    with transaction.atomic():
        conversation = lock_conversation(conversation_id)
        if earlier := find_sent(conversation_id, event.client_id):
            return earlier
        if conversation.state == ConversationState.CLOSED:
            raise VerbRefused(ErrorCode.CLOSED)
        decision = _decide(conversation, reading)
        message = _store(conversation, event, decision)
        view = message_view(message)
        publish_message(conversation_id, view)
        safety_message = None
        if not decision.calls_model:
            safety_message = _store_safety_message(conversation, message, text=safety_text)
        alert_kind = _raise_alert(conversation, message, decision)
        claim = None
        if decision.calls_model and conversation.control == Control.MODEL:
            claim = claim_next(conversation, owner=owner, newest=message)
        conversation.last_activity_at = timezone.now()
        update(conversation, *TURN_FIELDS)
        posted = Posted(
            view=view,
            is_new=True,
            level=decision.level,
            card=decision.card,
            safety_view=message_view(safety_message) if safety_message else None,
            claim=claim,
            alert_kind=alert_kind,
        )
        if posted.safety_view:
            publish_message(conversation_id, posted.safety_view)
    return posted


def _decide(conversation: Conversation, reading: safety.Reading) -> safety.Decision:
    standing = safety.Standing(
        turn=conversation.visitor_turns + 1,
        watch_until_turn=conversation.watch_until_turn,
        has_language_card=conversation.has_language_card,
    )
    return safety.decide(reading, standing, watched_turns=MESSAGES_WATCHED_AFTER_HIGH)


def _store(conversation: Conversation, event: SendMessage, decision: safety.Decision) -> Message:
    seq = conversation.take_seq()
    conversation.visitor_turns += 1
    conversation.watch_until_turn = decision.watch_until_turn
    conversation.has_language_card = conversation.has_language_card or decision.shows_language_card
    if decision.card != "none":
        conversation.card_level = decision.card
    message = insert(
        Message(
            conversation=conversation,
            seq=seq,
            changed_seq=seq,
            kind=MessageKind.VISITOR,
            text=event.text,
            sha256=sha256_of(event.text),
            client_id=event.client_id,
            is_excluded=bool(decision.excluded_reason),
        )
    )
    insert(
        SafetyVerdict(
            message=message,
            direction=Direction.VISITOR,
            screen_version=decision.screen_version,
            level=decision.level,
            own_level=decision.own_level,
            score=decision.probability,
            card=decision.card,
            excluded_reason=decision.excluded_reason,
        )
    )
    return message


def _store_safety_message(conversation: Conversation, parent: Message, *, text: str) -> Message:
    seq = conversation.take_seq()
    return Message.objects.create(
        conversation=conversation,
        seq=seq,
        changed_seq=seq,
        kind=MessageKind.SAFETY,
        parent=parent,
        text=text,
        sha256=sha256_of(text),
        is_excluded=True,
    )


def _raise_alert(conversation: Conversation, message: Message, decision: safety.Decision) -> str | None:
    if not decision.raises_alert:
        return None
    kind = AlertKind.SCREEN_DOWN if decision.failure else AlertKind.CRISIS
    raise_alert(kind, conversation_id=conversation.pk, message=message)
    return kind


def acknowledge_card(conversation_id: UUID) -> str:
    """The visitor calls the card a misunderstanding: lowers the concern, never clears it. Returns the card's level."""
    with transaction.atomic():
        conversation = Conversation.objects.select_for_update().get(pk=conversation_id)
        if conversation.card_level == "high":
            conversation.card_level = "watch"
        conversation.watch_until_turn = safety.lower_after_misunderstanding(
            turn=conversation.visitor_turns, watch_until_turn=conversation.watch_until_turn
        )
        conversation.save(update_fields=["card_level", "watch_until_turn"])
    return conversation.card_level
