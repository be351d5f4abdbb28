"""How replies end: one transaction behind a fence, once; what waited is claimed; the dead are taken over by one."""

import threading
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.utils import timezone

from chat import events
from chat.models import Alert, Conversation, Generation, Message, SafetyVerdict
from chat.models.conversations import Control, MessageKind, MessageStatus
from chat.services import endings
from chat.services.endings import (
    Finished,
    ReplyOutcome,
    ReplyVerdict,
    beat_hearts,
    card_after_block,
    conversation_of,
    finish_reply,
    owner_of,
    stale_replies,
    take_over_stale,
)
from chat.services.texts import sha256_of
from rubric import Completion, Sampling
from tests.factories import make_conversation, make_message, make_reply, make_site, make_visitor

pytestmark = pytest.mark.django_db


def running(conversation: Conversation | None = None, **generation: Any) -> Message:
    said = make_message(conversation or make_conversation())
    return make_reply(said, "", status=MessageStatus.RUNNING, generation={"owner": "host:1", **generation})


def outcome(status: MessageStatus = MessageStatus.COMPLETE, text: str = "I hear you.", **rest: Any) -> ReplyOutcome:
    return ReplyOutcome(status=status, text=text, **rest)


def finish(reply: Message, ended: ReplyOutcome | None = None, *, owner: str = "host:1") -> Finished | None:
    return finish_reply(reply.generation.fence, reply.pk, ended or outcome(), owner=owner)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """Replies whose grade was asked for."""
    graded: list[UUID] = []
    monkeypatch.setattr(endings, "_after_reply", [graded.append])
    return graded


def test_ending_stores_the_text_its_hash_and_everything_that_rebuilds_the_request() -> None:
    reply = running()
    completion = Completion(
        text="I hear you.",
        finish_reason="stop",
        token_ids=(1, 2, 3),
        logprobs=(-0.1, -0.2, -0.3),
        logprob_kind="processed",
        logprob_gap=None,
        prompt_tokens=40,
        completion_tokens=3,
        request_id="r",
        first_token_ms=12.5,
        total_ms=99.0,
    )
    finished = finish(
        reply,
        outcome(
            completion=completion,
            sampling=Sampling(temperature=0.7, top_p=0.9, max_tokens=220, stop=("<end>",), seed=5),
            engine_model="m",
            prompt_version="prompt-1",
            prompt_sha256="p" * 64,
            context_from_seq=1,
            request_id="r",
            queued_ms=1.0,
            first_shown_ms=20.0,
            total_ms=100.0,
        ),
    )
    assert finished is not None
    row = Message.objects.select_related("generation").get(pk=reply.pk)
    assert (row.status, row.text, row.sha256) == (MessageStatus.COMPLETE, "I hear you.", sha256_of("I hear you."))
    assert (finished.view.text, finished.sha256) == (row.text, row.sha256)
    kept = row.generation
    assert (kept.token_ids, kept.token_logprobs, kept.logprob_kind) == ([1, 2, 3], [-0.1, -0.2, -0.3], "processed")
    assert (kept.logprob_gap, kept.finish_reason, kept.prompt_tokens, kept.completion_tokens) == ("", "stop", 40, 3)
    assert (kept.temperature, kept.top_p, kept.max_tokens, kept.stop) == (0.7, 0.9, 220, ["<end>"])
    assert (kept.engine_model, kept.prompt_version, kept.context_from_seq) == ("m", "prompt-1", 1)
    assert (kept.queued_ms, kept.first_token_ms, kept.first_shown_ms, kept.total_ms) == (1.0, 12.5, 20.0, 100.0)
    assert kept.finished_at is not None


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (MessageStatus.STOPPED, "So far"),
        (MessageStatus.FAILED, "So far"),
        (MessageStatus.INTERRUPTED, "So far"),
        (MessageStatus.BLOCKED, "So far"),
        (MessageStatus.FAILED, ""),
    ],
)
def test_text_is_kept_in_every_ending(status: MessageStatus, text: str) -> None:
    reply = running()
    finished = finish(reply, outcome(status, text, code="why", is_retryable=True))
    assert finished is not None
    row = Message.objects.get(pk=reply.pk)
    assert (row.status, row.text, row.failure_code, row.is_retryable) == (status, text, "why", True)
    assert (finished.view.code, finished.view.retryable) == ("why", True)
    assert row.generation.logprob_gap


def test_page_that_was_away_finds_the_ending_among_its_changes() -> None:
    reply = running()
    before = reply.conversation.last_seq
    finish(reply)
    reply.refresh_from_db()
    reply.conversation.refresh_from_db()
    assert reply.changed_seq == reply.conversation.last_seq > before
    assert reply.seq < reply.changed_seq


def test_second_ending_and_foreign_fence_change_nothing(asked: list[UUID]) -> None:
    reply = running()
    assert finish_reply(uuid4(), reply.pk, outcome(text="not mine"), owner="host:2") is None
    assert finish(reply) is not None
    reply.refresh_from_db()
    seq = reply.changed_seq
    assert finish(reply, outcome(MessageStatus.FAILED, "again")) is None
    reply.refresh_from_db()
    assert (reply.status, reply.text, reply.changed_seq) == (MessageStatus.COMPLETE, "I hear you.", seq)


def test_process_that_was_given_up_for_dead_cannot_end_its_reply() -> None:
    reply = running()
    fresh = take_over_stale(reply.pk, reply.generation.fence, owner="host:2")
    assert fresh is not None
    assert finish(reply, outcome(text="I was only asleep.")) is None
    ended = finish_reply(fresh, reply.pk, outcome(MessageStatus.INTERRUPTED, "So far"), owner="host:2")
    assert ended is not None
    reply.refresh_from_db()
    assert (reply.status, reply.text) == (MessageStatus.INTERRUPTED, "So far")


def test_reply_that_was_erased_while_it_ran_ends_without_an_error() -> None:
    reply = running()
    fence, pk = reply.generation.fence, reply.pk
    Conversation.objects.filter(pk=reply.conversation_id).delete()
    assert finish_reply(fence, pk, outcome(), owner="host:1") is None
    assert conversation_of(pk) is None
    assert owner_of(pk) == ""


# --- what waited ----------------------------------------------------------------------------------------------------


def test_what_arrived_meanwhile_is_claimed_with_the_ending() -> None:
    reply = running()
    make_message(reply.conversation, "second")
    newest = make_message(reply.conversation, "third")
    finished = finish(reply)
    assert finished is not None
    assert finished.next_claim is not None
    assert finished.next_claim.parent_id == newest.pk
    assert owner_of(finished.next_claim.message_id) == "host:1"


@pytest.mark.parametrize("status", [MessageStatus.STOPPED, MessageStatus.FAILED, MessageStatus.BLOCKED])
def test_what_waited_is_answered_however_the_reply_ended(status: MessageStatus) -> None:
    reply = running()
    make_message(reply.conversation, "second")
    finished = finish(reply, outcome(status, ""))
    assert finished is not None
    assert finished.next_claim is not None


def test_nothing_is_claimed_where_nothing_waited_or_a_person_took_over() -> None:
    reply = running()
    finished = finish(reply)
    assert finished is not None
    assert finished.next_claim is None
    other = running()
    make_message(other.conversation, "waits")
    Conversation.objects.filter(pk=other.conversation_id).update(control=Control.HUMAN)
    finished = finish(other)
    assert finished is not None
    assert finished.next_claim is None


# --- after the commit -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "text", "is_graded"),
    [
        (MessageStatus.COMPLETE, "Yes.", True),
        (MessageStatus.STOPPED, "Ye", True),
        (MessageStatus.STOPPED, "", False),
        (MessageStatus.FAILED, "Ye", False),
        (MessageStatus.INTERRUPTED, "Ye", False),
        (MessageStatus.BLOCKED, "Ye", False),
    ],
)
def test_grade_is_asked_for_after_the_commit_and_only_where_there_is_something_to_grade(
    asked: list[UUID], django_capture_on_commit_callbacks: Any, status: MessageStatus, text: str, is_graded: bool
) -> None:
    reply = running()
    with django_capture_on_commit_callbacks(execute=True):
        finish(reply, outcome(status, text))
        assert asked == []
    assert asked == ([reply.pk] if is_graded else [])


@pytest.mark.django_db(transaction=True)
def test_hook_that_fails_takes_no_ending_with_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(reply_id: UUID) -> None:
        raise ConnectionError("what somebody wrote")

    told: list[str] = []
    monkeypatch.setattr(endings, "_after_reply", [broken])
    events.use_publisher(lambda conversation_id, frame, is_for_visitor: told.append(frame))
    try:
        reply = running()
        assert finish(reply) is not None
    finally:
        events.use_publisher(None)
    assert len(told) == 1
    assert str(reply.pk) in told[0]
    assert "ConnectionError" in caplog.text
    assert "somebody" not in caplog.text


@pytest.mark.django_db(transaction=True)
def test_publisher_that_fails_takes_no_ending_and_no_grade_with_it(asked: list[UUID]) -> None:
    def broken(conversation_id: UUID, frame: str, is_for_visitor: bool) -> None:
        raise RuntimeError("the loop is closed")

    events.use_publisher(broken)
    try:
        reply = running()
        assert finish(reply) is not None
    finally:
        events.use_publisher(None)
    assert asked == [reply.pk]


# --- the output screen's verdict ------------------------------------------------------------------------------------


def test_calm_verdict_is_kept_and_the_reply_may_train() -> None:
    reply = running()
    finish(reply, outcome(verdict=ReplyVerdict(screen_version="screen-1", level="none", probability=0.1)))
    verdict = SafetyVerdict.objects.get()
    assert (verdict.message, verdict.direction, verdict.level, verdict.score) == (reply, "reply", "none", 0.1)
    assert (verdict.card, verdict.excluded_reason) == ("none", "")
    assert not Message.objects.get(pk=reply.pk).is_excluded
    assert not Alert.objects.exists()


def test_blocked_reply_alerts_staff_raises_the_card_and_never_trains() -> None:
    conversation = make_conversation(make_visitor(make_site(country="DE")))
    reply = running(conversation)
    verdict = ReplyVerdict(screen_version="screen-1", level="high", probability=0.9)
    finish(reply, outcome(MessageStatus.BLOCKED, "So far", verdict=verdict))
    reply.refresh_from_db()
    assert reply.is_excluded
    alert = Alert.objects.get()
    assert (alert.kind, alert.message_id) == ("blocked", reply.pk)
    kept = SafetyVerdict.objects.get()
    assert (kept.card, kept.excluded_reason) == ("watch", "reply_blocked")
    assert card_after_block(conversation.pk)
    conversation.refresh_from_db()
    assert conversation.card_level == "watch"


def test_block_does_not_lower_a_high_card() -> None:
    conversation = make_conversation(card_level="high")
    card_after_block(conversation.pk)
    conversation.refresh_from_db()
    assert conversation.card_level == "high"


# --- hearts ---------------------------------------------------------------------------------------------------------


def test_only_unfinished_replies_without_a_heartbeat_are_stale() -> None:
    now = timezone.now()
    stale_after = timedelta(seconds=6)
    dead = running(heartbeat_at=now - timedelta(seconds=7))
    running(heartbeat_at=now - timedelta(seconds=5))
    ended = running(heartbeat_at=now - timedelta(seconds=60))
    finish(ended)
    assert stale_replies(now=now, stale_after=stale_after) == [(dead.pk, dead.generation.fence)]


def test_heartbeat_keeps_ours_alive_and_says_how_many_are_still_ours() -> None:
    now = timezone.now()
    old = now - timedelta(seconds=60)
    mine, lost, ended = (running(heartbeat_at=old) for _ in range(3))
    take_over_stale(lost.pk, lost.generation.fence, owner="host:2")
    finish(ended)
    fences = [one.generation.fence for one in (mine, lost, ended)]
    assert beat_hearts(fences, now=now) == 1
    assert Generation.objects.get(message=mine).heartbeat_at == now
    assert beat_hearts([], now=now) == 0


def test_owner_is_known_while_a_reply_runs_and_not_afterwards() -> None:
    reply = running()
    assert owner_of(reply.pk) == "host:1"
    assert conversation_of(reply.pk) == reply.conversation_id
    finish(reply)
    assert owner_of(reply.pk) == ""


@pytest.mark.django_db(transaction=True)
def test_dead_reply_is_taken_over_by_one_process_and_ended_once() -> None:
    reply = running(heartbeat_at=timezone.now() - timedelta(seconds=60))
    fence = reply.generation.fence
    make_message(reply.conversation, "waits")
    taken: list[UUID] = []
    ended: list[Finished | None] = []

    def take(owner: str) -> None:
        try:
            fresh = take_over_stale(reply.pk, fence, owner=owner)
            if fresh is not None:
                taken.append(fresh)
                ended.append(finish_reply(fresh, reply.pk, outcome(MessageStatus.INTERRUPTED, ""), owner=owner))
        finally:
            connection.close()

    threads = [threading.Thread(target=take, args=(f"host:{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert len(taken) == 1
    assert ended[0] is not None
    assert ended[0].next_claim is not None
    assert reply.conversation.messages.filter(kind=MessageKind.REPLY, status=MessageStatus.RUNNING).count() == 1
