"""Erasure: the subject's rows all go, nobody else's do, and a plan that overreaches stops the job (A12)."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.apps import apps
from django.db import models
from django.utils import timezone

from chat.models import (
    Alert,
    AuditEntry,
    Consent,
    Conversation,
    Feedback,
    Message,
    PreferencePair,
    Rating,
    SafetyVerdict,
    TurnRubric,
    TurnScore,
    Visitor,
)
from chat.models.learning import VersionKind, VersionState
from chat.services import erasure
from chat.services.erasure import ErasedTable, ErasureRefused, apply_retention, erase_visitor, erased_tables
from tests.factories import (
    make_conversation,
    make_message,
    make_reply,
    make_site,
    make_user,
    make_version,
    make_visitor,
)
from training.models import Snapshot, SnapshotRow

pytestmark = pytest.mark.django_db


def versions() -> tuple[Any, Any]:
    return make_version(VersionKind.GENERATOR, state=VersionState.RETIRED), make_version(
        VersionKind.JUDGE, state=VersionState.RETIRED
    )


def fill(visitor: Visitor) -> Conversation:
    """A row of the visitor in every table there is."""
    generator, judge = versions()
    conversation = make_conversation(visitor)
    said = make_message(conversation)
    reply = make_reply(said)
    sibling = make_reply(said, sibling_index=1, is_selected=False)
    Consent.objects.create(visitor=visitor, purpose="improvement", version="improvement-1", is_granted=True)
    Feedback.objects.create(message=reply, visitor=visitor, value=1)
    Rating.objects.create(conversation=conversation, stars=4)
    SafetyVerdict.objects.create(message=said, direction="visitor", screen_version="s", level="none", own_level="none")
    Alert.objects.create(kind="crisis", conversation=conversation, message=said)
    rubric = TurnRubric.objects.create(message=said, generator=generator, weights={}, criteria=[], context_sha256="0")
    TurnScore.objects.create(reply=reply, rubric=rubric, judge=judge)
    pair = PreferencePair.objects.create(context=said, a=reply, b=sibling, label="a", source="staff", group_key="g")
    pair.annotators.add(make_user())
    snapshot, _ = Snapshot.objects.get_or_create(sha256="5" * 64, defaults={"folder": "snapshots/5"})
    SnapshotRow.objects.create(snapshot=snapshot, reply=reply, visitor=visitor)
    return conversation


def counts() -> dict[str, int]:
    return {table.model._meta.label: table.model._default_manager.count() for table in erased_tables()}


def test_two_visitors_and_one_erases() -> None:
    site = make_site()
    leaver = make_visitor(site)
    fill(leaver)
    one_person = counts()
    assert all(count for count in one_person.values()), "the test must fill every table"
    stayer = make_visitor(site)
    fill(stayer)
    make_message(make_conversation(stayer))
    both = counts()
    report = erase_visitor(leaver.pk)
    assert counts() == {table: both[table] - one_person[table] for table in both}
    assert {table: report.counts[table] for table in one_person} == one_person
    assert not Message.objects.exclude(conversation__visitor=stayer).exists()


def test_every_table_that_hangs_on_a_visitor_is_covered() -> None:
    """A new table with a way to a visitor must join the erasure, or this fails."""
    covered = {table.model for table in erased_tables()}
    for model in apps.get_models(include_auto_created=True):
        for field in model._meta.get_fields():
            is_link = isinstance(field, models.ForeignKey) and field.remote_field.on_delete is models.CASCADE
            if is_link and field.related_model in covered:
                assert model in covered, f"{model._meta.label}.{field.name}"


def test_erasure_is_audited_with_counts_and_without_words() -> None:
    visitor = make_visitor()
    fill(visitor)
    admin = make_user("admin")
    erase_visitor(visitor.pk, actor=admin)
    entry = AuditEntry.objects.get(verb="visitor.erase")
    assert (entry.actor_id, entry.subject) == (admin.pk, f"visitor {visitor.pk}")
    assert entry.facts["chat.Message"] == 3
    assert "long day" not in str(entry.facts)


def test_plan_that_would_touch_somebody_elses_rows_stops_the_job() -> None:
    """A corrupt row (a reply whose parent lies in another's conversation) would be dragged along by the cascade."""
    leaver, stayer = make_visitor(), make_visitor()
    said = make_message(make_conversation(leaver))
    foreign = make_message(make_conversation(stayer), parent=said)
    before = counts()
    with pytest.raises(ErasureRefused) as refused:
        erase_visitor(leaver.pk)
    assert (refused.value.table, refused.value.planned, refused.value.found) == ("chat.Message", 1, 2)
    assert counts() == before
    assert Message.objects.filter(pk=foreign.pk).exists()
    assert not AuditEntry.objects.exists()


def test_rows_in_a_table_nobody_planned_stop_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    visitor = make_visitor()
    fill(visitor)
    monkeypatch.setattr(erasure, "_tables", [table for table in erased_tables() if table.model is not Rating])
    with pytest.raises(ErasureRefused, match=r"chat.Rating has 0 rows"):
        erase_visitor(visitor.pk)
    assert Visitor.objects.filter(pk=visitor.pk).exists()


def test_plan_that_forgets_its_filter_stops_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault of the report: a query that matches everybody."""
    leaver = make_visitor()
    fill(leaver)
    fill(make_visitor())
    wrong = [
        ErasedTable(model=Rating, to_visitor="pk__isnull", to_conversation=None) if table.model is Rating else table
        for table in erased_tables()
    ]
    monkeypatch.setattr(erasure, "_tables", wrong)
    monkeypatch.setattr(erasure, "_plan", _plan_everybodys_ratings)
    with pytest.raises(ErasureRefused):
        erase_visitor(leaver.pk)
    assert Rating.objects.count() == 2


def _plan_everybodys_ratings(subject: erasure.ErasureSubject) -> dict[str, int]:
    own = {table.model._meta.label: table.model._default_manager for table in erased_tables()}
    plan = {
        table.model._meta.label: table.model._default_manager.filter(**{table.to_visitor: subject.visitor_id}).count()
        for table in erased_tables()
        if table.model is not Rating
    }
    return {**plan, "chat.Rating": own["chat.Rating"].count()}


def test_an_unknown_visitor_is_nobody() -> None:
    fill(make_visitor())
    before = counts()
    assert erase_visitor(uuid4()).counts == {}
    assert counts() == before


def test_running_replies_are_named_to_who_clears_their_text(django_capture_on_commit_callbacks: Any) -> None:
    visitor = make_visitor()
    said = make_message(make_conversation(visitor))
    reply = make_reply(said, "", status="running", generation={"owner": "web:1"})
    cleared: list[tuple[UUID, str]] = []
    with django_capture_on_commit_callbacks(execute=True):
        erase_visitor(visitor.pk, clear_live=cleared.extend)
    assert cleared == [(reply.pk, "web:1")]


def test_snapshots_get_a_tombstone_and_versions_that_learned_are_listed() -> None:
    visitor = make_visitor()
    fill(visitor)
    learned = make_version(state=VersionState.RETIRED, snapshot_sha256="5" * 64)
    report = erase_visitor(visitor.pk)
    snapshot = Snapshot.objects.get()
    assert [stone["rows"] for stone in snapshot.tombstones] == [1]
    assert snapshot.sha256 == "5" * 64
    assert report.learned_versions == (learned.name,)
    assert AuditEntry.objects.get(verb="visitor.erase").facts["learned_versions"] == learned.name


def test_retention_erases_what_is_old_and_leaves_the_rest() -> None:
    site = make_site(retention_days=30)
    old_visitor, active_visitor, silent = make_visitor(site), make_visitor(site), make_visitor(site)
    old, recent = fill(old_visitor), fill(active_visitor)
    other_site = fill(make_visitor(make_site(retention_days=365)))
    long_ago = timezone.now() - timedelta(days=31)
    Conversation.objects.filter(pk__in=[old.pk, other_site.pk]).update(last_activity_at=long_ago)
    Visitor.objects.filter(pk__in=[old_visitor.pk, active_visitor.pk, silent.pk]).update(created_at=long_ago)
    assert apply_retention() == 1
    assert set(Conversation.objects.all()) == {recent, other_site}
    assert not Visitor.objects.filter(pk__in=[old_visitor.pk, silent.pk]).exists()
    assert Visitor.objects.filter(pk=active_visitor.pk).exists()
    assert AuditEntry.objects.get(verb="retention.apply").facts["chat.Conversation"] == 1


def test_retention_goes_on_past_a_conversation_that_is_refused() -> None:
    site = make_site(retention_days=1)
    first, second = fill(make_visitor(site)), fill(make_visitor(site))
    said = first.messages.filter(kind="visitor").get()
    make_message(make_conversation(make_visitor(site)), parent=said)
    Conversation.objects.filter(pk__in=[first.pk, second.pk]).update(
        last_activity_at=timezone.now() - timedelta(days=2)
    )
    assert apply_retention() == 1
    assert Conversation.objects.filter(pk=first.pk).exists()
    assert not Conversation.objects.filter(pk=second.pk).exists()
