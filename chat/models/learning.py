"""Versions that answer, write rubrics, judge or screen (`PolicyVersion`), and labelled pairs (`PreferencePair`)."""

import uuid
from typing import Any

from django.db import models, transaction
from django.dispatch import Signal

from chat.models.people import User

versions_changed = Signal()  # after the commit: a version was saved, or a pointer moved


class VersionKind(models.TextChoices):
    POLICY = "policy", "Policy"
    GENERATOR = "generator", "Rubric generator"
    JUDGE = "judge", "Judge"
    SCREEN = "screen", "Crisis screen"


class VersionOrigin(models.TextChoices):
    BASE = "base", "Base"
    OPERATOR = "operator", "Operator"
    TRAINED = "trained", "Trained"


class VersionState(models.TextChoices):
    CANDIDATE = "candidate", "Candidate"
    CANARY = "canary", "Canary"
    LIVE = "live", "Live"
    RETIRED = "retired", "Retired"
    UNSAFE = "unsafe", "Unsafe"


class PolicyVersionQuerySet(models.QuerySet["PolicyVersion"]):
    """Rows of versions. An update is how pointers move."""

    def update(self, **values: Any) -> int:
        """As Django's, with `versions_changed` after the commit."""
        rows = super().update(**values)
        _tell_after_commit()
        return rows


class PolicyVersion(models.Model):
    """An immutable version, named by content hash (`policy-<hash12>`); the name is never reused (rule 6)."""

    kind = models.CharField(max_length=10, choices=VersionKind.choices)
    name = models.CharField(max_length=64, unique=True)
    origin = models.CharField(max_length=10, choices=VersionOrigin.choices)
    folder = models.CharField(
        max_length=500, blank=True, help_text="Below the cache or the registry; empty = the engine's own."
    )
    base_sha256 = models.CharField(max_length=64, blank=True)
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, blank=True, related_name="children")
    snapshot_sha256 = models.CharField(max_length=64, blank=True)
    gate = models.JSONField(default=dict, blank=True)
    config = models.JSONField(default=dict, blank=True)
    code_revision = models.CharField(max_length=64, blank=True)
    state = models.CharField(max_length=10, choices=VersionState.choices, default=VersionState.CANDIDATE)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PolicyVersionQuerySet.as_manager()

    class Meta:
        constraints = (
            # One pointer per kind: readers never see two champions, or none in the middle of a move (A25).
            models.UniqueConstraint(
                fields=["kind"], condition=models.Q(state=VersionState.LIVE), name="one_live_version_per_kind"
            ),
        )

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **options: Any) -> None:
        """As Django's, with `versions_changed` after the commit."""
        super().save(*args, **options)
        _tell_after_commit()


def _tell_after_commit() -> None:
    transaction.on_commit(lambda: versions_changed.send(PolicyVersion))


class PairLabel(models.TextChoices):
    A = "a", "A"
    B = "b", "B"
    TIE = "tie", "Tie"
    BOTH_BAD = "both_bad", "Both bad"


class PreferencePair(models.Model):
    """Two replies to one context and which a person preferred."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    context = models.ForeignKey("chat.Message", on_delete=models.CASCADE, related_name="pairs")
    a = models.ForeignKey("chat.Message", on_delete=models.CASCADE, related_name="pairs_as_a")
    b = models.ForeignKey("chat.Message", on_delete=models.CASCADE, related_name="pairs_as_b")
    label = models.CharField(max_length=8, choices=PairLabel.choices)
    strength = models.PositiveSmallIntegerField(default=1)
    source = models.CharField(max_length=24)
    order_shown = models.CharField(max_length=2, default="ab")
    annotators = models.ManyToManyField(User, blank=True, related_name="pairs")
    agreement = models.FloatField(null=True)
    rubric = models.ForeignKey("chat.TurnRubric", on_delete=models.SET_NULL, null=True, related_name="pairs")
    group_key = models.CharField(max_length=64, db_index=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"pair {self.id}"
