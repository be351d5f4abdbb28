"""How a reply came about (`Generation`, one per model reply) and what the visitor thought of it."""

import uuid

from django.db import models

from chat.models.conversations import Conversation, Message
from chat.models.sites import ReplyMode, Visitor


class Generation(models.Model):
    """Everything needed to rebuild the exact request, and who is running it now (owner, fence, heartbeat)."""

    message = models.OneToOneField(Message, on_delete=models.CASCADE, related_name="generation")
    policy = models.ForeignKey("chat.PolicyVersion", on_delete=models.PROTECT, null=True, related_name="generations")
    engine_model = models.CharField(max_length=120, blank=True)
    base_sha256 = models.CharField(max_length=64, blank=True)
    tokenizer_sha256 = models.CharField(max_length=64, blank=True)
    template_sha256 = models.CharField(max_length=64, blank=True)
    prompt_version = models.CharField(max_length=64, blank=True)
    prompt_sha256 = models.CharField(max_length=64, blank=True)
    context_from_seq = models.PositiveBigIntegerField(default=0)
    context_to_seq = models.PositiveBigIntegerField(default=0)
    mode = models.CharField(max_length=16, choices=ReplyMode.choices, default=ReplyMode.PLAIN)
    guiding_rubric = models.ForeignKey("chat.TurnRubric", on_delete=models.SET_NULL, null=True, related_name="guided")
    candidate_group = models.UUIDField(null=True)
    candidates = models.PositiveSmallIntegerField(default=1)
    seed = models.BigIntegerField(null=True)
    temperature = models.FloatField(null=True)
    top_p = models.FloatField(null=True)
    repetition_penalty = models.FloatField(null=True)
    max_tokens = models.PositiveIntegerField(null=True)
    stop = models.JSONField(default=list)
    logprob_kind = models.CharField(max_length=12, default="none")
    logprob_gap = models.CharField(max_length=80, blank=True)
    token_ids = models.JSONField(default=list)
    token_logprobs = models.JSONField(default=list)
    finish_reason = models.CharField(max_length=24, blank=True)
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    queued_ms = models.FloatField(null=True)
    first_token_ms = models.FloatField(null=True)
    first_shown_ms = models.FloatField(null=True)
    total_ms = models.FloatField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    owner = models.CharField(max_length=64, blank=True, db_index=True)
    fence = models.UUIDField(default=uuid.uuid4)
    heartbeat_at = models.DateTimeField(null=True, db_index=True)
    finished_at = models.DateTimeField(null=True, db_index=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"generation of {self.message_id}"


class Feedback(models.Model):
    """A visitor's thumb on a reply; append-only (erasure aside), the newest row holds."""

    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="feedback")
    visitor = models.ForeignKey(Visitor, on_delete=models.CASCADE, related_name="feedback")
    value = models.SmallIntegerField()
    reasons = models.JSONField(default=list, blank=True)
    comment = models.TextField(blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.value:+d} on {self.message_id}"


class Rating(models.Model):
    """One to five stars at the end of a conversation; append-only (erasure aside), the newest row holds."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="ratings")
    stars = models.PositiveSmallIntegerField()
    comment = models.TextField(blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.stars} for {self.conversation_id}"
