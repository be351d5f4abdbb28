"""A rubric for a turn and a score for its reply: from the context alone, once, whole or not at all, and counted."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from hypothesis import given
from prometheus_client import REGISTRY

from chat import grading, policies
from chat.grading import Graded, ImplementationUnknown, grade_reply, missed_replies, read_task, stored_rubric
from chat.models import Conversation, Message, TurnRubric, TurnScore
from chat.models.conversations import MessageKind, MessageStatus
from chat.models.learning import VersionKind, VersionState
from chat.models.priorities import ScoreRole
from chat.services.database import run_db
from rubric import EngineTimeout, EngineUnreachable, GeneratedRubric, Rubric, fallback_rubric, reward_of
from tests.factories import make_conversation, make_message, make_reply, make_user, make_version
from tests.fakes.model import Answer, ScriptedModel
from tests.rubric.rubrics import TEXTS, draft_text, golden_rubric, rubrics, score_of

pytestmark = pytest.mark.django_db(transaction=True)
IDS = tuple(TEXTS)
SAID = "My sister did not answer, and at dinner nobody spoke."
REPLY = "That silence sounds lonely, like a zebra among horses."


def levels_text(*levels: float | None, quote: str = "") -> str:
    """What a judge writes: one level for each of the six criteria."""
    return json.dumps({name: {"quote": quote, "level": level} for name, level in zip(IDS, levels, strict=True)})


FULL = levels_text(1, 0.5, 0.75, 0, 0.25, 1)


def count(metric: str, outcome: str) -> float:
    return REGISTRY.get_sample_value(f"rapport_{metric}_total", {"outcome": outcome}) or 0.0


class Turn:
    """A graded turn in the making."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.conversation: Conversation = make_conversation()
        self.said = make_message(self.conversation, SAID)
        self.reply = make_reply(self.said, REPLY, generation={"finished_at": timezone.now()})
        self.generator = make_version(VersionKind.GENERATOR)
        self.judge = make_version(VersionKind.JUDGE)

    def model(self, *script: str | Answer | Exception) -> ScriptedModel:
        model = ScriptedModel(list(script))

        async def model_of(name: str) -> ScriptedModel:
            assert name == "policy-fake"
            return model

        self._monkeypatch.setattr(policies, "model_of", model_of)
        return model


@pytest.fixture
def turn(transactional_db: None, clean_redis: None, monkeypatch: pytest.MonkeyPatch) -> Turn:
    return Turn(monkeypatch)


async def rubric_rows() -> list[TurnRubric]:
    return await sync_to_async(lambda: list(TurnRubric.objects.order_by("id")))()


async def score_rows() -> list[TurnScore]:
    return await sync_to_async(lambda: list(TurnScore.objects.select_related("rubric").order_by("id")))()


def everything_asked(model: ScriptedModel, index: int) -> str:
    return "\n".join(utterance.text for utterance in model.asked[index].transcript)


async def test_graded_reply_has_a_rubric_a_score_and_a_reward(turn: Turn) -> None:
    valid, full = count("rubrics", "valid"), count("scores", "full")
    model = turn.model(draft_text(), FULL)
    assert await grade_reply(turn.reply.pk) is Graded.DONE
    (row,), (score,) = await rubric_rows(), await score_rows()
    assert (row.message_id, row.generator_id, row.is_raw_valid, row.is_fallback) == (
        turn.said.pk,
        turn.generator.pk,
        True,
        False,
    )
    assert row.weights == {"cognitive": 0.25, "affective": 0.55, "proactive": 0.2}
    assert (score.reply_id, score.rubric_id, score.judge_id, score.role) == (
        turn.reply.pk,
        row.pk,
        turn.judge.pk,
        ScoreRole.TRAINING,
    )
    levels: dict[str, float | None] = dict(zip(IDS, (1.0, 0.5, 0.75, 0.0, 0.25, 1.0), strict=True))
    expected = reward_of(score_of(levels), golden_rubric())
    assert expected is not None
    assert score.reward == pytest.approx(expected.value, abs=1e-9)
    assert score.by_dimension == pytest.approx({str(key): value for key, value in expected.by_dimension.items()})
    assert (score.is_partial, score.attempts) == (False, 1)
    assert [judgement["level"] for judgement in score.judgements] == list(levels.values())
    assert len(model.asked) == 2
    assert (count("rubrics", "valid") - valid, count("scores", "full") - full) == (1, 1)


async def test_rubric_is_asked_without_a_word_of_any_reply_to_the_turn(turn: Turn) -> None:
    await sync_to_async(make_reply)(turn.said, "A giraffe would say otherwise.", sibling_index=1, is_selected=True)
    later = await sync_to_async(make_message)(turn.conversation, "An ostrich came later.")
    await sync_to_async(make_reply)(later, "A camel answered it.")
    model = turn.model(draft_text(), FULL)
    await grade_reply(turn.reply.pk)
    prompt = everything_asked(model, 0)
    assert SAID in prompt
    for word in ("zebra", "giraffe", "ostrich", "camel", "lonely"):
        assert word not in prompt
    judged = everything_asked(model, 1)
    assert REPLY in judged
    assert "giraffe" not in judged


async def test_judge_sees_the_criteria_without_their_weights(turn: Turn) -> None:
    model = turn.model(draft_text(), FULL)
    await grade_reply(turn.reply.pk)
    judged = everything_asked(model, 1)
    assert all(text in judged for text in TEXTS.values())
    assert not any(weight in judged for weight in ("0.55", "0.20", "55", "avoid", "affective"))


async def test_earlier_turns_are_in_the_context_with_their_selected_replies(turn: Turn) -> None:
    later = await sync_to_async(make_message)(turn.conversation, "She wrote back at last.")
    reply = await sync_to_async(make_reply)(later, "What a relief.")
    model = turn.model(draft_text(), FULL)
    await grade_reply(reply.pk)
    prompt = everything_asked(model, 0)
    assert SAID in prompt
    assert REPLY in prompt
    assert "She wrote back at last." in prompt
    assert "relief" not in prompt
    (row,) = await rubric_rows()
    task = await run_db(read_task, turn.reply.pk)
    assert not isinstance(task, Graded)
    assert row.context_sha256 != task.context.sha256


async def test_one_rubric_serves_all_siblings(turn: Turn) -> None:
    sibling = await sync_to_async(make_reply)(turn.said, "And what did you do?", sibling_index=1)
    model = turn.model(draft_text(), FULL, levels_text(0, 0, 0, 0, 0, 0))
    assert await grade_reply(turn.reply.pk) is Graded.DONE
    assert await grade_reply(sibling.pk) is Graded.DONE
    (row,), scores = await rubric_rows(), await score_rows()
    assert [score.rubric_id for score in scores] == [row.pk, row.pk]
    assert len(model.asked) == 3
    assert scores[0].reward != scores[1].reward


async def test_graded_reply_is_not_graded_again_and_asks_nobody(turn: Turn) -> None:
    turn.model(draft_text(), FULL)
    await grade_reply(turn.reply.pk)
    model = turn.model()
    assert await grade_reply(turn.reply.pk) is Graded.ALREADY
    assert model.asked == []


async def test_new_judge_grades_again_under_the_same_rubric(turn: Turn) -> None:
    turn.model(draft_text(), FULL)
    await grade_reply(turn.reply.pk)
    turn.judge.state = VersionState.RETIRED
    await sync_to_async(turn.judge.save)()
    await sync_to_async(make_version)(VersionKind.JUDGE)
    turn.model(levels_text(0, 0, 0, 1, 0, 0))
    assert await grade_reply(turn.reply.pk) is Graded.DONE
    assert len(await rubric_rows()) == 1
    assert len({score.judge_id for score in await score_rows()}) == 2


async def test_dimension_that_nobody_could_grade_gives_no_reward(turn: Turn) -> None:
    partial = count("scores", "partial")
    turn.model(draft_text(), levels_text(1, 1, None, None, 1, 1))
    await grade_reply(turn.reply.pk)
    (score,) = await score_rows()
    assert (score.is_partial, score.reward, score.by_dimension) == (True, None, {})
    assert [judgement["none_reason"] for judgement in score.judgements].count("abstained") == 2
    assert count("scores", "partial") - partial == 1


async def test_levels_with_invented_quotes_count_say_so_and_are_counted(turn: Turn) -> None:
    before = REGISTRY.get_sample_value("rapport_unfound_quotes_total") or 0.0
    turn.model(draft_text(), levels_text(1, 0.5, None, 0, 0.25, 1, quote="words that nobody said"))
    await grade_reply(turn.reply.pk)
    (score,) = await score_rows()
    assert score.reward is not None
    assert [judgement["quote_unfound"] for judgement in score.judgements] == [True, True, False, True, True, True]
    assert (REGISTRY.get_sample_value("rapport_unfound_quotes_total") or 0.0) - before == 5


async def test_one_missing_level_leaves_a_reward(turn: Turn) -> None:
    turn.model(draft_text(), levels_text(1, 1, None, 0, 1, 1))
    await grade_reply(turn.reply.pk)
    (score,) = await score_rows()
    assert not score.is_partial
    assert score.reward == pytest.approx(1.0)


async def test_judge_that_cannot_be_read_leaves_an_unscored_row_never_a_zero(turn: Turn) -> None:
    unscored = count("scores", "unscored")
    turn.model(draft_text(), "good job", "10/10")
    await grade_reply(turn.reply.pk)
    (score,) = await score_rows()
    assert (score.reward, score.is_partial, score.attempts) == (None, True, 2)
    assert {judgement["level"] for judgement in score.judgements} == {None}
    assert count("scores", "unscored") - unscored == 1


async def test_rubric_that_stays_invalid_is_the_flagged_fallback_and_counted(turn: Turn) -> None:
    fallback = count("rubrics", "fallback")
    generic = json.dumps(
        {criterion.id: {"quote": "", "level": 0.5} for criterion in fallback_rubric("invalid").criteria}
    )
    turn.model("no JSON", "still none", generic)
    await grade_reply(turn.reply.pk)
    (row,), (score,) = await rubric_rows(), await score_rows()
    assert (row.is_fallback, row.fallback_reason, row.is_raw_valid, row.repairs) == (True, "invalid", False, 1)
    assert score.reward == pytest.approx(0.5)
    assert count("rubrics", "fallback") - fallback == 1


@pytest.mark.parametrize("error", [EngineTimeout(stage="whole", limit_s=1), EngineUnreachable(base_url="", reason="")])
async def test_engine_that_fails_at_the_rubric_leaves_nothing(turn: Turn, error: Exception) -> None:
    turn.model(error)
    with pytest.raises(type(error)):
        await grade_reply(turn.reply.pk)
    assert await rubric_rows() == []
    assert await score_rows() == []


async def test_engine_that_fails_at_the_judge_leaves_a_whole_rubric_and_no_score(turn: Turn) -> None:
    turn.model(draft_text(), EngineTimeout(stage="whole", limit_s=1))
    with pytest.raises(EngineTimeout):
        await grade_reply(turn.reply.pk)
    (row,) = await rubric_rows()
    assert await score_rows() == []
    model = turn.model(FULL)
    assert await grade_reply(turn.reply.pk) is Graded.DONE
    assert len(model.asked) == 1
    (score,) = await score_rows()
    assert score.rubric_id == row.pk


UNGRADABLE: dict[str, dict[str, Any]] = {
    "excluded": {"is_excluded": True},
    "running": {"status": MessageStatus.RUNNING},
    "failed": {"status": MessageStatus.FAILED},
    "interrupted": {"status": MessageStatus.INTERRUPTED},
    "blocked": {"status": MessageStatus.BLOCKED},
    "without text": {"text": ""},
    "a staff message": {"kind": MessageKind.STAFF},
    "a visitor message": {"kind": MessageKind.VISITOR, "parent": None},
}


@pytest.mark.parametrize("changed", UNGRADABLE.values(), ids=UNGRADABLE.keys())
async def test_turn_that_may_not_be_graded_asks_nobody(turn: Turn, changed: dict[str, Any]) -> None:
    await sync_to_async(Message.objects.filter(pk=turn.reply.pk).update)(**changed)
    model = turn.model()
    assert await grade_reply(turn.reply.pk) is Graded.NOT_GRADABLE
    assert model.asked == []
    assert await rubric_rows() == []


@pytest.mark.parametrize("kind", [VersionKind.GENERATOR, VersionKind.JUDGE])
async def test_without_a_live_version_nothing_is_graded(turn: Turn, kind: VersionKind) -> None:
    version = turn.generator if kind == VersionKind.GENERATOR else turn.judge
    version.state = VersionState.RETIRED
    await sync_to_async(version.save)()
    turn.model()
    assert await grade_reply(turn.reply.pk) is Graded.NOT_GRADABLE
    assert await grade_reply(uuid4()) is Graded.NOT_GRADABLE


async def test_stopped_reply_is_graded_on_what_was_shown(turn: Turn) -> None:
    await sync_to_async(Message.objects.filter(pk=turn.reply.pk).update)(status=MessageStatus.STOPPED)
    turn.model(draft_text(), FULL)
    assert await grade_reply(turn.reply.pk) is Graded.DONE


async def test_implementation_that_this_code_does_not_have_is_named(turn: Turn) -> None:
    turn.generator.config = {"implementation": "oracle"}
    await sync_to_async(turn.generator.save)()
    turn.model()
    with pytest.raises(ImplementationUnknown, match="oracle"):
        await grade_reply(turn.reply.pk)


def generated(rubric: Rubric) -> GeneratedRubric:
    return GeneratedRubric(
        rubric=rubric,
        generator="rubric-test",
        latency_ms=1.0,
        attempts=1,
        prompt_sha256="0" * 64,
        own_logprob=-3.5,
        raw_valid=True,
    )


async def test_rubric_of_a_faster_worker_wins_and_the_score_is_given_by_it(turn: Turn) -> None:
    slower = json.loads(draft_text()) | {"points": {"cognitive": 0, "affective": 0, "proactive": 100}}
    model = turn.model(json.dumps(slower), levels_text(0, 0, 0, 0, 1, 1))
    ask = model.complete

    async def complete(*args: Any, **options: Any) -> Any:
        if not model.asked:  # while our rubric is being written, another worker stores its own
            task = await run_db(read_task, turn.reply.pk)
            assert not isinstance(task, Graded)
            await run_db(grading.store_rubric, task, generated(golden_rubric()))
        return await ask(*args, **options)

    model.complete = complete  # type: ignore[method-assign]
    await grade_reply(turn.reply.pk)
    (row,), (score,) = await rubric_rows(), await score_rows()
    assert stored_rubric(row).weights == golden_rubric().weights
    expected = reward_of(score_of(dict(zip(IDS, (0, 0, 0, 0, 1, 1), strict=True))), stored_rubric(row))
    assert expected is not None
    assert score.reward == pytest.approx(expected.value)


async def test_score_of_a_faster_worker_stays(turn: Turn) -> None:
    task = await run_db(read_task, turn.reply.pk)
    assert not isinstance(task, Graded)
    row = await run_db(grading.store_rubric, task, generated(golden_rubric()))
    first = score_of(dict.fromkeys(IDS, 1.0))
    second = score_of(dict.fromkeys(IDS, 0.0))
    for score in (first, second):
        await run_db(grading.store_score, task, row, golden_rubric(), score)
    (stored,) = await score_rows()
    assert stored.judgements[0]["level"] == 1.0


async def test_rubric_survives_the_database(turn: Turn) -> None:
    task = await run_db(read_task, turn.reply.pk)
    assert not isinstance(task, Graded)
    await run_db(grading.store_rubric, task, generated(golden_rubric()))
    (row,) = await rubric_rows()
    assert stored_rubric(row) == golden_rubric()
    assert (row.own_logprob, row.context_sha256) == (-3.5, task.context.sha256)


@pytest.mark.django_db(transaction=False)
@given(rubrics())
def test_stored_rubric_is_the_rubric_that_was_stored(rubric: Rubric) -> None:
    for one in (rubric, replace(rubric, repairs=1), fallback_rubric("length", repairs=1)):
        content = json.loads(json.dumps(one.to_json()))
        row = TurnRubric(
            weights=content["weights"],
            criteria=content["criteria"],
            state=content.get("state") or {},
            repairs=one.repairs,
            is_fallback=one.is_fallback,
            fallback_reason=one.fallback_reason or "",
        )
        assert stored_rubric(row) == one


def finished(seconds_ago: float, **changed: Any) -> Message:
    said = make_message(make_conversation(), "Hello.")
    at = timezone.now() - timedelta(seconds=seconds_ago)
    return make_reply(said, **{"text": "Hi.", "generation": {"finished_at": at}, **changed})


def test_missed_replies_are_those_that_nobody_graded_oldest_first() -> None:
    judge = make_version(VersionKind.JUDGE)
    newer, older = finished(100), finished(500)
    finished(10)  # its task may still come
    finished(90_000)  # too old to matter
    finished(100, is_excluded=True)
    finished(100, status=MessageStatus.FAILED)
    finished(100, status=MessageStatus.BLOCKED)
    finished(100, text="")
    finished(100, generation={"finished_at": None})
    TurnScore.objects.create(reply=finished(100), judge=judge)
    stopped = finished(50, status=MessageStatus.STOPPED)
    make_message(make_conversation(), "Only a note.", kind=MessageKind.NOTE, author=make_user())
    assert missed_replies(limit=10, older_than_s=30) == [older.pk, newer.pk, stopped.pk]
    assert missed_replies(limit=1, older_than_s=30) == [older.pk]


def test_grading_deadline_is_the_operators() -> None:
    assert grading.grade_deadline_s() > 0
