"""What the worker does: it yields to visitors, grades one reply at a time, and gives up in the end."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery
from django.utils import timezone
from pytest_django import Settings

from chat import admission, policies, tasks
from chat.admission import take_grading_lock
from chat.models import Message, TurnScore
from chat.models.conversations import MessageStatus
from chat.models.learning import VersionKind
from chat.services.endings import ReplyOutcome, finish_reply
from chat.store import redis_sync
from chat.tasks import MAX_ATTEMPTS, BrokerRequests, enqueue_grading, grade_missed, grade_turn
from deploy.celery import app as celery_app
from rubric import EngineTimeout
from tests.chat.conftest import new_conversation
from tests.factories import make_conversation, make_message, make_reply, make_version
from tests.fakes.engine import closed_port
from tests.fakes.model import ScriptedModel
from tests.rubric.rubrics import draft_text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.redis]
LEVELS = json.dumps({name: {"quote": "", "level": 0.5} for name in ("C1", "C2", "A1", "A2", "P1", "P2")})
QUEUE = "judge"


@pytest.fixture(autouse=True)
def clean(clean_redis: None) -> None:
    """An empty broker, too."""


@pytest.fixture
def reply(transactional_db: None) -> Message:
    make_version(VersionKind.GENERATOR)
    make_version(VersionKind.JUDGE)
    return finished_reply()


def finished_reply(seconds_ago: float = 0.0) -> Message:
    at = timezone.now() - timedelta(seconds=seconds_ago)
    return make_reply(make_message(make_conversation(), "Hello."), "Hi there.", generation={"finished_at": at})


def answer_with(monkeypatch: pytest.MonkeyPatch, *script: Any) -> ScriptedModel:
    model = ScriptedModel(list(script))

    async def model_of(name: str) -> ScriptedModel:
        return model

    monkeypatch.setattr(policies, "model_of", model_of)
    return model


def queued() -> list[dict[str, Any]]:
    """What waits at the broker for a grading worker."""
    return [json.loads(row) for row in redis_sync().lrange(QUEUE, 0, -1)]


def until_queued(count: int, timeout_s: float = 5.0) -> list[dict[str, Any]]:
    deadline = time.monotonic() + timeout_s
    while len(queued()) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    return queued()


# --- grade_turn -----------------------------------------------------------------------------------------------------


def test_finished_reply_is_graded_and_the_lock_given_back(reply: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, draft_text(), LEVELS)
    assert grade_turn(str(reply.pk)) == "done"
    assert TurnScore.objects.get().reply_id == reply.pk
    assert take_grading_lock("next")
    assert queued() == []


def test_second_delivery_of_a_task_grades_nothing_again(reply: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, draft_text(), LEVELS)
    assert [grade_turn(str(reply.pk)) for _ in range(2)] == ["done", "already"]
    assert TurnScore.objects.count() == 1


@pytest.mark.parametrize("waits_for", ["a first token", "a slot"])
def test_grading_yields_while_a_visitor_waits_and_comes_back(
    reply: Message, monkeypatch: pytest.MonkeyPatch, waits_for: str
) -> None:
    model = answer_with(monkeypatch, draft_text(), LEVELS)
    key = admission._FIRST if waits_for == "a first token" else admission._SEEN
    redis_sync().zadd(key, {"visitor": time.time() + 30})
    assert grade_turn(str(reply.pk)) == "yielded"
    assert model.asked == []
    (message,) = queued()
    assert message["headers"]["id"]
    assert str(reply.pk) in message["headers"]["argsrepr"]
    comes_back_at = datetime.fromisoformat(message["headers"]["eta"])
    assert 0 < (comes_back_at - timezone.now()).total_seconds() <= tasks.COME_BACK_S
    redis_sync().zrem(key, "visitor")
    assert grade_turn(str(reply.pk)) == "done"


def test_one_grading_runs_in_the_whole_installation(reply: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    model = answer_with(monkeypatch, draft_text(), LEVELS)
    assert take_grading_lock("another reply")
    assert grade_turn(str(reply.pk)) == "yielded"
    assert model.asked == []
    assert not take_grading_lock("a third")
    assert redis_sync().get(admission._GRADING) == "another reply"


def test_gradings_at_once_never_overlap(reply: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = [str(reply.pk), *(str(finished_reply().pk) for _ in range(3))]
    inside, most, ended = 0, 0, []
    lock = threading.Lock()

    async def grade(reply_id: object) -> str:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        await asyncio.sleep(0.05)
        with lock:
            inside -= 1
        return "done"

    monkeypatch.setattr(tasks, "_grade", grade)
    threads = [threading.Thread(target=lambda one=one: ended.append(grade_turn(one))) for one in replies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert most == 1
    assert "done" in ended
    assert ended.count("done") + ended.count("yielded") == 4


def test_reply_that_cannot_be_graded_is_given_up_after_five_attempts(
    reply: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = [EngineTimeout(stage="whole", limit_s=1) for _ in range(20)]
    model = answer_with(monkeypatch, *errors)
    ended = [grade_turn(str(reply.pk)) for _ in range(MAX_ATTEMPTS + 3)]
    assert ended == ["failed"] * MAX_ATTEMPTS + ["given up"] * 3
    assert len(model.asked) == MAX_ATTEMPTS
    assert take_grading_lock("next")


def test_failed_reply_rests_longer_each_time_before_it_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoder or engine that is away for half an hour must not use up every attempt."""
    make_version(VersionKind.GENERATOR)
    make_version(VersionKind.JUDGE)
    answer_with(monkeypatch, *[EngineTimeout(stage="whole", limit_s=1) for _ in range(20)])
    reply = finished_reply(seconds_ago=100)
    rests = []
    for _ in range(MAX_ATTEMPTS - 1):
        assert grade_missed() == 1
        assert grade_turn(str(reply.pk)) == "failed"
        assert grade_missed() == 0
        rests.append(redis_sync().ttl(f"rapport:grade-rests:{reply.pk}"))
        redis_sync().delete(f"rapport:grade-rests:{reply.pk}")
    assert rests == pytest.approx([60, 240, 960, 3840], abs=2)
    assert grade_turn(str(reply.pk)) == "failed"
    assert grade_missed() == 0


def test_yielding_is_no_attempt(reply: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, draft_text(), LEVELS)
    assert take_grading_lock("another")
    for _ in range(MAX_ATTEMPTS + 2):
        assert grade_turn(str(reply.pk)) == "yielded"
    admission.drop_grading_lock("another")
    assert grade_turn(str(reply.pk)) == "done"


def test_grading_that_takes_too_long_fails_and_gives_the_lock_back(
    reply: Message, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.RAPPORT_GRADE_DEADLINE_S = 0.2

    async def hang(name: str) -> None:
        await asyncio.sleep(3600)

    monkeypatch.setattr(policies, "model_of", hang)
    started_s = time.monotonic()
    assert grade_turn(str(reply.pk)) == "failed"
    assert time.monotonic() - started_s < 2
    assert take_grading_lock("next")


def test_bug_in_a_grading_gives_the_lock_back(reply: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(name: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(policies, "model_of", broken)
    with pytest.raises(ZeroDivisionError):
        grade_turn(str(reply.pk))
    assert take_grading_lock("next")


# --- grade_missed ---------------------------------------------------------------------------------------------------


def test_what_was_lost_is_asked_for_again(reply: Message) -> None:
    lost = finished_reply(seconds_ago=120)
    assert grade_missed() == 1
    (message,) = until_queued(1)
    assert str(lost.pk) in message["headers"]["argsrepr"]
    assert message["headers"]["eta"] is None


def test_given_up_replies_do_not_hide_the_rest(reply: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MISSED_AT_ONCE", 2)
    hopeless = [finished_reply(seconds_ago=500) for _ in range(3)]
    for one in hopeless:
        redis_sync().set(f"rapport:grade-attempts:{one.pk}", MAX_ATTEMPTS)
    lost = [finished_reply(seconds_ago=100 + n) for n in range(3)]
    assert grade_missed() == 2
    asked_for = " ".join(message["headers"]["argsrepr"] for message in until_queued(2))
    assert [one for one in hopeless if str(one.pk) in asked_for] == []
    assert len([one for one in lost if str(one.pk) in asked_for]) == 2


def test_reply_whose_task_comes_back_by_itself_is_not_sent_a_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else tasks that wait for a busy engine grow in number, each coming back every second."""
    make_version(VersionKind.GENERATOR)
    make_version(VersionKind.JUDGE)
    answer_with(monkeypatch, draft_text(), LEVELS)
    waiting, lost = finished_reply(seconds_ago=200), finished_reply(seconds_ago=100)
    assert take_grading_lock("another")
    assert grade_turn(str(waiting.pk)) == "yielded"
    assert len(until_queued(1)) == 1
    assert grade_missed() == 1
    messages = until_queued(2)
    assert [str(lost.pk) in message["headers"]["argsrepr"] for message in messages].count(True) == 1
    assert [str(waiting.pk) in message["headers"]["argsrepr"] for message in messages].count(True) == 1
    admission.drop_grading_lock("another")
    assert grade_turn(str(waiting.pk)) == "done"
    assert not redis_sync().exists(f"rapport:grade-waiting:{waiting.pk}")


@pytest.fixture
def broker_away(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Redis away, for the broker as for everybody else."""
    monkeypatch.setattr(tasks, "_requests", BrokerRequests())  # what hangs here does not hang in the next test
    settings.REDIS_URL = f"redis://127.0.0.1:{closed_port()}/0"
    redis_sync.cache_clear()
    away = Celery("away", broker=settings.REDIS_URL, set_as_current=False)
    away.config_from_object("django.conf:settings", namespace="CELERY")
    # Each request keeps its caller for a second; the product's own settings would keep it for six.
    patience = {"max_retries": 2, "interval_start": 0.5, "interval_step": 0.0, "interval_max": 0.5}
    away.conf.update(broker_url=settings.REDIS_URL, broker_transport_options=patience)
    away.set_default()
    away.set_current()
    yield
    celery_app.set_default()
    celery_app.set_current()
    redis_sync.cache_clear()


@pytest.mark.usefixtures("broker_away")
def test_nothing_missed_is_counted_while_redis_is_away(reply: Message) -> None:
    finished_reply(seconds_ago=120)
    assert grade_missed() == 0


# --- asking the broker ----------------------------------------------------------------------------------------------


def test_finished_reply_asks_for_its_grade_after_the_commit(reply: Message) -> None:
    conversation, _ = new_conversation()
    said = make_message(conversation)
    running = make_reply(said, "", status=MessageStatus.RUNNING)
    outcome = ReplyOutcome(status=MessageStatus.COMPLETE, text="All done.")
    assert finish_reply(running.generation.fence, running.pk, outcome, owner="") is not None
    (message,) = until_queued(1)
    assert str(running.pk) in message["headers"]["argsrepr"]
    assert message["properties"]["delivery_info"]["routing_key"] == QUEUE


@pytest.mark.usefixtures("broker_away")
def test_asking_while_the_broker_is_away_is_quick_and_raises_nothing() -> None:
    started_s = time.monotonic()
    for _ in range(5):
        enqueue_grading(uuid4())
    assert time.monotonic() - started_s < 0.2


@pytest.mark.usefixtures("broker_away")
def test_reply_finishes_quickly_while_the_broker_is_away(reply: Message) -> None:
    said = make_message(make_conversation())
    running = make_reply(said, "", status=MessageStatus.RUNNING)
    started_s = time.monotonic()
    finish_reply(
        running.generation.fence,
        running.pk,
        ReplyOutcome(status=MessageStatus.COMPLETE, text="Here."),
        owner="",
    )
    assert time.monotonic() - started_s < 0.7
    assert Message.objects.get(pk=running.pk).status == MessageStatus.COMPLETE


def test_broker_that_hangs_holds_nobody_up_and_requests_are_bounded() -> None:
    hangs, sent = threading.Event(), []

    def ask() -> None:
        hangs.wait(5)
        sent.append(1)

    requests = BrokerRequests(most_waiting=10)
    started_s = time.monotonic()
    for _ in range(500):
        requests.put(ask)
    assert time.monotonic() - started_s < 0.5
    hangs.set()
    deadline = time.monotonic() + 3
    while len(sent) < 10 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert 10 <= len(sent) <= 11  # ten that waited, and the one that hung


def test_request_that_fails_does_not_end_the_sending() -> None:
    done = threading.Event()

    def fail() -> None:
        raise ConnectionError

    requests = BrokerRequests()
    requests.put(fail)
    requests.put(done.set)
    assert done.wait(3)


# --- what the broker is told ----------------------------------------------------------------------------------------


def test_killed_child_loses_no_task() -> None:
    """B15: acknowledged late, and put back where the worker's child was killed."""
    assert celery_app.conf.task_acks_late is True
    assert celery_app.conf.task_reject_on_worker_lost is True
    assert celery_app.conf.worker_prefetch_multiplier == 1


def test_killed_workers_task_comes_back_within_seconds_and_no_sooner_than_it_may_end(settings: Settings) -> None:
    """B14, B13: the sweep runs at every interval; what still runs is not taken for lost."""
    options = celery_app.conf.broker_transport_options
    assert options["unacked_restore_interval"] * options["unacked_restore_throttle"] <= 5
    assert options["visibility_timeout"] > 10 * settings.RAPPORT_GRADE_DEADLINE_S


def test_grading_has_its_own_queue_and_beat_looks_for_what_was_missed() -> None:
    assert celery_app.conf.task_routes["chat.tasks.grade_turn"] == {"queue": QUEUE}
    scheduled = {entry["task"] for entry in celery_app.conf.beat_schedule.values()}
    assert {"chat.tasks.grade_missed", "chat.tasks.notify_alerts", "chat.tasks.apply_retention"} <= scheduled
    celery_app.finalize()
    assert scheduled <= set(celery_app.tasks)


def test_echo_comes_back_through_redis() -> None:
    tasks.echo("ready-1")
    assert redis_sync().get("rapport:echo:ready-1") == "1"
    assert 0 < redis_sync().ttl("rapport:echo:ready-1") <= 30
