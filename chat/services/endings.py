"""How replies end and who still runs them: one transaction at the end, heartbeats, taking over from the dead.

Whoever finishes must still hold the fence, so a process that was given up for dead cannot overwrite what came after it.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from chat.events import publish_message
from chat.helplines import resources_for
from chat.models import Conversation, Generation, Message, SafetyVerdict
from chat.models.conversations import MessageStatus
from chat.models.safety import AlertKind, Direction
from chat.models.statements import Select, insert, update
from chat.protocol import MessageView, Resource
from chat.services.alarm import raise_alert
from chat.services.database import after_commit
from chat.services.replies import TURN_FIELDS, ReplyClaim, claim_next, lock_conversation
from chat.services.texts import sha256_of
from chat.services.views import message_view
from rubric import Completion, Sampling

AfterReply = Callable[[UUID], None]
_after_reply: list[AfterReply] = []


def call_after_reply(hook: AfterReply) -> None:
    """Register what happens after a reply was committed (`tasks` registers grading); called with the reply's id."""
    _after_reply.append(hook)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyVerdict:
    """What the output screen said of the span that ended a reply."""

    screen_version: str
    level: str
    probability: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyOutcome:
    """How a reply ended: its text, why, and everything needed to rebuild the request."""

    status: MessageStatus
    text: str
    code: str = ""
    is_retryable: bool = False
    completion: Completion | None = None
    token_ids: tuple[int, ...] = ()  # what came where the reply did not end with a completion
    completion_tokens: int | None = None
    sampling: Sampling | None = None
    engine_model: str = ""
    prompt_version: str = ""
    prompt_sha256: str = ""
    context_from_seq: int = 0
    request_id: str = ""
    queued_ms: float | None = None
    first_shown_ms: float | None = None
    total_ms: float | None = None
    verdict: ReplyVerdict | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """The stored ending, and the next reply where messages arrived meanwhile."""

    view: MessageView
    sha256: str
    next_claim: ReplyClaim | None


# What an ending changes of the reply's two rows.
_MESSAGE_FIELDS = ("status", "text", "sha256", "failure_code", "is_retryable", "is_excluded", "changed_seq")
_GENERATION_FIELDS = (
    *("engine_model", "prompt_version", "prompt_sha256", "context_from_seq", "request_id", "queued_ms"),
    *("first_token_ms", "first_shown_ms", "total_ms", "temperature", "top_p", "repetition_penalty", "max_tokens"),
    *("stop", "logprob_kind", "logprob_gap", "token_ids", "token_logprobs", "finish_reason", "prompt_tokens"),
    *("completion_tokens", "finished_at"),
)
_conversation_id: Select[tuple[UUID]] = Select(
    lambda message: Message.objects.filter(pk=message).order_by().values_list("conversation_id"), message=UUID
)
_message: Select[Message] = Select(lambda message: Message.objects.filter(pk=message).order_by(), message=UUID)
_unended: Select[Generation] = Select(
    lambda message, fence: Generation.objects.filter(message_id=message, fence=fence, finished_at=None),
    message=UUID,
    fence=UUID,
)


def finish_reply(claim_fence: UUID, message_id: UUID, outcome: ReplyOutcome, *, owner: str) -> Finished | None:
    """Store how a reply ended and claim the next one where messages arrived meanwhile; one transaction.

    None where the fence is no longer ours: somebody else has ended this reply, and nothing is written.
    """
    with transaction.atomic():
        found = _conversation_id.first(message=message_id)
        if found is None:  # erased while it ran
            return None
        conversation = lock_conversation(found[0])
        generation = _unended.first(message=message_id, fence=claim_fence)
        message = _message.first(message=message_id)
        if generation is None or message is None:
            return None
        _write_message(conversation, message, outcome)
        _write_generation(generation, outcome)
        if outcome.verdict:
            _write_verdict(message, outcome)
        next_claim = claim_next(conversation, owner=owner, after=generation.context_to_seq)
        conversation.last_activity_at = timezone.now()
        update(conversation, *TURN_FIELDS)
        view = message_view(message)
        publish_message(conversation.pk, view)
        if message.status in {MessageStatus.COMPLETE, MessageStatus.STOPPED} and message.text:
            for hook in _after_reply:
                after_commit(hook, message.pk)
    return Finished(view=view, sha256=message.sha256, next_claim=next_claim)


def _write_message(conversation: Conversation, message: Message, outcome: ReplyOutcome) -> None:
    message.status = outcome.status
    message.text = outcome.text
    message.sha256 = sha256_of(outcome.text)
    message.failure_code = outcome.code
    message.is_retryable = outcome.is_retryable
    message.is_excluded = message.is_excluded or outcome.status == MessageStatus.BLOCKED
    message.changed_seq = conversation.take_seq()
    update(message, *_MESSAGE_FIELDS)


def _write_generation(generation: Generation, outcome: ReplyOutcome) -> None:
    # What other servers name is cut to its column: PostgreSQL refuses what SQLite takes, and the reply would never end.
    generation.engine_model = outcome.engine_model[:120]
    generation.prompt_version = outcome.prompt_version
    generation.prompt_sha256 = outcome.prompt_sha256
    generation.context_from_seq = outcome.context_from_seq
    generation.request_id = outcome.request_id
    generation.queued_ms = outcome.queued_ms
    generation.first_shown_ms = outcome.first_shown_ms
    generation.total_ms = outcome.total_ms
    generation.logprob_gap = "the reply did not end with a completion"
    generation.token_ids = list(outcome.token_ids)
    generation.completion_tokens = outcome.completion_tokens
    if sampling := outcome.sampling:
        generation.temperature = sampling.temperature
        generation.top_p = sampling.top_p
        generation.repetition_penalty = sampling.repetition_penalty
        generation.max_tokens = sampling.max_tokens
        generation.stop = list(sampling.stop)
    if completion := outcome.completion:
        generation.token_ids = list(completion.token_ids)
        generation.token_logprobs = list(completion.logprobs)
        generation.logprob_kind = completion.logprob_kind
        generation.logprob_gap = (completion.logprob_gap or "")[:80]
        generation.finish_reason = completion.finish_reason[:24]
        generation.prompt_tokens = completion.prompt_tokens
        generation.completion_tokens = completion.completion_tokens
        generation.first_token_ms = completion.first_token_ms
    generation.finished_at = timezone.now()
    update(generation, *_GENERATION_FIELDS)


def _write_verdict(message: Message, outcome: ReplyOutcome) -> None:
    verdict = outcome.verdict
    if verdict is None:
        return
    is_blocked = outcome.status == MessageStatus.BLOCKED
    if is_blocked:
        raise_alert(AlertKind.BLOCKED, conversation_id=message.conversation_id, message=message)
    insert(
        SafetyVerdict(
            message=message,
            direction=Direction.REPLY,
            screen_version=verdict.screen_version,
            level=verdict.level,
            own_level=verdict.level,
            score=verdict.probability,
            card="watch" if is_blocked else "none",
            excluded_reason="reply_blocked" if is_blocked else "",
        )
    )


def beat_hearts(fences: list[UUID], *, now: datetime) -> int:
    """Say that these replies are still being run; returns how many of them are still ours."""
    return Generation.objects.filter(fence__in=fences, finished_at=None).update(heartbeat_at=now)


def stale_replies(*, now: datetime, stale_after: timedelta) -> list[tuple[UUID, UUID]]:
    """(message id, fence) of running replies whose process was not heard of for `stale_after`."""
    rows = Generation.objects.filter(finished_at=None, heartbeat_at__lt=now - stale_after)
    return list(rows.values_list("message_id", "fence")[:100])


def take_over_stale(message_id: UUID, fence: UUID, *, owner: str) -> UUID | None:
    """Move a dead process's reply to us by changing its fence; None where another process was faster."""
    fresh = uuid.uuid4()
    taken = Generation.objects.filter(message_id=message_id, fence=fence, finished_at=None).update(
        fence=fresh, owner=owner, heartbeat_at=timezone.now()
    )
    return fresh if taken else None


def owner_of(message_id: UUID) -> str:
    """The process that runs this reply; "" where it is not running."""
    row = Generation.objects.filter(message_id=message_id, finished_at=None).values_list("owner", flat=True).first()
    return row or ""


def conversation_of(message_id: UUID) -> UUID | None:
    """The conversation of a message; None where it was erased."""
    return Message.objects.filter(pk=message_id).values_list("conversation_id", flat=True).first()


def card_after_block(conversation_id: UUID) -> tuple[Resource, ...]:
    """The model's words were withheld: the card stands at watch from now on. Returns its helplines."""
    conversation = Conversation.objects.select_related("site", "visitor").get(pk=conversation_id)
    Conversation.objects.filter(pk=conversation_id, card_level="none").update(card_level="watch")
    return resources_for(conversation.site, country=conversation.site.country, locale=conversation.visitor.locale)
