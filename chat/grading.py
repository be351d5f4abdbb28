"""A rubric for a turn and a score for its reply, stored and counted (rules 1, 2 and 11).

`tasks.grade_turn` calls `grade_reply` after a reply was committed. The rubric comes from the context alone, belongs to
the visitor's message and serves every sibling; what cannot be graded is None and counted.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from chat import policies
from chat.context import said_before
from chat.events import publish_graded
from chat.metrics import JUDGE_SECONDS, RUBRICS, SCORES, UNFOUND_QUOTES, UNGRADED_LEVELS
from chat.models import Message, PolicyVersion, TurnRubric, TurnScore
from chat.models.conversations import MessageKind, MessageStatus
from chat.models.learning import VersionKind
from chat.models.priorities import ScoreRole
from chat.prompting import context_transcript
from chat.services.database import run_db
from rubric import (
    RUBRIC_SCHEMA,
    EncoderClient,
    EncoderJudge,
    GeneratedRubric,
    Judge,
    ModelGenerator,
    ModelJudge,
    Rubric,
    RubricGenerator,
    Score,
    Transcript,
    reward_of,
)

GRADED = (MessageStatus.COMPLETE, MessageStatus.STOPPED)
RUBRIC_SEED = 0


class Graded(StrEnum):
    """What became of a request to grade."""

    DONE = "done"
    ALREADY = "already"
    NOT_GRADABLE = "not_gradable"


class ImplementationUnknown(Exception):
    """A version's row names an implementation that this code does not have."""

    def __init__(self, version: PolicyVersion, *, known: str) -> None:
        super().__init__(
            f"{version.name} asks for implementation {version.config.get('implementation')!r}; known: {known}."
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """Everything needed to grade one reply, read in one go."""

    reply_id: UUID
    turn_id: UUID
    conversation_id: UUID
    reply_text: str
    context: Transcript
    generator: PolicyVersion
    judge: PolicyVersion
    stored: TurnRubric | None


def read_task(reply_id: UUID) -> Task | Graded:
    """The work for a reply, or why there is none: a safety turn, an unfinished reply, a score that exists."""
    reply = Message.objects.filter(pk=reply_id, kind=MessageKind.REPLY).select_related("parent").first()
    generator = policies.live_version(VersionKind.GENERATOR)
    judge = policies.live_version(VersionKind.JUDGE)
    if reply is None or reply.parent is None or generator is None or judge is None:
        return Graded.NOT_GRADABLE
    if reply.status not in GRADED or reply.is_excluded or not reply.text:
        return Graded.NOT_GRADABLE
    if TurnScore.objects.filter(reply=reply, judge=judge, role=ScoreRole.TRAINING).exists():
        return Graded.ALREADY
    said = said_before(reply.conversation_id, context_to_seq=reply.parent.seq, answered=reply.parent_id)
    return Task(
        reply_id=reply.pk,
        turn_id=reply.parent.pk,
        conversation_id=reply.conversation_id,
        reply_text=reply.text,
        context=context_transcript(said),
        generator=generator,
        judge=judge,
        stored=TurnRubric.objects.filter(message=reply.parent, generator=generator, seed=RUBRIC_SEED).first(),
    )


async def generator_of(version: PolicyVersion) -> RubricGenerator:
    """The generator behind a version's name. Raises ImplementationUnknown, EngineUnreachable."""
    if version.config.get("implementation") != "model":
        raise ImplementationUnknown(version, known="model")
    return ModelGenerator(await policies.model_of(str(version.config["served_by"])), version.name)


async def judge_of(version: PolicyVersion) -> Judge:
    """The judge behind a version's name. Raises ImplementationUnknown, EngineUnreachable."""
    match version.config.get("implementation"):
        case "encoder":
            client = EncoderClient(
                settings.RAPPORT_ENCODER_URL,
                timeout_s=settings.RAPPORT_JUDGE_TIMEOUT_S,
                client=policies.client_here(),
            )
            return EncoderJudge(client, version.name)
        case "model":
            return ModelJudge(await policies.model_of(str(version.config["served_by"])), version.name)
        case _:
            raise ImplementationUnknown(version, known="encoder, model")


async def grade_reply(reply_id: UUID) -> Graded:
    """Write the turn's rubric (once) and the reply's score.

    Raises EngineError and EncoderError; what was written stays.
    """
    task = await run_db(read_task, reply_id)
    if isinstance(task, Graded):
        return task
    if task.stored is not None:
        row, rubric = task.stored, stored_rubric(task.stored)
    else:
        generator = await generator_of(task.generator)
        generated = await generator.generate(task.context, seed=RUBRIC_SEED)
        row = await run_db(store_rubric, task, generated)
        rubric = stored_rubric(row)  # a faster worker's, perhaps: a score goes with the rubric it was given by
    judge = await judge_of(task.judge)
    score = await judge.judge(task.context, task.reply_text, rubric=rubric, seed=RUBRIC_SEED)
    await run_db(store_score, task, row, rubric, score)
    return Graded.DONE


def stored_rubric(row: TurnRubric) -> Rubric:
    """The value that was stored in a row."""
    return Rubric.from_json(
        {
            "schema": RUBRIC_SCHEMA,
            "weights": row.weights,
            "criteria": row.criteria,
            "state": row.state or None,
            "fallback": row.is_fallback,
            "fallback_reason": row.fallback_reason or None,
            "repairs": row.repairs,
        }
    )


def store_rubric(task: Task, generated: GeneratedRubric) -> TurnRubric:
    """Keep a generated rubric; the one that is already there wins (one per message, generator and seed)."""
    content = generated.rubric.to_json()
    row, is_new = TurnRubric.objects.get_or_create(
        message_id=task.turn_id,
        generator=task.generator,
        seed=RUBRIC_SEED,
        defaults={
            "weights": content["weights"],
            "criteria": content["criteria"],
            "state": content.get("state") or {},
            "context_sha256": task.context.sha256,
            "prompt_sha256": generated.prompt_sha256,
            "own_logprob": generated.own_logprob,
            "is_raw_valid": generated.raw_valid,
            "repairs": generated.rubric.repairs,
            "is_fallback": generated.rubric.is_fallback,
            "fallback_reason": (generated.rubric.fallback_reason or "")[:200],
            "latency_ms": generated.latency_ms,
        },
    )
    if is_new:
        RUBRICS.labels(outcome=generated.outcome).inc()
    return row


def store_score(task: Task, row: TurnRubric, rubric: Rubric, score: Score) -> TurnScore:
    """Keep a score with its reward; a partial score has none and trains nobody."""
    reward = reward_of(score, rubric)
    is_partial = score.partial(rubric)
    graded = sum(judgement.level is not None for judgement in score.judgements)
    with transaction.atomic():
        stored, is_new = TurnScore.objects.get_or_create(
            reply_id=task.reply_id,
            rubric=row,
            judge=task.judge,
            role=ScoreRole.TRAINING,
            defaults={
                "judgements": [judgement.to_json() for judgement in score.judgements],
                "is_partial": is_partial,
                "reward": reward.value if reward else None,
                "by_dimension": {str(key): value for key, value in reward.by_dimension.items()} if reward else {},
                "prompt_sha256": score.prompt_sha256,
                "attempts": score.attempts,
                "latency_ms": score.latency_ms,
            },
        )
        publish_graded(task.conversation_id, task.turn_id)
    if is_new:
        SCORES.labels(outcome="unscored" if graded == 0 else "partial" if is_partial else "full").inc()
        UNFOUND_QUOTES.inc(score.unfound_quotes)
        for reason, count in score.none_reasons.items():
            UNGRADED_LEVELS.labels(reason=reason).inc(count)
        JUDGE_SECONDS.labels(implementation=str(task.judge.config.get("implementation"))).observe(
            score.latency_ms / 1000
        )
    return stored


def missed_replies(*, limit: int, older_than_s: float) -> list[UUID]:
    """Finished replies of the last day that nobody graded: a broker that was away loses no grade."""
    now = timezone.now()
    rows = Message.objects.filter(
        kind=MessageKind.REPLY,
        status__in=GRADED,
        is_excluded=False,
        scores__isnull=True,
        generation__finished_at__lt=now - timedelta(seconds=older_than_s),
        generation__finished_at__gt=now - timedelta(days=1),
    ).exclude(text="")
    return list(rows.order_by("generation__finished_at").values_list("pk", flat=True)[:limit])


def grade_deadline_s() -> float:
    """Seconds after which one grading gives up and is tried again later."""
    return float(settings.RAPPORT_GRADE_DEADLINE_S)
