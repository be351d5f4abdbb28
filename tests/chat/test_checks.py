"""A star or a malformed origin stops the product outside debug, in every process that serves."""

import asyncio
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from chat.checks import OriginsUnsafe, check_helplines, refuse_unsafe_origins
from chat.models import WidgetSite
from chat.routing import lifespan
from tests.factories import make_site

BAD = ["*", "https://*.example.org", "https://example.org/", "example.org"]


def identifiers(**options: Any) -> set[str | None]:
    return {message.id for message in run_checks(**options) if message.id and message.id.startswith("chat.")}


@pytest.mark.django_db
@pytest.mark.parametrize("origin", BAD)
def test_bad_origin_of_a_site_is_a_start_up_error(origin: str) -> None:
    make_site(origins=[origin])
    assert "chat.E002" in identifiers(databases=["default"])
    with pytest.raises(OriginsUnsafe):
        refuse_unsafe_origins()


@pytest.mark.django_db
@pytest.mark.parametrize("origin", BAD)
def test_bad_origin_of_our_own_is_a_start_up_error(origin: str, settings: Any) -> None:
    settings.RAPPORT_ORIGINS = [origin]
    with pytest.raises(SystemCheckError, match=r"chat\.E001"):
        call_command("check")
    with pytest.raises(OriginsUnsafe):
        refuse_unsafe_origins()


@pytest.mark.django_db
def test_in_debug_it_is_a_warning_only(settings: Any) -> None:
    settings.DEBUG = True
    make_site(origins=["*"])
    refuse_unsafe_origins()
    assert [message.level for message in run_checks(databases=["default"]) if message.id == "chat.E002"] == [30]


@pytest.mark.django_db
def test_good_origins_and_closed_sites_start() -> None:
    make_site(origins=["https://example.org"])
    make_site(origins=["*"], is_active=False)
    refuse_unsafe_origins()
    assert not identifiers(databases=["default"])


async def test_web_process_does_not_start_with_a_star(transactional_db: None) -> None:
    await WidgetSite.objects.acreate(slug="open", name="Open", origins=["*"])
    sent: list[dict[str, Any]] = []
    incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    await incoming.put({"type": "lifespan.startup"})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await asyncio.wait_for(lifespan({"type": "lifespan"}, incoming.get, send), timeout=10)
    assert [message["type"] for message in sent] == ["lifespan.startup.failed"]
    assert "'open'" in sent[0]["message"]


def test_unchecked_helplines_are_a_warning_before_a_deployment() -> None:
    (message,) = check_helplines(None)
    assert (message.id, message.level) == ("chat.W003", 30)
