"""A14, B28: sixty hostile texts through visitor, model, file name, rubric and site; none becomes markup.

The browser's own part (widget and console draw with text nodes) is tested with a real Chromium in tests/e2e.
"""

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from chat.alerts import notify_pending_alerts
from chat.models import Alert, Feedback, Rating, TurnRubric
from chat.models.learning import VersionKind, VersionState
from tests.chat.api.conftest import Caller, staff_client
from tests.factories import (
    make_conversation,
    make_message,
    make_reply,
    make_site,
    make_user,
    make_version,
    make_visitor,
)
from tests.fakes.hostile import HOSTILE_TEXTS

pytestmark = [pytest.mark.django_db, pytest.mark.redis]
AT_ONCE = 6
ADMIN_ROWS = ("message", "turnrubric", "feedback", "rating", "visitor", "conversation", "generation", "alert")


class Shape(HTMLParser):
    """The markup of a page without its texts: element names and attribute names, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        links = [value for name, value in attrs if name in {"href", "src", "action"} and value]
        assert not any(link.replace("\t", "").lower().startswith(("javascript:", "data:text")) for link in links)
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag != "br":  # the admin turns line ends into these
            self.parts.append(f"{tag} {sorted(name for name, _ in attrs)}")


def shape_of(html: str) -> list[str]:
    parser = Shape()
    parser.feed(html)
    return parser.parts


def fill(text: str) -> dict[str, Any]:
    """A row of every table with the same text in every place that takes one."""
    conversation = make_conversation(make_visitor(make_site()))
    said = make_message(conversation)
    reply = make_reply(said)
    generator = make_version(VersionKind.GENERATOR, state=VersionState.RETIRED)
    rows = {
        "site": conversation.site,
        "conversation": conversation,
        "said": said,
        "message": reply,
        "turnrubric": TurnRubric.objects.create(
            message=said, generator=generator, weights={}, criteria=[], context_sha256="0"
        ),
        "feedback": Feedback.objects.create(message=reply, visitor=conversation.visitor, value=1),
        "rating": Rating.objects.create(conversation=conversation, stars=1),
        "visitor": conversation.visitor,
        "generation": reply.generation,
        "alert": Alert.objects.create(kind="crisis", conversation=conversation, message=said),
    }
    retell(rows, text)
    return rows


def retell(rows: dict[str, Any], text: str) -> None:
    """Put another text into every place."""
    criteria = [{"id": "C1", "text": text, "dimension": "cognitive", "polarity": "want"}]
    changes: dict[str, dict[str, Any]] = {
        "site": {"name": text[:120], "system_prompt": text, "safety_message": text, "theme": {"x": text}},
        "said": {"text": text, "redacted_text": text, "client_id": text[:64]},
        "message": {"text": text},
        "turnrubric": {"criteria": criteria, "fallback_reason": text[:200], "state": {"need_summary": text}},
        "feedback": {"comment": text, "reasons": [text[:40]]},
        "rating": {"comment": text},
        "visitor": {"external_id": text[:100]},
        "generation": {"engine_model": text[:100], "logprob_gap": text[:80]},
    }
    for name, fields in changes.items():
        type(rows[name]).objects.filter(pk=rows[name].pk).update(**fields)


def pages_of(rows: dict[str, Any]) -> list[str]:
    """Every HTML page that shows one of these rows."""
    site, conversation = rows["site"], rows["conversation"]
    paths = [f"/chat/{site.slug}/", f"/staff/conversations/{conversation.pk}/"]
    paths += [f"/admin/chat/widgetsite/{site.pk}/change/", "/admin/chat/widgetsite/"]
    return paths + [f"/admin/chat/{name}/{rows[name].pk}/change/" for name in ADMIN_ROWS]


def lists_of() -> list[str]:
    return ["/staff/", *(f"/admin/chat/{name}/" for name in ADMIN_ROWS)]


def test_the_corpus_has_sixty_different_texts() -> None:
    assert len(set(HOSTILE_TEXTS)) == len(HOSTILE_TEXTS) == 60


def test_no_hostile_text_changes_the_markup_of_any_page() -> None:
    """Compared with a harmless text in the same place: not one element or attribute more."""
    client = staff_client("admin")
    rows = fill("Just words.")
    pages = pages_of(rows)
    expected = {path: shape_of(client.get(path).content.decode()) for path in pages}
    assert all(expected.values())
    for first in range(0, len(HOSTILE_TEXTS), AT_ONCE):  # several at once: the admin's pages take their time
        retell(rows, " ".join(HOSTILE_TEXTS[first : first + AT_ONCE]))
        for path in pages:
            assert shape_of(client.get(path).content.decode()) == expected[path], (path, first)


def test_lists_show_no_texts() -> None:
    client = staff_client("admin")
    rows = fill("")
    for text in (HOSTILE_TEXTS[0], "\n".join(HOSTILE_TEXTS)):
        retell(rows, text)
        for path in lists_of():
            assert "__ran" not in client.get(path).content.decode(), path


def test_json_answers_are_never_sniffed_as_pages() -> None:
    for text in HOSTILE_TEXTS[:5]:
        rows = fill(text)
        client = staff_client("lead")
        response = client.get(f"/api/staff/conversations/{rows['conversation'].pk}/turns/?reveal=1")
        assert response["Content-Type"] == "application/json"
        assert response["X-Content-Type-Options"] == "nosniff"
        turn = json.loads(response.content)["results"][0]
        assert turn["text"] == turn["replies"][0]["text"] == text


def test_the_download_has_a_name_of_ours_whatever_was_said(clean_redis: None) -> None:
    from chat.services.visitors import start_conversation

    started = start_conversation(make_site(name=HOSTILE_TEXTS[0]))
    caller = Caller(token=started.token)
    make_message(started.conversation, HOSTILE_TEXTS[0])
    response = caller.call("GET", f"/api/chat/conversations/{started.conversation.pk}/download")
    assert response["Content-Disposition"] == f'attachment; filename="conversation-{started.conversation.pk}.json"'


def test_mail_to_staff_carries_no_text_at_all(settings: Any) -> None:
    settings.RAPPORT_STAFF_EMAIL = "staff@example.org"
    for text in HOSTILE_TEXTS:
        fill(text)
    while notify_pending_alerts():
        assert len(mail.outbox) <= len(HOSTILE_TEXTS)
    assert len(mail.outbox) == len(HOSTILE_TEXTS)
    for letter in mail.outbox:
        assert not getattr(letter, "alternatives", None)
        assert "__ran" not in f"{letter.subject}{letter.body}"
        assert "<" not in letter.body


def test_staff_names_are_escaped_too() -> None:
    client = Client()
    client.force_login(make_user("lead", display_name=HOSTILE_TEXTS[20][:80]))
    html = client.get("/staff/").content.decode()
    assert "<img" not in html
