"""Rows as a page sees them: complete, in order of change, in a fixed number of queries, and never what is not shown."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from chat.models import Conversation, Feedback
from chat.models.conversations import MessageKind, MessageStatus
from chat.services.views import changes_after, conversation_view, message_view
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


def test_reply_is_shown_with_its_siblings_its_thumb_and_why_it_ended() -> None:
    conversation = make_conversation()
    said = make_message(conversation)
    first = make_reply(said, "one", is_selected=False)
    second = make_reply(
        said, "tw", sibling_index=1, status=MessageStatus.FAILED, failure_code="engine_broken", is_retryable=True
    )
    make_reply(said, "hidden", sibling_index=2, is_shown=False, is_selected=False)
    for value in (1, -1):
        Feedback.objects.create(message=first, visitor=conversation.visitor, value=value)
    one, other = message_view(first), message_view(second)
    assert (one.parent, one.sibling_index, one.sibling_count, one.selected, one.feedback) == (said.pk, 0, 2, False, -1)
    assert (other.sibling_index, other.status, other.text, other.code, other.retryable) == (
        1,
        "failed",
        "tw",
        "engine_broken",
        True,
    )


def test_running_reply_shows_no_text_and_a_staff_message_its_author() -> None:
    conversation = make_conversation()
    running = make_reply(make_message(conversation), "not yet", status=MessageStatus.RUNNING)
    staff = make_message(conversation, "Hi.", kind=MessageKind.STAFF, author=make_user(display_name="Robin"))
    assert message_view(running).text == ""
    assert message_view(staff).author == "Robin"


def test_changes_come_in_order_of_change_after_the_one_that_is_known() -> None:
    conversation = make_conversation()
    first, second = make_message(conversation, "one"), make_message(conversation, "two")
    conversation.refresh_from_db()
    first.changed_seq = conversation.take_seq()
    first.save()
    conversation.save()
    assert [view.text for view in changes_after(conversation, last_seq=0)] == ["two", "one"]
    assert [view.text for view in changes_after(conversation, last_seq=second.changed_seq)] == ["one"]
    assert changes_after(conversation, last_seq=conversation.last_seq) == ()


def test_page_far_behind_gets_the_oldest_changes_first_and_asks_again() -> None:
    conversation = make_conversation()
    for number in range(5):
        make_message(conversation, str(number))
    first = changes_after(conversation, last_seq=0, limit=3)
    rest = changes_after(conversation, last_seq=first[-1].changed_seq, limit=3)
    assert [view.text for view in (*first, *rest)] == ["0", "1", "2", "3", "4"]


def test_notes_and_hidden_candidates_are_no_changes_of_a_visitor() -> None:
    conversation = make_conversation()
    said = make_message(conversation, "said")
    make_message(conversation, "note", kind=MessageKind.NOTE, author=make_user())
    make_reply(said, "candidate", is_shown=False, is_selected=False)
    assert [view.text for view in changes_after(conversation, last_seq=0)] == ["said"]


@pytest.mark.parametrize("turns", [1, 12])
def test_number_of_queries_does_not_grow_with_the_conversation(
    django_assert_num_queries: DjangoAssertNumQueries, turns: int
) -> None:
    conversation = make_conversation()
    for _ in range(turns):
        reply = make_reply(make_message(conversation))
        Feedback.objects.create(message=reply, visitor=conversation.visitor, value=1)
    with django_assert_num_queries(3):
        assert len(changes_after(conversation, last_seq=0)) == 2 * turns


@pytest.mark.parametrize(
    ("changed", "field", "value"),
    [
        ({"card_level": "watch"}, "card", "watch"),
        ({"control": "human"}, "control", "human"),
        ({"state": "closed"}, "state", "closed"),
        ({"last_seq": 7}, "last_seq", 7),
    ],
)
def test_conversation_is_shown_as_it_stands(changed: dict[str, Any], field: str, value: object) -> None:
    policy = make_version()
    conversation = make_conversation(make_visitor(make_site(slug="shop")), policy=policy, **changed)
    view = conversation_view(Conversation.objects.get(pk=conversation.pk))
    assert getattr(view, field) == value
    assert (view.site, view.consent, view.policy) == ("shop", False, policy.name)
    assert view.resources
