"""Conversations and their messages: what was said, in which order, and what a page still has to learn.

Every visible change takes the conversation's next `seq` and is written onto the message as `changed_seq`, so a page
that knows `last_seq` asks for the rest (rule 4).
"""

import uuid
from typing import Self

from django.db import models

from chat.models.people import User
from chat.models.sites import ReplyMode, Visitor, WidgetSite


class ConversationKind(models.TextChoices):
    """Only `visitor` conversations ever train (rule 8)."""

    VISITOR = "visitor", "Visitor"
    DEMO = "demo", "Demo"
    TEST = "test", "Test"
    SIMULATED = "simulated", "Simulated"


class Control(models.TextChoices):
    MODEL = "model", "Model"
    HUMAN = "human", "Human"


class ConversationState(models.TextChoices):
    OPEN = "open", "Open"
    CLOSED = "closed", "Closed"


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def visible_to(self, visitor: Visitor) -> Self:
        """The one gate for visitors: their own conversations."""
        return self.filter(visitor=visitor)


class Conversation(models.Model):
    """One visitor's chat on one site."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    site = models.ForeignKey(WidgetSite, on_delete=models.CASCADE, related_name="conversations")
    visitor = models.ForeignKey(Visitor, on_delete=models.CASCADE, related_name="conversations")
    kind = models.CharField(max_length=16, choices=ConversationKind.choices, default=ConversationKind.VISITOR)
    split_bucket = models.PositiveSmallIntegerField(default=0, help_text="Salted hash of the visitor, 0-99 (rule 8).")
    policy = models.ForeignKey(
        "chat.PolicyVersion", on_delete=models.PROTECT, null=True, blank=True, related_name="pinned_conversations"
    )
    policy_since = models.DateTimeField(null=True, blank=True)
    assignment_probability = models.FloatField(default=1.0)
    mode = models.CharField(max_length=16, choices=ReplyMode.choices, default=ReplyMode.PLAIN)
    control = models.CharField(max_length=8, choices=Control.choices, default=Control.MODEL)
    assignee = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="conversations")
    state = models.CharField(max_length=8, choices=ConversationState.choices, default=ConversationState.OPEN)
    last_seq = models.PositiveBigIntegerField(default=0)
    card_level = models.CharField(max_length=8, default="none", help_text="The safety card that stands now.")
    watch_until_turn = models.PositiveIntegerField(
        default=0, help_text="Visitor turns up to this one are at least watch."
    )
    visitor_turns = models.PositiveIntegerField(default=0)
    has_language_card = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    last_activity_at = models.DateTimeField(auto_now_add=True, db_index=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    objects = ConversationQuerySet.as_manager()

    def __str__(self) -> str:
        return str(self.id)

    def take_seq(self) -> int:
        """The next number of a visible change; the caller holds the row's lock and saves the row."""
        self.last_seq += 1
        return self.last_seq


class MessageKind(models.TextChoices):
    VISITOR = "visitor", "Visitor"
    REPLY = "reply", "Reply"
    STAFF = "staff", "Staff"
    SAFETY = "safety", "Safety"
    NOTE = "note", "Note"


class MessageStatus(models.TextChoices):
    """Text is kept in every ending (rule 3)."""

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    COMPLETE = "complete", "Complete"
    STOPPED = "stopped", "Stopped"
    FAILED = "failed", "Failed"
    INTERRUPTED = "interrupted", "Interrupted"
    BLOCKED = "blocked", "Blocked"


UNFINISHED = (MessageStatus.QUEUED, MessageStatus.RUNNING)


class MessageOrigin(models.TextChoices):
    SERVED = "served", "Served"
    REGENERATED = "regenerated", "Regenerated"
    CANDIDATE = "candidate", "Candidate"
    REPLAY = "replay", "Replay"
    CORRECTED = "corrected", "Corrected"


class MessageQuerySet(models.QuerySet["Message"]):
    def shown_to_visitor(self) -> Self:
        """What a visitor's page may see: no notes, no hidden candidates."""
        return self.filter(is_shown=True).exclude(kind=MessageKind.NOTE)

    def in_context(self) -> Self:
        """What a model may see: visitor and staff messages, selected replies, in order of `seq`."""
        spoken = models.Q(kind__in=[MessageKind.VISITOR, MessageKind.STAFF])
        said = models.Q(kind=MessageKind.REPLY, is_selected=True) & ~models.Q(status__in=UNFINISHED)
        return self.filter(spoken | said).order_by("seq")

    def unfinished(self) -> Self:
        return self.filter(kind=MessageKind.REPLY, status__in=UNFINISHED)


class Message(models.Model):
    """One thing said. A reply's `parent` is the newest visitor message that it answers; siblings share the parent."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages")
    seq = models.PositiveBigIntegerField()
    changed_seq = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=8, choices=MessageKind.choices)
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="answers")
    sibling_index = models.PositiveIntegerField(default=0)
    is_selected = models.BooleanField(default=True)
    is_shown = models.BooleanField(default=True)
    origin = models.CharField(max_length=12, choices=MessageOrigin.choices, default=MessageOrigin.SERVED)
    status = models.CharField(max_length=12, choices=MessageStatus.choices, default=MessageStatus.COMPLETE)
    failure_code = models.CharField(max_length=40, blank=True)
    is_retryable = models.BooleanField(default=False)
    text = models.TextField(blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    redacted_text = models.TextField(blank=True)
    redacted_spans = models.JSONField(default=list, blank=True)
    redactor_version = models.CharField(max_length=40, blank=True)
    client_id = models.CharField(max_length=64, null=True, blank=True)
    author = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="messages")
    is_excluded = models.BooleanField(default=False, help_text="Never exported for training (safety turns).")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ("conversation", "seq")
        indexes = (models.Index(fields=["conversation", "changed_seq"], name="message_changes"),)
        constraints = (
            models.UniqueConstraint(fields=["conversation", "seq"], name="one_message_per_seq"),
            models.UniqueConstraint(fields=["conversation", "client_id"], name="one_message_per_client_id"),
            # Rule 3, held by the database itself: never two replies at once in a conversation.
            models.UniqueConstraint(
                fields=["conversation"],
                condition=models.Q(kind=MessageKind.REPLY, status__in=UNFINISHED),
                name="one_running_reply",
            ),
        )

    def __str__(self) -> str:
        return str(self.id)

    @property
    def is_unfinished(self) -> bool:
        return self.status in UNFINISHED
