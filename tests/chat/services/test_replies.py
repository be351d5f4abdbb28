"""Claims and siblings: never two replies at once, nothing unanswered, nothing deleted, exactly one selected."""

import threading
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from pytest_django import Settings

from chat.models import Conversation, Feedback, Generation, Message
from chat.models.conversations import Control, ConversationState, MessageKind, MessageOrigin, MessageStatus
from chat.models.learning import VersionState
from chat.protocol import ErrorCode
from chat.services.errors import VerbRefused
from chat.services.replies import ReplyClaim, claim_next, regenerate, select_reply
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


def claim(conversation: Conversation) -> ReplyClaim | None:
    with transaction.atomic():
        locked = Conversation.objects.select_for_update().get(pk=conversation.pk)
        claimed = claim_next(locked, owner="host:1")
        locked.save()
    return claimed


def selection(conversation: Conversation) -> list[tuple[int, bool]]:
    rows = conversation.messages.filter(kind=MessageKind.REPLY).order_by("seq")
    return [(row.sibling_index, row.is_selected) for row in rows]


def running(parent: Message) -> Message:
    return make_reply(parent, "", status=MessageStatus.RUNNING)


# --- claiming -------------------------------------------------------------------------------------------------------


def test_claim_answers_everything_that_was_said_since_the_last_reply() -> None:
    conversation = make_conversation()
    make_reply(make_message(conversation, "one"))
    make_message(conversation, "two")
    newest = make_message(conversation, "three")
    claimed = claim(conversation)
    assert claimed is not None
    assert (claimed.parent_id, claimed.context_to_seq) == (newest.pk, newest.seq)
    assert claimed.refusal == ""
    row = Message.objects.get(pk=claimed.message_id)
    assert (row.origin, row.sibling_index, row.is_selected, row.text) == (MessageOrigin.SERVED, 0, True, "")
    assert claimed.view.seq == row.seq


def test_nothing_is_claimed_where_nothing_waits() -> None:
    conversation = make_conversation()
    assert claim(conversation) is None
    make_reply(make_message(conversation))
    assert claim(conversation) is None


def test_nothing_is_claimed_while_a_reply_runs() -> None:
    conversation = make_conversation()
    running(make_message(conversation))
    make_message(conversation, "more")
    assert claim(conversation) is None


@pytest.mark.parametrize("changed", [{"control": Control.HUMAN}, {"state": ConversationState.CLOSED}])
def test_nothing_is_claimed_where_a_person_answers_or_the_talk_is_over(changed: dict[str, Any]) -> None:
    conversation = make_conversation(**changed)
    make_message(conversation)
    assert claim(conversation) is None


def test_message_that_got_the_safety_message_is_answered_by_no_model() -> None:
    conversation = make_conversation()
    high = make_message(conversation, "high")
    make_message(conversation, "call", kind=MessageKind.SAFETY, parent=high)
    assert claim(conversation) is None
    make_message(conversation, "later")
    claimed = claim(conversation)
    assert claimed is not None
    assert claimed.parent_id != high.pk


def test_message_before_a_high_one_is_still_answered() -> None:
    conversation = make_conversation()
    first = make_message(conversation, "waits")
    high = make_message(conversation, "high")
    make_message(conversation, "call", kind=MessageKind.SAFETY, parent=high)
    claimed = claim(conversation)
    assert claimed is not None
    assert claimed.parent_id == first.pk


def test_failed_reply_is_not_claimed_again_by_itself() -> None:
    conversation = make_conversation()
    make_reply(make_message(conversation), "", status=MessageStatus.FAILED)
    assert claim(conversation) is None


def test_visitor_with_two_running_replies_gets_no_third(settings: Settings) -> None:
    settings.RAPPORT_REPLIES_PER_VISITOR = 2
    visitor = make_visitor(make_site())
    talks = [make_conversation(visitor) for _ in range(3)]
    for talk in talks:
        make_message(talk)
    claims = [claim(talk) for talk in talks]
    assert [one.refusal if one else None for one in claims] == ["", "", "busy"]
    other = make_conversation(make_visitor(visitor.site))
    make_message(other)
    claimed = claim(other)
    assert claimed is not None
    assert claimed.refusal == ""


def test_watched_turn_keeps_its_reply_out_of_training() -> None:
    conversation = make_conversation()
    make_message(conversation, is_excluded=True)
    claimed = claim(conversation)
    assert claimed is not None
    assert Message.objects.get(pk=claimed.message_id).is_excluded


def test_move_to_another_version_is_told_with_the_claim() -> None:
    pinned = make_version(state=VersionState.RETIRED)
    live = make_version()
    conversation = make_conversation(policy=pinned)
    make_message(conversation)
    Conversation.objects.update(last_activity_at=timezone.now() - timedelta(hours=1))
    claimed = claim(conversation)
    assert claimed is not None
    assert (claimed.moved_to, claimed.policy) == (live.name, live.name)
    conversation.refresh_from_db()
    assert conversation.policy == live


def test_every_claim_has_a_fence_and_a_seed_of_its_own() -> None:
    claims = []
    for _ in range(5):
        conversation = make_conversation()
        make_message(conversation)
        claims.append(claim(conversation))
    assert len({one.fence for one in claims if one}) == 5
    assert len({one.seed for one in claims if one}) == 5


def test_database_itself_refuses_two_running_replies_in_a_conversation() -> None:
    """Rule 3: whatever the code does."""
    conversation = make_conversation()
    running(make_message(conversation))
    with pytest.raises(IntegrityError), transaction.atomic():
        make_reply(make_message(conversation), "", status=MessageStatus.QUEUED)
    running(make_message(make_conversation()))


@pytest.mark.django_db(transaction=True)
def test_claims_at_once_make_one_running_reply() -> None:
    conversation = make_conversation()
    make_message(conversation)
    got: list[ReplyClaim | None] = []

    def go() -> None:
        try:
            got.append(claim(conversation))
        finally:
            connection.close()

    threads = [threading.Thread(target=go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert len(got) == 8
    assert len([one for one in got if one]) == 1
    assert Generation.objects.count() == 1


# --- siblings -------------------------------------------------------------------------------------------------------


def test_regenerating_adds_a_sibling_and_takes_nothing_away() -> None:
    conversation = make_conversation()
    said = make_message(conversation)
    first = make_reply(said, "first")
    Feedback.objects.create(message=first, visitor=conversation.visitor, value=1)
    claimed = regenerate(conversation.pk, first.pk, owner="host:1")
    assert (claimed.parent_id, claimed.context_to_seq) == (said.pk, said.seq)
    assert selection(conversation) == [(0, False), (1, True)]
    assert Message.objects.get(pk=claimed.message_id).origin == MessageOrigin.REGENERATED
    Message.objects.filter(pk=claimed.message_id).update(status=MessageStatus.COMPLETE, text="second")
    regenerate(conversation.pk, first.pk, owner="host:1")
    assert selection(conversation) == [(0, False), (1, False), (2, True)]
    first.refresh_from_db()
    assert first.text == "first"
    assert Feedback.objects.get().value == 1


def test_page_hears_of_what_was_unselected() -> None:
    conversation = make_conversation()
    first = make_reply(make_message(conversation))
    regenerate(conversation.pk, first.pk, owner="host:1")
    conversation.refresh_from_db()
    first.refresh_from_db()
    assert 2 < first.changed_seq <= conversation.last_seq


@pytest.mark.parametrize("status", [MessageStatus.FAILED, MessageStatus.INTERRUPTED, MessageStatus.BLOCKED])
def test_retry_is_a_sibling_too(status: MessageStatus) -> None:
    conversation = make_conversation()
    broken = make_reply(make_message(conversation), "so far", status=status)
    regenerate(conversation.pk, broken.pk, owner="host:1")
    assert selection(conversation) == [(0, False), (1, True)]
    broken.refresh_from_db()
    assert (broken.text, broken.status) == ("so far", status)


def refused(conversation: Conversation, message_id: Any) -> ErrorCode:
    with pytest.raises(VerbRefused) as error:
        regenerate(conversation.pk, message_id, owner="host:1")
    return error.value.code


def test_only_a_shown_reply_of_this_conversation_can_be_regenerated_or_selected() -> None:
    conversation = make_conversation()
    said = make_message(conversation)
    hidden = make_reply(said, is_shown=False)
    foreign = make_reply(make_message(make_conversation()))
    staff = make_message(conversation, kind=MessageKind.STAFF, author=make_user())
    for message_id in (said.pk, hidden.pk, foreign.pk, staff.pk, uuid4()):
        assert refused(conversation, message_id) is ErrorCode.NOT_FOUND
        with pytest.raises(VerbRefused) as error:
            select_reply(conversation.pk, message_id)
        assert error.value.code is ErrorCode.NOT_FOUND
    foreign.refresh_from_db()
    assert foreign.is_selected


def test_nothing_is_regenerated_while_a_reply_runs_or_a_person_answers() -> None:
    conversation = make_conversation()
    reply = make_reply(make_message(conversation))
    Conversation.objects.update(control=Control.HUMAN)
    assert refused(conversation, reply.pk) is ErrorCode.BUSY
    Conversation.objects.update(control=Control.MODEL)
    running(make_message(conversation))
    assert refused(conversation, reply.pk) is ErrorCode.BUSY
    assert selection(conversation)[0] == (0, True)


def test_nothing_is_regenerated_in_a_closed_conversation() -> None:
    conversation = make_conversation(state=ConversationState.CLOSED)
    reply = make_reply(make_message(conversation))
    assert refused(conversation, reply.pk) is ErrorCode.CLOSED


def test_selecting_leaves_exactly_one_sibling_selected() -> None:
    conversation = make_conversation()
    said = make_message(conversation)
    siblings = [make_reply(said, f"no {n}", sibling_index=n, is_selected=n == 2) for n in range(3)]
    other_turn = make_reply(make_message(conversation), "another turn")
    view = select_reply(conversation.pk, siblings[0].pk)
    assert (view.id, view.selected, view.sibling_count) == (siblings[0].pk, True, 3)
    assert selection(conversation) == [(0, True), (1, False), (2, False), (0, True)]
    select_reply(conversation.pk, siblings[1].pk)
    assert selection(conversation) == [(0, False), (1, True), (2, False), (0, True)]
    other_turn.refresh_from_db()
    assert other_turn.is_selected


def test_selecting_gives_every_changed_row_its_own_change() -> None:
    conversation = make_conversation()
    said = make_message(conversation)
    first = make_reply(said, "one")
    second = make_reply(said, "two", sibling_index=1, is_selected=False)
    conversation.refresh_from_db()
    before = conversation.last_seq
    select_reply(conversation.pk, second.pk)
    conversation.refresh_from_db()
    changed = {row.pk: row.changed_seq for row in Message.objects.filter(changed_seq__gt=before)}
    assert set(changed) == {first.pk, second.pk}
    assert len(set(changed.values())) == 2
    assert conversation.last_seq == max(changed.values())


def test_reply_that_runs_cannot_be_selected() -> None:
    conversation = make_conversation()
    row = running(make_message(conversation))
    with pytest.raises(VerbRefused) as error:
        select_reply(conversation.pk, row.pk)
    assert error.value.code is ErrorCode.BUSY
