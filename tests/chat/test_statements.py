"""Statements that are written once give and keep what the ORM would."""

import uuid
from datetime import datetime, timedelta

import pytest
from django.db import IntegrityError, models, transaction
from django.utils import timezone

from chat.models import Conversation, Generation, Message, SafetyVerdict
from chat.models.conversations import MessageKind
from chat.models.statements import Select, insert, update
from tests.factories import make_conversation, make_message, make_reply, make_site, make_visitor

pytestmark = pytest.mark.django_db
BY_CLIENT: Select[Message] = Select(
    lambda conversation, client: Message.objects.filter(conversation_id=conversation, client_id=client),
    conversation=uuid.UUID,
    client=str,
)


@pytest.fixture
def conversation() -> Conversation:
    return make_conversation(make_visitor(make_site()))


def values(row: models.Model) -> dict[str, object]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def test_a_row_comes_as_the_orm_gives_it(conversation: Conversation) -> None:
    said = make_message(conversation)
    Message.objects.filter(pk=said.pk).update(client_id="c1", redacted_spans=[{"start": 1, "end": 2}])
    found = BY_CLIENT.first(conversation=conversation.pk, client="c1")
    assert found is not None
    assert values(found) == values(Message.objects.get(pk=said.pk))
    assert not found._state.adding


def test_a_statement_serves_one_value_after_the_other(conversation: Conversation) -> None:
    other = make_conversation(make_visitor(make_site()))
    assert BY_CLIENT.all(conversation=conversation.pk, client="c1") == []
    for where in (conversation, other):
        said = make_message(where)
        Message.objects.filter(pk=said.pk).update(client_id="c1")
        found = BY_CLIENT.all(conversation=where.pk, client="c1")
        assert [row.pk for row in found] == [said.pk]


def test_tuples_carry_the_types_of_their_fields(conversation: Conversation) -> None:
    reply = make_reply(make_message(conversation))
    rows: Select[tuple[object, ...]] = Select(
        lambda message: Message.objects.filter(pk=message).values_list("pk", "is_shown", "created_at", "parent__seq"),
        message=uuid.UUID,
    )
    assert reply.parent is not None
    assert rows.first(message=reply.pk) == (reply.pk, True, reply.created_at, reply.parent.seq)


def test_moments_and_numbers_are_parameters_too(conversation: Conversation) -> None:
    said = make_message(conversation)
    newer: Select[Message] = Select(
        lambda moment, after: Message.objects.filter(created_at__gte=moment, seq__gt=after),
        moment=datetime,
        after=int,
    )
    past = timezone.now() - timedelta(hours=1)
    assert newer.all(moment=past, after=said.seq - 1) == [said]
    assert newer.all(moment=past, after=said.seq) == []
    assert newer.all(moment=past + timedelta(hours=2), after=0) == []


def test_a_parameter_that_the_sql_lacks_is_an_error(conversation: Conversation) -> None:
    lost: Select[Message] = Select(lambda message: Message.objects.filter(seq=4), message=uuid.UUID)
    with pytest.raises(ValueError, match="message"):
        lost.all(message=conversation.pk)


def test_text_that_looks_like_sql_stays_text(conversation: Conversation) -> None:
    odd = "%s'; DROP TABLE chat_message; -- %(x)s \x01 😀"
    row = insert(Message(conversation=conversation, seq=90, changed_seq=90, kind=MessageKind.VISITOR, text=odd))
    assert Message.objects.get(pk=row.pk).text == odd


def test_an_inserted_row_is_the_one_that_the_orm_would_have_made(conversation: Conversation) -> None:
    fields = {"conversation": conversation, "kind": MessageKind.VISITOR, "text": "Hello.", "redacted_spans": [{"a": 1}]}
    ours = insert(Message(seq=91, changed_seq=91, client_id="a", **fields))
    theirs = Message.objects.create(seq=92, changed_seq=92, client_id="b", **fields)
    differs = {"id", "seq", "changed_seq", "client_id", "created_at"}
    ours_read, theirs_read = (values(Message.objects.get(pk=row.pk)) for row in (ours, theirs))
    assert {k: v for k, v in ours_read.items() if k not in differs} == {
        k: v for k, v in theirs_read.items() if k not in differs
    }
    assert values(ours)["created_at"] == ours_read["created_at"]


def test_an_automatic_key_is_known_after_the_insert(conversation: Conversation) -> None:
    reply = make_message(conversation)
    verdict = insert(
        SafetyVerdict(message=reply, direction="visitor", screen_version="s", level="none", own_level="none")
    )
    assert SafetyVerdict.objects.get(pk=verdict.pk).message_id == reply.pk


def test_the_database_s_own_rules_hold(conversation: Conversation) -> None:
    said = make_message(conversation)
    with pytest.raises(IntegrityError), transaction.atomic():
        insert(Message(conversation=conversation, seq=said.seq, changed_seq=said.seq, kind=MessageKind.VISITOR))


def test_an_update_writes_the_named_fields_and_no_other(conversation: Conversation) -> None:
    generation = Generation.objects.create(message=make_message(conversation), token_ids=[1])
    Generation.objects.filter(pk=generation.pk).update(seed=5)
    generation.token_ids, generation.token_logprobs, generation.temperature = [1, 2], [-0.5, None], 0.7
    update(generation, "token_ids", "token_logprobs")
    kept = Generation.objects.get(pk=generation.pk)
    assert (kept.token_ids, kept.token_logprobs, kept.temperature, kept.seed) == ([1, 2], [-0.5, None], None, 5)
