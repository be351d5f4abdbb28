"""A visitor's message and what it sets off: everything together after one commit, or nothing at all."""

import threading
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from django.db import connection
from pytest_django import DjangoCaptureOnCommitCallbacks

from chat import events
from chat.models import Alert, Conversation, Generation, Message, SafetyVerdict
from chat.models.conversations import Control, ConversationState, MessageKind, MessageStatus
from chat.protocol import ErrorCode, SendMessage
from chat.safety import Reading
from chat.services import messages
from chat.services.errors import VerbRefused
from chat.services.messages import Posted, acknowledge_card, post_message, recent_visitor_texts
from rubric import MESSAGES_WATCHED_AFTER_HIGH, Level
from tests.factories import make_conversation, make_message, make_reply, make_version

pytestmark = pytest.mark.django_db
FAILED = Reading(levels=(), probability=None, is_covered=True, version="screen-unknown", failure="EncoderTimeout")


def reading(level: Level = Level.NONE, *, is_covered: bool = True) -> Reading:
    return Reading(levels=(level,), probability=0.4, is_covered=is_covered, version="screen-1")


def post(
    conversation: Conversation, text: str = "Hello.", *, client_id: str = "", read: Reading | None = None
) -> Posted:
    event = SendMessage(client_id=client_id or f"c{Message.objects.count()}", text=text)
    return post_message(
        conversation.pk, event, reading=read or reading(), owner="host:1", safety_text="Please call somebody."
    )


def end(posted: Posted) -> None:
    """The claimed reply ends, so that the next message is claimed again."""
    assert posted.claim is not None
    Message.objects.filter(pk=posted.claim.message_id).update(status=MessageStatus.COMPLETE, text="Yes.")


@pytest.fixture
def told(django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks) -> Iterator[list[dict[str, Any]]]:
    """What followers were told so far."""
    frames: list[dict[str, Any]] = []
    events.use_publisher(lambda conversation_id, frame, is_for_visitor: frames.append(orjson.loads(frame)))
    yield frames
    events.use_publisher(None)


def test_message_its_verdict_and_the_claim_of_its_reply_come_together() -> None:
    policy = make_version()
    conversation = make_conversation()
    posted = post(conversation, "My day was long.")
    said, reply = conversation.messages.order_by("seq")
    verdict = SafetyVerdict.objects.get()
    assert (posted.view.id, posted.is_new, posted.level, posted.card) == (said.pk, True, "none", "none")
    assert (said.text, said.kind, said.seq, said.is_excluded) == ("My day was long.", MessageKind.VISITOR, 1, False)
    assert (verdict.message, verdict.level, verdict.own_level, verdict.score, verdict.screen_version) == (
        said,
        "none",
        "none",
        0.4,
        "screen-1",
    )
    assert posted.claim is not None
    assert (reply.pk, reply.parent, reply.status) == (posted.claim.message_id, said, MessageStatus.RUNNING)
    generation = Generation.objects.get()
    assert (generation.owner, generation.fence, generation.policy) == ("host:1", posted.claim.fence, policy)
    assert (generation.context_to_seq, generation.finished_at) == (said.seq, None)
    assert generation.heartbeat_at is not None
    conversation.refresh_from_db()
    assert (conversation.last_seq, conversation.visitor_turns, conversation.policy) == (2, 1, policy)


def test_same_client_id_is_one_message_and_the_identical_answer() -> None:
    conversation = make_conversation()
    first = post(conversation, client_id="same")
    again = post(conversation, client_id="same", read=reading(Level.HIGH))
    assert (again.view, again.is_new, again.claim, again.alert_kind) == (first.view, False, None, None)
    assert conversation.messages.filter(kind=MessageKind.VISITOR).count() == 1
    assert SafetyVerdict.objects.count() == 1
    assert not Alert.objects.exists()


def test_same_client_id_in_another_conversation_is_another_message() -> None:
    one, other = make_conversation(), make_conversation()
    assert post(one, client_id="same").view.id != post(other, client_id="same").view.id


def test_same_client_id_is_answered_even_after_the_conversation_closed() -> None:
    conversation = make_conversation()
    first = post(conversation, client_id="same")
    Conversation.objects.update(state=ConversationState.CLOSED)
    assert post(conversation, client_id="same").view == first.view


def test_closed_conversation_takes_nothing() -> None:
    conversation = make_conversation(state=ConversationState.CLOSED)
    with pytest.raises(VerbRefused) as refused:
        post(conversation)
    assert refused.value.code is ErrorCode.CLOSED
    assert not Message.objects.exists()


def test_error_on_the_way_leaves_nothing_at_all(
    monkeypatch: pytest.MonkeyPatch, told: list[dict[str, Any]], django_capture_on_commit_callbacks: Any
) -> None:
    conversation = make_conversation()

    def broken(*args: object, **options: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(messages, "claim_next", broken)
    with pytest.raises(ZeroDivisionError), django_capture_on_commit_callbacks(execute=True):
        post(conversation)
    conversation.refresh_from_db()
    assert (Message.objects.count(), SafetyVerdict.objects.count(), conversation.last_seq) == (0, 0, 0)
    assert told == []


def test_followers_are_told_after_the_commit_and_in_order(
    told: list[dict[str, Any]], django_capture_on_commit_callbacks: Any
) -> None:
    conversation = make_conversation()
    with django_capture_on_commit_callbacks(execute=True):
        post(conversation, read=reading(Level.HIGH))
        before_commit = list(told)
    assert before_commit == []
    assert [(event["type"], event["message"]["kind"]) for event in told] == [
        ("message.changed", "visitor"),
        ("message.changed", "safety"),
    ]


def test_high_gets_the_safety_message_an_alert_and_no_claim() -> None:
    conversation = make_conversation()
    posted = post(conversation, read=reading(Level.HIGH))
    said, safety = conversation.messages.order_by("seq")
    assert posted.claim is None
    assert (posted.level, posted.card, posted.alert_kind) == ("high", "high", "crisis")
    assert (safety.kind, safety.parent, safety.text, safety.status) == (
        MessageKind.SAFETY,
        said,
        "Please call somebody.",
        MessageStatus.COMPLETE,
    )
    assert (said.is_excluded, safety.is_excluded) == (True, True)
    alert = Alert.objects.get()
    assert (alert.kind, alert.message, alert.conversation) == ("crisis", said, conversation)
    assert SafetyVerdict.objects.get().excluded_reason == "safety_high"
    conversation.refresh_from_db()
    assert (conversation.card_level, conversation.watch_until_turn) == ("high", 1 + MESSAGES_WATCHED_AFTER_HIGH)


def test_screen_that_failed_is_high_and_says_so_to_staff() -> None:
    conversation = make_conversation()
    posted = post(conversation, read=FAILED)
    assert (posted.level, posted.claim, posted.alert_kind) == ("high", None, "screen_down")
    verdict = SafetyVerdict.objects.get()
    assert (verdict.score, verdict.screen_version) == (None, "screen-unknown")
    conversation.refresh_from_db()
    assert conversation.watch_until_turn == 0


def test_watch_is_answered_with_a_card_and_never_trains() -> None:
    conversation = make_conversation()
    posted = post(conversation, read=reading(Level.WATCH))
    assert (posted.card, posted.alert_kind) == ("watch", None)
    assert posted.claim is not None
    assert [message.is_excluded for message in conversation.messages.order_by("seq")] == [True, True]
    assert not Alert.objects.exists()


def test_card_that_stands_is_not_lowered_by_a_calm_message() -> None:
    conversation = make_conversation(card_level="high")
    post(conversation)
    conversation.refresh_from_db()
    assert conversation.card_level == "high"


def test_language_card_is_shown_once_and_remembered() -> None:
    conversation = make_conversation()
    first = post(conversation, "bonjour", read=reading(is_covered=False))
    end(first)
    second = post(conversation, "encore", read=reading(is_covered=False))
    assert (first.card, second.card) == ("watch", "none")
    conversation.refresh_from_db()
    assert conversation.has_language_card


def test_message_during_a_reply_waits_for_whoever_runs_it() -> None:
    conversation = make_conversation()
    assert post(conversation).claim is not None
    assert post(conversation).claim is None
    assert conversation.messages.filter(kind=MessageKind.REPLY).count() == 1


def test_high_during_a_reply_is_met_at_once() -> None:
    conversation = make_conversation()
    post(conversation)
    posted = post(conversation, read=reading(Level.HIGH))
    assert posted.safety_view is not None
    assert posted.claim is None


def test_while_a_person_answers_the_model_does_not() -> None:
    conversation = make_conversation(control=Control.HUMAN)
    posted = post(conversation)
    assert (posted.is_new, posted.claim) == (True, None)
    assert not Generation.objects.exists()
    assert post(conversation, read=reading(Level.HIGH)).alert_kind == "crisis"


@pytest.mark.django_db(transaction=True)
def test_messages_at_once_get_one_seq_each_and_one_reply_between_them() -> None:
    conversation = make_conversation()
    errors: list[BaseException] = []
    claims: list[object] = []

    def send(number: int) -> None:
        try:
            posted = post(conversation, f"Number {number}.", client_id=f"n{number}")
            claims.append(posted.claim)
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert errors == []
    rows = list(conversation.messages.order_by("seq"))
    assert [row.seq for row in rows] == list(range(1, 12))
    assert [row.kind for row in rows].count(MessageKind.REPLY) == 1
    assert len([claim for claim in claims if claim]) == 1
    conversation.refresh_from_db()
    assert (conversation.last_seq, conversation.visitor_turns) == (11, 10)


@pytest.mark.django_db(transaction=True)
def test_one_client_id_at_once_from_ten_doors_is_one_message() -> None:
    conversation = make_conversation()
    posted: list[Posted] = []

    def send() -> None:
        try:
            posted.append(post(conversation, client_id="same"))
        finally:
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(posted) == 10
    assert {one.view.id for one in posted} == {posted[0].view.id}
    assert [one.is_new for one in posted].count(True) == 1


# --- what the screen reads before -----------------------------------------------------------------------------------


def said(conversation: Conversation, text: str, *, own_level: str = "none") -> Message:
    message = make_message(conversation, text)
    SafetyVerdict.objects.create(
        message=message, direction="visitor", screen_version="s", level=own_level, own_level=own_level
    )
    return message


def test_screen_reads_the_visitors_newest_three_messages_oldest_first() -> None:
    conversation = make_conversation()
    for text in ("one", "two", "three", "four"):
        make_reply(said(conversation, text), "a reply")
    assert recent_visitor_texts(conversation.pk) == ("two", "three", "four")
    assert recent_visitor_texts(make_conversation().pk) == ()


def test_message_that_was_high_by_itself_is_not_read_again() -> None:
    conversation = make_conversation()
    said(conversation, "before")
    said(conversation, "the disclosure", own_level="high")
    assert recent_visitor_texts(conversation.pk) == ()
    said(conversation, "only joking", own_level="watch")
    assert recent_visitor_texts(conversation.pk) == ("only joking",)


# --- the card was a misunderstanding --------------------------------------------------------------------------------


def test_misunderstanding_lowers_the_card_and_the_watched_turns_but_clears_neither() -> None:
    conversation = make_conversation()
    post(conversation, read=reading(Level.HIGH))
    assert acknowledge_card(conversation.pk) == "watch"
    conversation.refresh_from_db()
    assert (conversation.card_level, conversation.watch_until_turn) == ("watch", 4)
    assert acknowledge_card(conversation.pk) == "watch"
    levels = []
    for _ in range(4):
        posted = post(conversation, "I was only joking.")
        levels.append(posted.level)
        end(posted)
    assert levels == ["watch", "watch", "watch", "none"]


def test_after_a_misunderstanding_the_next_high_is_high() -> None:
    conversation = make_conversation()
    post(conversation, read=reading(Level.HIGH))
    acknowledge_card(conversation.pk)
    assert post(conversation, read=reading(Level.HIGH)).alert_kind == "crisis"
    assert Alert.objects.count() == 2


def test_misunderstanding_without_a_card_changes_nothing() -> None:
    conversation = make_conversation()
    assert acknowledge_card(conversation.pk) == "none"
    conversation.refresh_from_db()
    assert (conversation.card_level, conversation.watch_until_turn) == ("none", 0)
