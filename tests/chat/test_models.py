"""What the tables themselves hold, on both databases: final audit entries, one of each, and texts whole."""

import json
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from chat.models import AuditEntry, Conversation, Feedback, Message, TurnRubric, TurnScore, Visitor
from chat.models.audit import record
from chat.models.conversations import MessageKind, MessageStatus
from chat.models.learning import VersionKind, VersionState
from chat.protocol import ProtocolError, SendMessage, SetFeedback, parse_client_event
from chat.services.texts import sha256_of
from tests.factories import (
    make_conversation,
    make_message,
    make_reply,
    make_site,
    make_user,
    make_version,
    make_visitor,
)

pytestmark = pytest.mark.django_db


def test_migrations_say_everything_that_the_models_say() -> None:
    call_command("makemigrations", "--check", "--dry-run", stdout=StringIO())


# --- audit entries --------------------------------------------------------------------------------------------------


def entry() -> AuditEntry:
    return record("reveal", "conversation 1", actor=make_user(), facts={"messages": 3})


def test_audit_entry_is_written_and_outlives_its_actor() -> None:
    actor = make_user()
    kept = record("reveal", "conversation 1", actor=actor, facts={"messages": 3})
    name, pk = actor.username, actor.pk
    actor.delete()
    kept.refresh_from_db()
    assert (kept.actor_id, kept.actor_name, kept.facts) == (pk, name, {"messages": 3})
    assert record("erase", "visitor 1", actor=None, facts={}).actor_name == "rapport"


def change_by_save(kept: AuditEntry) -> None:
    kept.verb = "nothing"
    kept.save()


def change_by_query(kept: AuditEntry) -> None:
    AuditEntry.objects.filter(pk=kept.pk).update(verb="nothing")


def change_by_hand(kept: AuditEntry) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE chat_auditentry SET verb = 'nothing' WHERE id = %s", [kept.pk])


def delete_one(kept: AuditEntry) -> None:
    kept.delete()


def delete_all(kept: AuditEntry) -> None:
    AuditEntry.objects.all().delete()


def delete_by_hand(kept: AuditEntry) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM chat_auditentry")


@pytest.mark.parametrize(
    "change", [change_by_save, change_by_query, change_by_hand, delete_one, delete_all, delete_by_hand]
)
def test_audit_entry_can_be_neither_changed_nor_deleted(change: Any) -> None:
    kept = entry()
    with pytest.raises(DatabaseError, match="audit entries are final"), transaction.atomic():
        change(AuditEntry.objects.get(pk=kept.pk))
    assert AuditEntry.objects.get().verb == "reveal"


@pytest.mark.django_db(transaction=True)
def test_audit_table_cannot_be_emptied_at_once() -> None:
    entry()
    with pytest.raises(DatabaseError, match="audit entries are final"), connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE chat_auditentry" if connection.vendor == "postgresql" else "DELETE FROM chat_auditentry"
        )
    assert AuditEntry.objects.count() == 1


# --- one of each ----------------------------------------------------------------------------------------------------


def refused(make: Any) -> bool:
    try:
        with transaction.atomic():
            make()
    except IntegrityError:
        return True
    return False


def test_conversation_has_one_message_per_seq_and_per_client_id() -> None:
    conversation = make_conversation()
    said = make_message(conversation, client_id="c1")
    assert refused(lambda: make_message(conversation, client_id="c1"))
    assert refused(lambda: Message.objects.create(conversation=conversation, seq=said.seq, changed_seq=9, kind="staff"))
    make_message(make_conversation(), client_id="c1")
    for _ in range(2):  # messages without one are as many as they are
        make_message(conversation)


@pytest.mark.parametrize("status", [MessageStatus.RUNNING, MessageStatus.QUEUED])
def test_conversation_has_one_unfinished_reply(status: MessageStatus) -> None:
    conversation = make_conversation()
    said = make_message(conversation)
    make_reply(said, "", status=MessageStatus.RUNNING)
    assert refused(lambda: make_reply(said, "", status=status))
    make_reply(said, "done", status=MessageStatus.COMPLETE)
    make_message(conversation, "not a reply", kind=MessageKind.STAFF, status=status, author=make_user())
    make_reply(make_message(make_conversation()), "", status=status)


def test_kind_has_one_live_version() -> None:
    make_version()
    assert refused(make_version)
    make_version(state=VersionState.RETIRED)
    make_version(VersionKind.JUDGE)


def test_name_of_a_version_is_never_used_again() -> None:
    version = make_version(state=VersionState.RETIRED)
    assert refused(lambda: make_version(state=VersionState.CANDIDATE, name=version.name))


def test_turn_has_one_rubric_per_generator_and_seed_and_one_score_per_judge() -> None:
    said = make_message(make_conversation())
    reply = make_reply(said)
    generator, judge = make_version(VersionKind.GENERATOR), make_version(VersionKind.JUDGE)

    def rubric(seed: int = 0) -> TurnRubric:
        return TurnRubric.objects.create(
            message=said, generator=generator, seed=seed, weights={}, criteria=[], context_sha256="0"
        )

    row = rubric()
    assert refused(rubric)
    rubric(seed=1)
    TurnScore.objects.create(reply=reply, rubric=row, judge=judge)
    assert refused(lambda: TurnScore.objects.create(reply=reply, rubric=row, judge=judge))
    TurnScore.objects.create(reply=reply, rubric=row, judge=judge, role="examiner")


def test_site_has_one_visitor_per_signed_identity_and_any_number_without() -> None:
    site = make_site()
    make_visitor(site, external_id="customer-7")
    assert refused(lambda: make_visitor(site, external_id="customer-7"))
    make_visitor(make_site(), external_id="customer-7")
    for _ in range(2):
        make_visitor(site)


# --- texts (B9, B10) ------------------------------------------------------------------------------------------------


def send_frame(text: str, client_id: str = "c") -> str:
    is_escaped = any("\ud800" <= character <= "\udfff" for character in text)
    return json.dumps({"type": "message.send", "client_id": client_id, "text": text}, ensure_ascii=is_escaped)


def kept_text(text: str) -> str | None:
    """What the database gives back of a text that a visitor sends; None where the door refuses it."""
    try:
        event = parse_client_event(send_frame(text, client_id=uuid4().hex))
    except ProtocolError:
        return None
    assert isinstance(event, SendMessage)
    message = make_message(make_conversation(), event.text, client_id=event.client_id, sha256=sha256_of(event.text))
    return Message.objects.get(pk=message.pk).text


SAME_VERDICT = {
    "NUL": ("a\x00b", None),
    "a lone surrogate": ("\ud83d", None),
    "a pair of surrogates is a character": ("😀", "😀"),
    "four-byte text": ("𝒲𝒽𝓎 😀 👩‍👩‍👧‍👦", "𝒲𝒽𝓎 😀 👩‍👩‍👧‍👦"),
    "line separators": ("a\u2028b\u2029c\u0085d", "a\u2028b\u2029c\u0085d"),
    "combining marks": ("e\u0301 \u0065\u0301", "e\u0301 \u0065\u0301"),
    "noncharacters": ("a\ufffe\uffffb", "a\ufffe\uffffb"),
    "control characters": ("a\x01\x1b\x7fb", "a\x01\x1b\x7fb"),
    "the longest": ("😀" * 8_000, "😀" * 8_000),
    "one too many": ("😀" * 8_001, None),
    "quotes and backslashes": ("'\";--\\ \\x00 %s", "'\";--\\ \\x00 %s"),
}


@pytest.mark.parametrize(("text", "kept"), SAME_VERDICT.values(), ids=SAME_VERDICT.keys())
def test_both_databases_give_the_same_verdict_on_a_text(text: str, kept: str | None) -> None:
    assert kept_text(text) == kept


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=40))
def test_whatever_the_door_lets_in_comes_back_as_it_was(text: str) -> None:
    kept = kept_text(text)
    assert kept in {None, text.strip()}


@given(
    reasons=st.lists(st.text(alphabet=st.characters(exclude_categories=()), min_size=1, max_size=10), max_size=3),
    comment=st.text(alphabet=st.characters(exclude_categories=()), max_size=20),
)
def test_whatever_feedback_the_door_lets_in_can_be_kept(reasons: list[str], comment: str) -> None:
    frame = {"type": "feedback.set", "message_id": str(uuid4()), "value": 1, "reasons": reasons, "comment": comment}
    try:
        event = parse_client_event(json.dumps(frame))
    except ProtocolError:
        return
    assert isinstance(event, SetFeedback)
    conversation = make_conversation()
    reply = make_reply(make_message(conversation))
    row = Feedback.objects.create(
        message=reply, visitor=conversation.visitor, value=1, reasons=list(event.reasons), comment=event.comment
    )
    row.refresh_from_db()
    assert (row.reasons, row.comment) == (reasons, comment)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_both_databases_refuse_what_is_no_number_in_json(number: float) -> None:
    """So does the wire; what grades or measures never gets as far as this."""
    said = make_message(make_conversation())
    generator = make_version(VersionKind.GENERATOR)
    with pytest.raises((DatabaseError, ValueError)), transaction.atomic():
        TurnRubric.objects.create(
            message=said, generator=generator, weights={"cognitive": number}, criteria=[], context_sha256="0"
        )


# --- access ---------------------------------------------------------------------------------------------------------


def test_visitor_sees_their_own_conversations_alone() -> None:
    mine, other = make_visitor(make_site()), make_visitor(make_site())
    conversation = make_conversation(mine)
    make_conversation(other)
    assert list(Conversation.objects.visible_to(mine)) == [conversation]
    assert not Conversation.objects.visible_to(Visitor(site=mine.site)).exists()


def test_visitor_is_shown_no_note_and_no_hidden_candidate_and_a_model_no_unselected_reply() -> None:
    conversation = make_conversation()
    said = make_message(conversation, "said")
    make_message(conversation, "note", kind=MessageKind.NOTE, author=make_user())
    make_reply(said, "hidden", is_shown=False, is_selected=False)
    make_reply(said, "unselected", is_selected=False, sibling_index=1)
    make_reply(said, "running", status=MessageStatus.RUNNING, sibling_index=2)
    make_reply(said, "chosen", sibling_index=3)
    make_message(conversation, "staff", kind=MessageKind.STAFF, author=make_user())
    make_message(conversation, "safety", kind=MessageKind.SAFETY, parent=said)
    shown = set(conversation.messages.shown_to_visitor().values_list("text", flat=True))
    assert shown == {"said", "unselected", "running", "chosen", "staff", "safety"}
    assert [message.text for message in conversation.messages.in_context()] == ["said", "chosen", "staff"]
