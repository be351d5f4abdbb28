"""Thumbs: appended, never overwritten; the newest holds; only on what a visitor was shown."""

from typing import Any
from uuid import uuid4

import pytest

from chat.models import Conversation, Feedback, Message
from chat.models.conversations import MessageKind, MessageStatus
from chat.protocol import ErrorCode, MessageView
from chat.services.errors import VerbRefused
from chat.services.feedback import set_feedback
from chat.services.views import changes_after
from tests.factories import make_conversation, make_message, make_reply, make_user

pytestmark = pytest.mark.django_db


def thumb(reply: Message, value: int = 1, *, reasons: tuple[str, ...] = (), comment: str = "") -> MessageView:
    return set_feedback(
        reply.conversation_id,
        reply.pk,
        visitor_id=reply.conversation.visitor_id,
        value=value,
        reasons=reasons,
        comment=comment,
    )


def shown_reply(**changed: Any) -> Message:
    return make_reply(make_message(make_conversation()), **changed)


def test_thumb_is_stored_and_shown() -> None:
    reply = shown_reply()
    view = thumb(reply, -1, reasons=("cold", "too long"), comment="It did not listen.")
    row = Feedback.objects.get()
    assert (row.message, row.visitor, row.value) == (reply, reply.conversation.visitor, -1)
    assert (row.reasons, row.comment) == (["cold", "too long"], "It did not listen.")
    assert (view.id, view.feedback) == (reply.pk, -1)


def test_changed_mind_is_a_new_row_and_the_newest_holds() -> None:
    reply = shown_reply()
    views = [thumb(reply, value) for value in (1, -1, 0)]
    assert [view.feedback for view in views] == [1, -1, 0]
    assert [row.value for row in Feedback.objects.order_by("id")] == [1, -1, 0]


def test_same_thumb_again_adds_nothing_and_changes_nothing() -> None:
    reply = shown_reply()
    first = thumb(reply, 1, comment="Thanks.")
    again = thumb(reply, 1, comment="Thanks.")
    assert again == first
    assert Feedback.objects.count() == 1
    assert thumb(reply, 1, comment="Thank you.").changed_seq > first.changed_seq
    assert Feedback.objects.count() == 2


def test_other_pages_learn_of_a_thumb_by_its_change() -> None:
    reply = shown_reply()
    reply.conversation.refresh_from_db()
    before = reply.conversation.last_seq
    thumb(reply)
    conversation = Conversation.objects.get(pk=reply.conversation_id)
    (change,) = changes_after(conversation, last_seq=before)
    assert (change.id, change.feedback, change.changed_seq) == (reply.pk, 1, conversation.last_seq)


def test_thumb_stays_with_its_sibling() -> None:
    reply = shown_reply()
    thumb(reply)
    assert reply.parent is not None
    sibling = make_reply(reply.parent, "another", sibling_index=1)
    thumb(sibling, -1)
    conversation = Conversation.objects.get(pk=reply.conversation_id)
    thumbs = {view.id: view.feedback for view in changes_after(conversation, last_seq=0)}
    assert (thumbs[reply.pk], thumbs[sibling.pk]) == (1, -1)


@pytest.mark.parametrize(
    "changed", [{"is_shown": False}, {"kind": MessageKind.STAFF}, {"kind": MessageKind.SAFETY}], ids=str
)
def test_what_is_no_shown_reply_takes_no_thumb(changed: dict[str, Any]) -> None:
    reply = shown_reply(**changed)
    with pytest.raises(VerbRefused) as refused:
        thumb(reply)
    assert refused.value.code is ErrorCode.NOT_FOUND
    assert not Feedback.objects.exists()


def test_reply_of_another_conversation_is_not_found() -> None:
    mine, other = make_conversation(), shown_reply()
    for message_id in (other.pk, uuid4(), make_message(mine, kind=MessageKind.NOTE, author=make_user()).pk):
        with pytest.raises(VerbRefused) as refused:
            set_feedback(mine.pk, message_id, visitor_id=mine.visitor_id, value=1, reasons=(), comment="")
        assert refused.value.code is ErrorCode.NOT_FOUND
    assert not Feedback.objects.exists()


def test_running_reply_takes_no_thumb_yet() -> None:
    reply = shown_reply(status=MessageStatus.RUNNING, text="")
    with pytest.raises(VerbRefused) as refused:
        thumb(reply)
    assert refused.value.code is ErrorCode.BUSY
