"""Django's admin for what has no page of its own: to look at every row, and to edit sites and accounts.

Lists never show what people wrote; single rows do, to those whom Django lets in (superusers). Audit entries can be
read and nothing else. Everything that a verb owns (messages, replies, scores) is read-only here. No judge is shown
without what is known of its agreement with people.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from chat import models
from chat.models.learning import VersionKind
from chat.models.people import Role
from chat.services.judges import describe_evidence
from chat.services.visitors import end_tokens


def acting(request: HttpRequest) -> models.User | None:
    """Who does it, for the audit entry."""
    return request.user if isinstance(request.user, models.User) else None


class ReadOnlyAdmin(admin.ModelAdmin):
    """Rows that verbs own: to be looked at."""

    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def _evidence_of(judge: models.PolicyVersion) -> str:
    return describe_evidence([judge])[judge.pk]


class JudgeAdmin(ReadOnlyAdmin):
    """Rows that are of a judge or by one: every list and every page says how far it agrees with people."""

    readonly_fields = ("human_evidence",)

    def get_list_display(self, request: HttpRequest) -> tuple[str | Callable[[Any], str | bool], ...]:
        return (*self.list_display, self._evidence_column())

    def _evidence_column(self) -> Callable[[Any], str | bool]:
        """A column that asks once per judge, however many rows the page has."""
        ask = cache(_evidence_of)

        @admin.display(description="Human evidence")
        def human_evidence(row: Any) -> str:
            judge = self.judge_of(row)
            return ask(judge) if judge is not None else "-"

        return human_evidence

    @admin.display(description="Human evidence")
    def human_evidence(self, row: Any) -> str:
        judge = self.judge_of(row)
        return _evidence_of(judge) if judge is not None else "-"

    def judge_of(self, row: Any) -> models.PolicyVersion | None:
        """The judge that the row is of or by; None where it has to do with none."""
        raise NotImplementedError


class WidgetSiteForm(forms.ModelForm):
    """A site's form; `WidgetSite.clean` refuses a star or a malformed origin, and helplines without a number."""

    class Meta:
        model = models.WidgetSite
        fields = (
            *("slug", "name", "is_active", "origins", "theme", "locales", "texts", "country", "helplines"),
            *("identity_secret", "is_identity_required", "mode", "system_prompt", "safety_message", "is_staffed"),
            *("daily_token_budget", "retention_days", "is_demo"),
        )


@admin.register(models.WidgetSite)
class WidgetSiteAdmin(admin.ModelAdmin):
    form = WidgetSiteForm
    list_display = ("slug", "name", "is_active", "is_demo", "mode", "is_identity_required", "retention_days")
    list_filter = ("is_active", "mode")
    search_fields = ("slug", "name")

    def save_model(self, request: HttpRequest, obj: models.WidgetSite, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        changed = " ".join(sorted(form.changed_data))
        models.audit.record("site.save", f"site {obj.slug}", actor=acting(request), facts={"fields": changed})

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False  # it would take every conversation of the site with it; switch `is_active` off instead


@admin.register(models.User)
class StaffAdmin(UserAdmin):
    list_display = ("username", "role", "display_name", "is_active", "is_staff", "last_login")
    list_filter = ("role", "is_active")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Rapport", {"fields": ("role", "display_name", "is_active")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (*UserAdmin.add_fieldsets, ("Rapport", {"fields": ("role", "display_name")}))

    def save_model(self, request: HttpRequest, obj: models.User, form: Any, change: bool) -> None:
        """The role alone decides who may come in here: admins, and nobody else."""
        obj.is_staff = obj.is_superuser = obj.role == Role.ADMIN
        super().save_model(request, obj, form, change)
        models.audit.record("account.save", f"user {obj.pk}", actor=acting(request), facts={"role": obj.role})


@admin.register(models.Visitor)
class VisitorAdmin(ReadOnlyAdmin):
    list_display = ("id", "site", "is_verified", "locale", "created_at")
    list_filter = ("site", "is_verified")
    actions = ("end_tokens_of_visitors",)

    @admin.action(description="End every token of the chosen visitors")
    def end_tokens_of_visitors(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for visitor_id in queryset.values_list("pk", flat=True):
            end_tokens(visitor_id)
            models.audit.record("visitor.end_tokens", f"visitor {visitor_id}", actor=acting(request), facts={})


@admin.register(models.Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    list_display = ("id", "site", "kind", "state", "control", "card_level", "visitor_turns", "last_activity_at")
    list_filter = ("site", "kind", "state", "card_level")
    list_select_related = ("site",)
    search_fields = ("=id",)


@admin.register(models.Message)
class MessageAdmin(ReadOnlyAdmin):
    list_display = ("id", "conversation_id", "seq", "kind", "status", "failure_code", "created_at")
    list_filter = ("kind", "status")
    search_fields = ("=id", "=conversation__id")


@admin.register(models.Generation)
class GenerationAdmin(ReadOnlyAdmin):
    list_display = ("message_id", "policy", "finish_reason", "first_token_ms", "total_ms", "completion_tokens")
    list_filter = ("finish_reason",)
    list_select_related = ("policy",)


@admin.register(models.TurnRubric)
class TurnRubricAdmin(ReadOnlyAdmin):
    list_display = ("message_id", "generator", "is_raw_valid", "repairs", "is_fallback", "latency_ms", "created_at")
    list_filter = ("is_fallback", "is_raw_valid")
    list_select_related = ("generator",)


@admin.register(models.TurnScore)
class TurnScoreAdmin(JudgeAdmin):
    list_display = ("reply_id", "judge", "role", "is_partial", "reward", "latency_ms", "created_at")
    list_filter = ("role", "is_partial")
    list_select_related = ("judge",)

    def judge_of(self, row: models.TurnScore) -> models.PolicyVersion:
        return row.judge


@admin.register(models.SafetyVerdict)
class SafetyVerdictAdmin(ReadOnlyAdmin):
    list_display = ("message_id", "direction", "level", "own_level", "score", "card", "screen_version", "created_at")
    list_filter = ("direction", "level")


@admin.register(models.Alert)
class AlertAdmin(ReadOnlyAdmin):
    list_display = ("id", "kind", "conversation_id", "raised_at", "notified_at", "notify_attempts", "acknowledged_at")
    list_filter = ("kind",)


@admin.register(models.AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("at", "actor_name", "verb", "subject")
    list_filter = ("verb",)
    search_fields = ("subject", "actor_name")


@admin.register(models.Consent)
class ConsentAdmin(ReadOnlyAdmin):
    list_display = ("visitor_id", "purpose", "version", "is_granted", "at")
    list_filter = ("purpose", "is_granted")


@admin.register(models.Feedback)
class FeedbackAdmin(ReadOnlyAdmin):
    list_display = ("message_id", "value", "at")
    list_filter = ("value",)


@admin.register(models.Rating)
class RatingAdmin(ReadOnlyAdmin):
    list_display = ("conversation_id", "stars", "at")
    list_filter = ("stars",)


@admin.register(models.PolicyVersion)
class PolicyVersionAdmin(JudgeAdmin):
    list_display = ("name", "kind", "origin", "state", "parent", "created_at")
    list_filter = ("kind", "origin", "state")
    list_select_related = ("parent",)

    def judge_of(self, row: models.PolicyVersion) -> models.PolicyVersion | None:
        return row if row.kind == VersionKind.JUDGE else None


@admin.register(models.PreferencePair)
class PreferencePairAdmin(ReadOnlyAdmin):
    list_display = ("id", "label", "strength", "source", "agreement", "created_at")
    list_filter = ("label", "source")
