"""The admin: every row can be looked at, few can be edited, and a site with a star cannot be saved."""

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client

from chat.models import AuditEntry, User, WidgetSite
from chat.models.audit import record
from tests.chat.api.conftest import staff_client
from tests.factories import make_site, make_user

pytestmark = pytest.mark.django_db


def site_form(site: WidgetSite, **changed: Any) -> dict[str, Any]:
    fields = {
        "slug": site.slug,
        "name": site.name,
        "is_active": "on",
        "origins": "[]",
        "theme": "{}",
        "locales": "[]",
        "country": "",
        "helplines": "[]",
        "identity_secret": site.identity_secret,
        "mode": "plain",
        "system_prompt": "",
        "safety_message": "",
        "daily_token_budget": "1000",
        "retention_days": "30",
    }
    return {**fields, **changed}


def test_every_row_has_a_page() -> None:
    for model in apps.get_models():
        if model._meta.app_label in {"chat", "training"}:
            assert admin.site.is_registered(model), model._meta.label


@pytest.mark.parametrize(
    "origins", ['["*"]', '["https://*.example.org"]', '["https://example.org/path"]', '"https://example.org"', "[5]"]
)
def test_site_with_a_bad_origin_cannot_be_saved(origins: str) -> None:
    site = make_site()
    response = staff_client("admin").post(f"/admin/chat/widgetsite/{site.pk}/change/", site_form(site, origins=origins))
    assert response.status_code == 200
    assert "cannot be an origin" in response.content.decode()
    site.refresh_from_db()
    assert site.origins == []


def test_site_is_saved_with_normal_origins_and_audited() -> None:
    site = make_site()
    content = site_form(site, origins='["https://Example.org:443"]', helplines='[{"name": "Nurse", "phone": "1"}]')
    assert staff_client("admin").post(f"/admin/chat/widgetsite/{site.pk}/change/", content).status_code == 302
    site.refresh_from_db()
    assert site.origins == ["https://example.org"]
    assert "origins" in str(AuditEntry.objects.get(verb="site.save").facts["fields"])


def test_helpline_that_nobody_can_reach_cannot_be_saved() -> None:
    site = make_site()
    content = site_form(site, helplines='[{"name": "Nobody"}]')
    html = staff_client("admin").post(f"/admin/chat/widgetsite/{site.pk}/change/", content).content.decode()
    assert "needs a name and at least one of" in html


def test_audit_entries_can_only_be_read() -> None:
    entry = record("test.deed", "nothing", actor=None, facts={})
    client = staff_client("admin")
    assert client.get(f"/admin/chat/auditentry/{entry.pk}/change/").status_code == 200
    assert client.get("/admin/chat/auditentry/add/").status_code == 403
    assert client.post(f"/admin/chat/auditentry/{entry.pk}/change/", {"verb": "else"}).status_code == 403
    assert client.post(f"/admin/chat/auditentry/{entry.pk}/delete/", {"post": "yes"}).status_code == 403
    assert AuditEntry.objects.get(pk=entry.pk).verb == "test.deed"


def test_rows_of_verbs_cannot_be_edited() -> None:
    client = staff_client("admin")
    for name in ("message", "conversation", "turnscore", "consent", "policyversion"):
        assert client.get(f"/admin/chat/{name}/add/").status_code == 403


def test_role_decides_who_may_come_in() -> None:
    user = make_user("reviewer")
    client = staff_client("admin")
    dates = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    content = {"username": user.username, "role": "admin", "is_active": "on", **dates}
    assert client.post(f"/admin/chat/user/{user.pk}/change/", content).status_code == 302
    assert User.objects.get(pk=user.pk).is_superuser
    client.post(f"/admin/chat/user/{user.pk}/change/", {**content, "role": "reviewer"})
    assert not User.objects.get(pk=user.pk).is_superuser
    assert AuditEntry.objects.filter(verb="account.save").count() == 2


def test_anonymous_sees_the_log_in_only() -> None:
    response = Client().get("/admin/chat/message/")
    assert (response.status_code, response["Location"].partition("?")[0]) == (302, "/admin/login/")


def test_tokens_of_a_visitor_can_be_ended() -> None:
    from chat.services.visitors import resolve_token, start_conversation
    from chat.tokens import TokenInvalid

    started = start_conversation(make_site())
    content = {"action": "end_tokens_of_visitors", "_selected_action": [str(started.visitor.pk)]}
    staff_client("admin").post("/admin/chat/visitor/", content)
    with pytest.raises(TokenInvalid, match="epoch"):
        resolve_token(started.token)
    assert AuditEntry.objects.get(verb="visitor.end_tokens").subject == f"visitor {started.visitor.pk}"
