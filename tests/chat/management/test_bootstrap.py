"""`bootstrap` makes what a fresh installation begins with, and prints each password exactly once."""

import io
import re
from typing import Any

import pytest
from django.core.management import call_command

from chat.checks import OriginsUnsafe
from chat.models import PolicyVersion, User, WidgetSite
from chat.models.people import Role

pytestmark = pytest.mark.django_db


def run() -> str:
    out = io.StringIO()
    call_command("bootstrap", stdout=out)
    return out.getvalue()


def test_first_run_makes_the_site_the_accounts_and_the_versions() -> None:
    output = run()
    site = WidgetSite.objects.get()
    assert (site.slug, site.is_demo, site.origins) == ("demo", True, ["http://testserver", "http://localhost:8000"])
    passwords = dict(re.findall(r"account\s+(\S+)\s+password (\S+)", output))
    assert set(passwords) == {f"demo-{role.value}" for role in Role}
    for username, password in passwords.items():
        assert output.count(password) == 1
        assert User.objects.get(username=username).check_password(password)
    assert {version.kind for version in PolicyVersion.objects.filter(state="live")} >= {"policy", "generator", "judge"}


def test_second_run_changes_nothing_and_prints_no_password() -> None:
    first = run()
    counts = (WidgetSite.objects.count(), User.objects.count(), PolicyVersion.objects.count())
    second = run()
    assert (WidgetSite.objects.count(), User.objects.count(), PolicyVersion.objects.count()) == counts
    assert "password" not in second
    for password in re.findall(r"password (\S+)", first):
        assert password not in second


def test_edited_demo_site_is_left_as_it_is() -> None:
    run()
    WidgetSite.objects.update(name="Ours", origins=["https://example.org"])
    run()
    assert (WidgetSite.objects.get().name, WidgetSite.objects.get().origins) == ("Ours", ["https://example.org"])


def test_a_star_stops_it_before_anything_is_made(settings: Any) -> None:
    settings.RAPPORT_ORIGINS = ["*"]
    with pytest.raises(OriginsUnsafe):
        run()
    assert not WidgetSite.objects.exists()
    assert not User.objects.exists()
