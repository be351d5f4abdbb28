"""What mattered at a turn (`TurnRubric`) and how well a reply met it (`TurnScore`)."""

from django.db import models

from chat.models.conversations import Message
from chat.models.learning import PolicyVersion


class TurnRubric(models.Model):
    """A rubric of a visitor message: from the context alone, one for all siblings of the turn (rule 1)."""

    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="rubrics")
    generator = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, related_name="rubrics")
    seed = models.BigIntegerField(default=0)
    weights = models.JSONField()
    criteria = models.JSONField()
    state = models.JSONField(default=dict)
    context_sha256 = models.CharField(max_length=64)
    prompt_sha256 = models.CharField(max_length=64, blank=True)
    features = models.JSONField(default=dict)
    embedding = models.JSONField(null=True)
    own_logprob = models.FloatField(null=True)
    bank_version = models.CharField(max_length=64, blank=True)
    is_raw_valid = models.BooleanField(default=False)
    repairs = models.PositiveSmallIntegerField(default=0)
    is_fallback = models.BooleanField(default=False)
    fallback_reason = models.CharField(max_length=200, blank=True)
    latency_ms = models.FloatField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["message", "generator", "seed"], name="one_rubric_per_generator_and_seed"),
        )

    def __str__(self) -> str:
        return f"rubric of {self.message_id}"


class ScoreRole(models.TextChoices):
    """The judge that trains is not the judge that examines (rule 2)."""

    TRAINING = "training", "Training"
    EXAMINER = "examiner", "Examiner"


class TurnScore(models.Model):
    """A judge's judgements of one reply; `reward` is None where a dimension stayed ungraded (`is_partial`)."""

    reply = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="scores")
    rubric = models.ForeignKey(TurnRubric, on_delete=models.CASCADE, null=True, related_name="scores")
    judge = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, related_name="scores")
    role = models.CharField(max_length=10, choices=ScoreRole.choices, default=ScoreRole.TRAINING)
    judgements = models.JSONField(default=list)
    is_partial = models.BooleanField(default=False)
    reward = models.FloatField(null=True)
    by_dimension = models.JSONField(default=dict)
    prompt_sha256 = models.CharField(max_length=64, blank=True)
    attempts = models.PositiveSmallIntegerField(default=1)
    latency_ms = models.FloatField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["reply", "rubric", "judge", "role"], name="one_score_per_judge_and_role"),
        )

    def __str__(self) -> str:
        return f"score of {self.reply_id}"
