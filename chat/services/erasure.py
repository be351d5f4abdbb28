"""Erasing a visitor, and conversations past their site's retention: planned, counted, and refused where it overreaches.

The plan counts, table by table, the rows that belong to the subject. The deletion then reports what the cascade really
took; where the two differ in any table the whole transaction is undone and `ErasureRefused` says which (field report
A12). Apps above join with `register_erased_table` and `register_erasure_hook`, so that nothing here imports them.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db import models, transaction
from django.utils import timezone

from chat.events import publish_erased
from chat.models import (
    Alert,
    Consent,
    Conversation,
    Feedback,
    Generation,
    Message,
    PreferencePair,
    Rating,
    SafetyVerdict,
    TurnRubric,
    TurnScore,
    User,
    Visitor,
    WidgetSite,
)
from chat.models.audit import record
from chat.services.database import after_commit

logger = logging.getLogger(__name__)
RETENTION_BATCH = 200


class ErasureRefused(Exception):
    """The deletion would not have matched its plan; nothing was deleted."""

    def __init__(self, *, table: str, planned: int, found: int) -> None:
        super().__init__(
            f"Erasure refused: {table} has {planned} rows of the subject, the deletion would take {found}."
        )
        self.table = table
        self.planned = planned
        self.found = found


@dataclass(frozen=True, kw_only=True, slots=True)
class ErasedTable:
    """A table with rows of visitors. Paths are look-ups; `to_conversation` None: the rows hang on the visitor alone."""

    model: type[models.Model]
    to_visitor: str
    to_conversation: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ErasureSubject:
    """Whose rows go: a visitor with everything, or single conversations of one (retention)."""

    visitor_id: UUID
    conversation_ids: tuple[UUID, ...]
    message_ids: tuple[UUID, ...]
    is_whole_visitor: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ErasureReport:
    """What went, by table, and the names of the versions that learned from it (they stay, and are listed)."""

    counts: Mapping[str, int]
    learned_versions: tuple[str, ...] = ()
    conversation_ids: tuple[UUID, ...] = ()


@dataclass(slots=True)
class HookAnswer:
    """What a hook did outside the tables: counts by name, and versions that learned from the subject."""

    counts: dict[str, int] = field(default_factory=dict)
    learned_versions: list[str] = field(default_factory=list)


ErasureHook = Callable[[ErasureSubject], HookAnswer]
RunningReply = tuple[UUID, str]  # the message and the process that runs it
ClearLive = Callable[[Sequence[RunningReply]], None]

_MESSAGE = "message__conversation"
_tables: list[ErasedTable] = [
    ErasedTable(model=Visitor, to_visitor="pk", to_conversation=None),
    ErasedTable(model=Consent, to_visitor="visitor", to_conversation=None),
    ErasedTable(model=Conversation, to_visitor="visitor", to_conversation="pk"),
    ErasedTable(model=Message, to_visitor="conversation__visitor", to_conversation="conversation"),
    ErasedTable(model=Generation, to_visitor=f"{_MESSAGE}__visitor", to_conversation=_MESSAGE),
    ErasedTable(model=Feedback, to_visitor=f"{_MESSAGE}__visitor", to_conversation=_MESSAGE),
    ErasedTable(model=Rating, to_visitor="conversation__visitor", to_conversation="conversation"),
    ErasedTable(model=SafetyVerdict, to_visitor=f"{_MESSAGE}__visitor", to_conversation=_MESSAGE),
    ErasedTable(model=Alert, to_visitor="conversation__visitor", to_conversation="conversation"),
    ErasedTable(model=TurnRubric, to_visitor=f"{_MESSAGE}__visitor", to_conversation=_MESSAGE),
    ErasedTable(model=TurnScore, to_visitor="reply__conversation__visitor", to_conversation="reply__conversation"),
    ErasedTable(
        model=PreferencePair, to_visitor="context__conversation__visitor", to_conversation="context__conversation"
    ),
    ErasedTable(
        model=PreferencePair.annotators.through,
        to_visitor="preferencepair__context__conversation__visitor",
        to_conversation="preferencepair__context__conversation",
    ),
]
_hooks: list[ErasureHook] = []


def register_erased_table(table: ErasedTable) -> None:
    """An app above names a table of its own that holds rows of visitors."""
    if all(known.model is not table.model for known in _tables):
        _tables.append(table)


def register_erasure_hook(hook: ErasureHook) -> None:
    """An app above acts in the transaction, before the rows go (tombstones, files after the commit)."""
    if hook not in _hooks:
        _hooks.append(hook)


def erased_tables() -> tuple[ErasedTable, ...]:
    """Every table that an erasure covers; a test holds them against the models."""
    return tuple(_tables)


def erase_visitor(visitor_id: UUID, *, actor: User | None = None, clear_live: ClearLive | None = None) -> ErasureReport:
    """Delete every row of the visitor from every table, and write an audit entry with the counts.

    `clear_live` gets the replies that were running, after the commit: it stops them and clears their text in Redis.
    Raises ErasureRefused, and then nothing was deleted. An unknown visitor gives a report of zeros.
    """
    with transaction.atomic():
        visitor = Visitor.objects.select_for_update().filter(pk=visitor_id).first()
        if visitor is None:
            return ErasureReport(counts={})
        conversations = tuple(
            Conversation.objects.select_for_update().filter(visitor=visitor).values_list("pk", flat=True)
        )
        subject = _lock_subject(visitor_id, conversations, is_whole_visitor=True)
        running = _running_replies(conversations)
        report = _erase(subject, visitor.delete)
        record("visitor.erase", f"visitor {visitor_id}", actor=actor, facts=_facts(report))
        if clear_live is not None and running:
            after_commit(clear_live, running)
        for conversation_id in conversations:
            publish_erased(conversation_id)
    return report


def apply_retention(*, now: datetime | None = None, clear_live: ClearLive | None = None) -> int:
    """Erase conversations that have been idle longer than their site keeps them, then visitors with nothing left.

    At most RETENTION_BATCH of each a call; each in its own transaction. One audit entry a call that erased anything.
    Returns how many conversations went. One that is refused is logged and stays; the others go on.
    """
    now = now or timezone.now()
    total: dict[str, int] = {}
    for site in WidgetSite.objects.all():
        cutoff = now - timedelta(days=site.retention_days)
        old = Conversation.objects.filter(site=site, last_activity_at__lt=cutoff)
        for conversation_id in list(old.values_list("pk", flat=True)[:RETENTION_BATCH]):
            try:
                report = _erase_conversation(conversation_id, cutoff=cutoff, clear_live=clear_live)
            except ErasureRefused as error:
                logger.error("retention refused conversation=%s table=%s", conversation_id, error.table)
                continue
            _add(total, report.counts)
        silent = Visitor.objects.filter(site=site, created_at__lt=cutoff, conversations__isnull=True)
        for visitor_id in list(silent.values_list("pk", flat=True)[:RETENTION_BATCH]):
            _add(total, _erase_silent_visitor(visitor_id).counts)
    if total:
        record("retention.apply", "conversations", actor=None, facts=dict(total))
    return total.get(Conversation._meta.label, 0)


def _erase_conversation(conversation_id: UUID, *, cutoff: datetime, clear_live: ClearLive | None) -> ErasureReport:
    with transaction.atomic():
        conversation = (
            Conversation.objects.select_for_update().filter(pk=conversation_id, last_activity_at__lt=cutoff).first()
        )
        if conversation is None:  # somebody wrote in it since it was listed
            return ErasureReport(counts={})
        subject = _lock_subject(conversation.visitor_id, (conversation_id,), is_whole_visitor=False)
        running = _running_replies((conversation_id,))
        report = _erase(subject, conversation.delete)
        if clear_live is not None and running:
            after_commit(clear_live, running)
        publish_erased(conversation_id)
    return report


def _erase_silent_visitor(visitor_id: UUID) -> ErasureReport:
    silent_ones = Visitor.objects.select_for_update(of=("self",))  # PostgreSQL locks no nullable side of a join
    with transaction.atomic():
        visitor = silent_ones.filter(pk=visitor_id, conversations__isnull=True).first()
        if visitor is None:
            return ErasureReport(counts={})
        return _erase(_lock_subject(visitor_id, (), is_whole_visitor=True), visitor.delete)


def _running_replies(conversation_ids: Sequence[UUID]) -> list[RunningReply]:
    running = Message.objects.filter(conversation__in=conversation_ids).unfinished()
    return list(running.values_list("pk", "generation__owner"))


def _lock_subject(visitor_id: UUID, conversation_ids: tuple[UUID, ...], *, is_whole_visitor: bool) -> ErasureSubject:
    """Lock what rows hang on, so that no grade or reply slips in between the plan and the deletion."""
    messages = Message.objects.select_for_update().filter(conversation__in=conversation_ids)
    return ErasureSubject(
        visitor_id=visitor_id,
        conversation_ids=conversation_ids,
        message_ids=tuple(messages.values_list("pk", flat=True)),
        is_whole_visitor=is_whole_visitor,
    )


def _erase(subject: ErasureSubject, delete: Callable[[], tuple[int, dict[str, int]]]) -> ErasureReport:
    answers = [hook(subject) for hook in _hooks]
    planned = _plan(subject)
    _, deleted = delete()
    for table in sorted(planned.keys() | deleted.keys()):
        if planned.get(table, 0) != deleted.get(table, 0):
            raise ErasureRefused(table=table, planned=planned.get(table, 0), found=deleted.get(table, 0))
    counts = {table: count for table, count in planned.items() if count}
    for answer in answers:
        _add(counts, answer.counts)
    return ErasureReport(
        counts=counts,
        learned_versions=tuple(sorted({name for answer in answers for name in answer.learned_versions})),
        conversation_ids=subject.conversation_ids,
    )


def _plan(subject: ErasureSubject) -> dict[str, int]:
    """How many rows of each table belong to the subject."""
    plan = {}
    for table in _tables:
        rows = table.model._default_manager.all()
        if subject.is_whole_visitor:
            plan[table.model._meta.label] = rows.filter(**{table.to_visitor: subject.visitor_id}).count()
        elif table.to_conversation is not None:
            chosen = {f"{table.to_conversation}__in": subject.conversation_ids}
            plan[table.model._meta.label] = rows.filter(**chosen).count()
    return plan


def _facts(report: ErasureReport) -> dict[str, str | int | float | bool]:
    facts: dict[str, str | int | float | bool] = dict(report.counts)
    if report.learned_versions:
        facts["learned_versions"] = " ".join(report.learned_versions)
    return facts


def _add(total: dict[str, int], counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        total[name] = total.get(name, 0) + count
