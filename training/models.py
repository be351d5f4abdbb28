"""Rows of the refresh loop: what was learned from, by which run, and what the gate saw. Filled by the refresh issue."""

import uuid

from django.db import models


class Snapshot(models.Model):
    """A frozen, hashed set of logged turns; after an erasure the manifest keeps the old hash and a tombstone."""

    sha256 = models.CharField(max_length=64, unique=True)
    filters = models.JSONField(default=dict)
    counts = models.JSONField(default=dict)
    tombstones = models.JSONField(default=list)
    folder = models.CharField(max_length=500)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.sha256[:12]


class SnapshotRow(models.Model):
    """Which reply of which visitor a snapshot holds: how an erasure finds every file it must touch (rule 8)."""

    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, related_name="rows")
    reply = models.ForeignKey("chat.Message", on_delete=models.CASCADE, related_name="snapshot_rows")
    visitor = models.ForeignKey("chat.Visitor", on_delete=models.CASCADE, related_name="snapshot_rows")

    def __str__(self) -> str:
        return f"{self.reply_id} in {self.snapshot_id}"


class RunState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Running"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class TrainingRun(models.Model):
    """One run of a recipe; the lease (owner, fence, heartbeat) decides who runs it, never the broker (rule 5)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    snapshot = models.ForeignKey(Snapshot, on_delete=models.PROTECT, null=True, related_name="runs")
    config = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=RunState.choices, default=RunState.WAITING)
    stage = models.CharField(max_length=40, blank=True)
    failure = models.CharField(max_length=200, blank=True)
    candidate = models.ForeignKey("chat.PolicyVersion", on_delete=models.PROTECT, null=True, related_name="runs")
    owner = models.CharField(max_length=64, blank=True)
    fence = models.UUIDField(default=uuid.uuid4)
    heartbeat_at = models.DateTimeField(null=True)
    started_by = models.ForeignKey("chat.User", on_delete=models.SET_NULL, null=True, related_name="runs")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return str(self.id)


class GateEvidence(models.Model):
    """One absolute or comparative rule of the gate, as measured on a version."""

    version = models.ForeignKey("chat.PolicyVersion", on_delete=models.CASCADE, related_name="evidence")
    run = models.ForeignKey(TrainingRun, on_delete=models.SET_NULL, null=True, related_name="evidence")
    rule = models.CharField(max_length=60)
    value = models.FloatField(null=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    bar = models.CharField(max_length=60)
    has_passed = models.BooleanField()
    details = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.rule} of {self.version_id}"
