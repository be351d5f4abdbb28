"""Django's admin for snapshots, runs and gate evidence: to look at, not to edit; the verbs own these rows."""

from django.contrib import admin

from chat.admin import ReadOnlyAdmin
from training import models


@admin.register(models.Snapshot)
class SnapshotAdmin(ReadOnlyAdmin):
    list_display = ("sha256", "created_at", "folder")


@admin.register(models.SnapshotRow)
class SnapshotRowAdmin(ReadOnlyAdmin):
    list_display = ("snapshot", "reply_id", "visitor_id")
    list_select_related = ("snapshot",)


@admin.register(models.TrainingRun)
class TrainingRunAdmin(ReadOnlyAdmin):
    list_display = ("id", "state", "stage", "candidate", "created_at", "finished_at")
    list_filter = ("state",)
    list_select_related = ("candidate",)


@admin.register(models.GateEvidence)
class GateEvidenceAdmin(ReadOnlyAdmin):
    list_display = ("version", "rule", "value", "low", "high", "bar", "has_passed", "created_at")
    list_filter = ("rule", "has_passed")
    list_select_related = ("version",)
