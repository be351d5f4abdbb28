"""The encoder process as the judge of a turn: levels with evidence, or nothing and another try, never a guess."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from prometheus_client import REGISTRY
from pytest_django import Settings

from chat.grading import Graded, ImplementationUnknown, grade_reply, judge_of, missed_replies
from chat.models.learning import VersionKind
from chat.policies import close_client_here
from chat.tasks import grade_turn
from rubric import EncoderTimeout, EncoderUnavailable
from tests.chat.test_grading import REPLY, SAID, Turn, rubric_rows, score_rows
from tests.factories import make_version
from tests.fakes.encoder import JUDGE, FakeEncoder
from tests.fakes.engine import closed_port
from tests.rubric.rubrics import TEXTS, draft_text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.redis]
LEVELS = (1.0, 0.5, 0.75, 0.125, 0.25, 0.9)


def count(metric: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"rapport_{metric}", labels) or 0.0


@pytest.fixture
def turn(transactional_db: None, clean_redis: None, monkeypatch: pytest.MonkeyPatch) -> Turn:
    """A turn whose judge is the encoder; its rubric still comes from a model."""
    turn = Turn(monkeypatch)
    turn.judge.delete()
    turn.judge = make_version(VersionKind.JUDGE, name=JUDGE, config={"implementation": "encoder"})
    return turn


@pytest.fixture
async def encoder(settings: Settings) -> AsyncIterator[FakeEncoder]:
    async with FakeEncoder() as encoder:
        encoder.judged = LEVELS
        settings.RAPPORT_ENCODER_URL = encoder.url
        yield encoder
        await close_client_here()


async def test_reply_is_graded_by_the_encoder_with_evidence(turn: Turn, encoder: FakeEncoder) -> None:
    encoder.evidence = (0, 27)
    model = turn.model(draft_text())
    judged = count("judge_seconds_count", implementation="encoder")
    assert await grade_reply(turn.reply.pk) is Graded.DONE
    (score,) = await score_rows()
    assert [one["level"] for one in score.judgements] == list(LEVELS)
    assert {tuple(one["evidence"]) for one in score.judgements} == {(0, 27)}
    assert (score.judge_id, score.is_partial, score.prompt_sha256) == (turn.judge.pk, False, "")
    assert score.reward is not None
    assert len(model.asked) == 1  # the rubric; no model is asked for levels
    assert count("judge_seconds_count", implementation="encoder") == judged + 1


async def test_encoder_sees_the_talk_the_reply_and_the_criteria_without_weights(
    turn: Turn, encoder: FakeEncoder
) -> None:
    turn.model(draft_text())
    await grade_reply(turn.reply.pk)
    (asked,) = encoder.asked_to_judge
    assert (asked["context"], asked["reply"]) == (f"visitor: {SAID}", REPLY)
    assert asked["criteria"] == list(TEXTS.values())
    assert asked["wants_evidence"] is True
    assert set(asked) == {"context", "reply", "criteria", "wants_evidence", "deadline_ms"}


async def test_criterion_without_a_level_is_none_and_counted(turn: Turn, encoder: FakeEncoder) -> None:
    encoder.judged = (None, None, *LEVELS[2:])
    turn.model(draft_text())
    ungraded = count("ungraded_levels_total", reason="empty_criterion")
    assert await grade_reply(turn.reply.pk) is Graded.DONE
    (score,) = await score_rows()
    assert [one["level"] for one in score.judgements][:2] == [None, None]
    assert (score.is_partial, score.reward) == (True, None)
    assert count("ungraded_levels_total", reason="empty_criterion") == ungraded + 2


async def test_reply_of_white_space_is_stored_as_ungraded_without_a_request(turn: Turn, encoder: FakeEncoder) -> None:
    turn.reply.text = " \n "
    await sync_to_async(turn.reply.save)()
    turn.model(draft_text())
    assert await grade_reply(turn.reply.pk) is Graded.DONE
    (score,) = await score_rows()
    assert {one["level"] for one in score.judgements} == {None}
    assert {one["none_reason"] for one in score.judgements} == {"empty_reply"}
    assert score.reward is None
    assert encoder.asked_to_judge == []


@pytest.mark.parametrize("status", [400, 413, 500, 503, 504])
async def test_encoder_that_refuses_leaves_the_rubric_and_no_score(
    turn: Turn, encoder: FakeEncoder, status: int
) -> None:
    encoder.status = status
    turn.model(draft_text())
    with pytest.raises(EncoderTimeout if status == 504 else EncoderUnavailable):
        await grade_reply(turn.reply.pk)
    assert len(await rubric_rows()) == 1
    assert await score_rows() == []


async def test_encoder_that_serves_another_judge_grades_nothing(turn: Turn, encoder: FakeEncoder) -> None:
    encoder.judge_version = "judge-00000000beef"
    turn.model(draft_text())
    with pytest.raises(EncoderUnavailable, match="judge-00000000beef"):
        await grade_reply(turn.reply.pk)
    assert await score_rows() == []


async def test_slow_encoder_is_given_up_at_its_deadline(turn: Turn, encoder: FakeEncoder, settings: Settings) -> None:
    settings.RAPPORT_JUDGE_TIMEOUT_S = 0.1
    encoder.hangs = True
    turn.model(draft_text())
    with pytest.raises(EncoderTimeout):
        await grade_reply(turn.reply.pk)
    assert await score_rows() == []


async def test_judge_that_this_code_does_not_have_is_named_with_those_it_has(turn: Turn) -> None:
    turn.judge.config = {"implementation": "oracle"}
    with pytest.raises(ImplementationUnknown, match=r"oracle.*encoder, model"):
        await judge_of(turn.judge)


async def task_of(turn: Turn) -> str:
    """What the worker makes of the task; its loop and its database connection are those of its own thread."""

    def work() -> str:
        try:
            return grade_turn(str(turn.reply.pk))
        finally:
            connections.close_all()

    return await asyncio.to_thread(work)


async def test_failed_grading_is_counted_and_a_later_try_grades_it(
    turn: Turn, encoder: FakeEncoder, settings: Settings
) -> None:
    turn.model(draft_text())
    settings.RAPPORT_ENCODER_URL = f"http://127.0.0.1:{closed_port()}"
    failed = count("gradings_failed_total", kind="EncoderUnavailable")
    assert await task_of(turn) == "failed"
    assert count("gradings_failed_total", kind="EncoderUnavailable") == failed + 1
    assert await score_rows() == []
    assert await sync_to_async(missed_replies)(limit=5, older_than_s=-1) == [turn.reply.pk]  # beat finds it again
    settings.RAPPORT_ENCODER_URL = encoder.url
    assert await task_of(turn) == "done"
    (score,) = await score_rows()
    assert score.reward is not None
    assert await sync_to_async(missed_replies)(limit=5, older_than_s=-1) == []
