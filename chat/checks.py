"""Start-up checks: what must not go live. `manage.py check` runs them, and so does every process that starts Django.

An origin that is no origin (a star above all) is an error outside debug and a warning within it. Sites are read from
the database only where it answers: before the first migration there is nothing to read.
"""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError
from django.utils import timezone

from chat.helplines import unchecked_lines
from chat.models import WidgetSite
from chat.origins import OriginInvalid, check_origins
from chat.theme import ThemeInvalid, read_theme

MAX_HELPLINE_AGE_DAYS = 180


class OriginsUnsafe(ImproperlyConfigured):
    """A site or a setting names an origin that would let foreign pages in; the product does not start."""


def register_checks() -> None:
    """Called when the app is ready."""
    register(check_own_origins, Tags.security)
    register(check_site_origins, Tags.database)
    register(check_site_themes, Tags.database)
    register(check_helplines, Tags.security, deploy=True)


def check_own_origins(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """RAPPORT_ORIGINS are origins."""
    try:
        check_origins(list(settings.RAPPORT_ORIGINS))
    except OriginInvalid as error:
        return [_message(f"RAPPORT_ORIGINS: {error}", "chat.E001")]
    return []


def check_site_origins(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Every active site's origins are origins."""
    return [_message(problem, "chat.E002") for problem in site_problems()]


def check_site_themes(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Every active site's look can be used; where it cannot, its page shows the product's own."""
    try:
        themes = list(WidgetSite.objects.filter(is_active=True).values_list("slug", "theme"))
    except DatabaseError:
        return []
    return [_theme_message(slug, problem) for slug, theme in themes if (problem := _theme_problem(theme))]


def _theme_problem(theme: object) -> str:
    try:
        read_theme(theme)
    except ThemeInvalid as error:
        return str(error)
    return ""


def _theme_message(slug: str, problem: str) -> CheckMessage:
    text = f"Site {slug!r}: {problem} Its page shows the product's own look until then."
    return Warning(text, hint="Change the site's theme in the admin.", id="chat.W004")


def check_helplines(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Before a deployment: how many helplines nobody has compared with their source lately."""
    stale = unchecked_lines(now=timezone.now().date(), max_age_days=MAX_HELPLINE_AGE_DAYS)
    if not stale:
        return []
    text = f"{len(stale)} helplines were not compared with their source within {MAX_HELPLINE_AGE_DAYS} days."
    return [Warning(text, hint="Check the lines of the countries you serve; chat/data/helplines.json.", id="chat.W003")]


def site_problems() -> list[str]:
    """One sentence per active site with an origin that may not be there; none where the table cannot be read yet."""
    problems = []
    try:
        for slug, origins in WidgetSite.objects.filter(is_active=True).values_list("slug", "origins"):
            try:
                check_origins(origins)
            except OriginInvalid as error:
                problems.append(f"Site {slug!r}: {error}")
    except DatabaseError:
        return []
    return problems


def refuse_unsafe_origins() -> None:
    """Raises OriginsUnsafe outside debug. Called by every web process before it serves, and by `bootstrap`."""
    problems = [str(message.msg) for message in check_own_origins(None)] + site_problems()
    if problems and not settings.DEBUG:
        raise OriginsUnsafe(" ".join(problems))


def _message(text: str, identifier: str) -> CheckMessage:
    kind = Warning if settings.DEBUG else Error
    return kind(text, hint="Name each origin: https://example.org. A star would let every page in.", id=identifier)
