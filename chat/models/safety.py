"""What the screens said (`SafetyVerdict`) and whom the product called (`Alert`)."""

from django.db import models

from chat.models.conversations import Conversation, Message
from chat.models.people import User


class Direction(models.TextChoices):
    VISITOR = "visitor", "What the visitor wrote"
    REPLY = "reply", "What the model said"


class SafetyVerdict(models.Model):
    """One verdict of a screen on one message; `excluded_reason` keeps the turn out of training (rule 7)."""

    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="verdicts")
    direction = models.CharField(max_length=8, choices=Direction.choices)
    screen_version = models.CharField(max_length=64)
    level = models.CharField(max_length=8)
    own_level = models.CharField(
        max_length=8, help_text="Of the text itself, before what the conversation carries over."
    )
    score = models.FloatField(null=True, help_text="Probability from the screen; none where it did not answer.")
    card = models.CharField(max_length=8, default="none")
    excluded_reason = models.CharField(max_length=40, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.direction} {self.level} on {self.message_id}"


class AlertKind(models.TextChoices):
    CRISIS = "crisis", "Possible crisis"
    BLOCKED = "blocked", "Reply blocked by the output screen"
    SCREEN_DOWN = "screen_down", "The screen did not answer"


class Alert(models.Model):
    """Staff must look at a conversation. Raised in the transaction of the message, sent on after the commit."""

    kind = models.CharField(max_length=16, choices=AlertKind.choices)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="alerts")
    message = models.ForeignKey(Message, on_delete=models.CASCADE, null=True, related_name="alerts")
    raised_at = models.DateTimeField(auto_now_add=True, db_index=True)
    notified_at = models.DateTimeField(null=True, blank=True)
    notify_attempts = models.PositiveSmallIntegerField(default=0)
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="alerts")

    class Meta:
        ordering = ("-raised_at",)

    def __str__(self) -> str:
        return f"{self.kind} in {self.conversation_id}"
