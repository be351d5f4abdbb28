"""The visitors' REST door, call by call."""

import base64
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from chat.models import Consent, Conversation, Feedback, Visitor
from chat.models.conversations import ConversationState, MessageKind
from chat.services.visitors import resolve_token
from chat.tokens import sign_identity
from tests.chat.api.conftest import Caller, arrive
from tests.factories import make_message, make_reply, make_site, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.redis]


@pytest.fixture(autouse=True)
def _empty_limits(clean_redis: None) -> None:
    """Every test begins with nothing counted."""


def start(content: dict[str, Any], **headers: str) -> Any:
    return Client().post("/api/chat/start", data=content, content_type="application/json", headers=headers)


def test_start_gives_a_token_that_opens_the_conversation() -> None:
    site = make_site(country="gb", locales=["en-GB"], name="Corner")
    response = start({"site": site.slug, "locale": "en-GB"})
    assert response.status_code == 200
    content = response.json()
    assert str(resolve_token(content["token"]).conversation_id) == content["conversation"]
    assert content["visitor"] == str(Visitor.objects.get().pk)
    assert content["consent"] is False
    assert content["is_continued"] is False
    assert content["site"] == {
        "slug": site.slug,
        "name": "Corner",
        "locale": "en-GB",
        "country": "GB",
        "is_demo_model": True,
        "is_identity_required": False,
    }
    again = start({"site": site.slug, "token": content["token"]}).json()
    assert (again["conversation"], again["is_continued"]) == (content["conversation"], True)


@pytest.mark.parametrize("settings_change", [{"RAPPORT_MODEL": "/models/own"}, {"RAPPORT_ENGINE": "remote"}])
def test_own_model_is_no_demo_model(settings: Any, settings_change: dict[str, str]) -> None:
    for name, value in settings_change.items():
        setattr(settings, name, value)
    assert start({"site": make_site().slug}).json()["site"]["is_demo_model"] is False


def test_start_on_a_missing_or_closed_site_is_404() -> None:
    assert start({"site": "nowhere"}).status_code == 404
    assert start({"site": make_site(is_active=False).slug}).status_code == 404
    assert Visitor.objects.count() == 0


def test_identity_needs_the_sites_signature() -> None:
    site = make_site(is_identity_required=True)
    assert start({"site": site.slug}).json()["code"] == "identity_required"
    forged = start({"site": site.slug, "identity": {"id": "victim@example.org", "signature": "0" * 64}})
    assert (forged.status_code, forged.json()["code"]) == (403, "identity_invalid")
    assert Visitor.objects.count() == 0
    signature = sign_identity("user-17", secret=site.identity_secret)
    assert start({"site": site.slug, "identity": {"id": "user-17", "signature": signature}}).status_code == 200
    assert Visitor.objects.get().is_verified


def test_start_is_limited_by_address(settings: Any) -> None:
    settings.RAPPORT_ADDRESS_MESSAGES_PER_MINUTE = 2
    site = make_site()
    assert [start({"site": site.slug}).status_code for _ in range(3)] == [200, 200, 429]
    assert Visitor.objects.count() == 2


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://host.example", 200),
        ("http://testserver", 200),
        (None, 200),
        ("https://evil.example", 403),
        ("https://sub.host.example", 403),
        ("http://host.example", 403),
        ("null", 403),
    ],
)
def test_start_answers_only_origins_in_the_sites_list(origin: str | None, status: int) -> None:
    site = make_site(origins=["https://host.example"])
    response = start({"site": site.slug}, **({"Origin": origin} if origin else {}))
    assert response.status_code == status
    assert response.get("Access-Control-Allow-Origin") == (origin if status == 200 else None)
    assert "Access-Control-Allow-Credentials" not in response
    assert Visitor.objects.count() == (1 if status == 200 else 0)


def test_preflight_is_granted_to_listed_origins_only() -> None:
    make_site(origins=["https://host.example"])
    make_site(origins=["https://closed.example"], is_active=False)
    for origin, granted in [
        ("https://host.example", True),
        ("https://evil.example", False),
        ("https://closed.example", False),
    ]:
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        response = Client().options("/api/chat/start", headers=headers)
        assert response.status_code == 204
        assert ("Access-Control-Allow-Origin" in response) is granted
        assert response["Vary"] == "Origin"


def test_history_pages_through_what_the_visitor_may_see(visitor: Caller) -> None:
    conversation = visitor.conversation
    assert conversation is not None
    said = make_message(conversation, "First.")
    reply = make_reply(said, "Hm.")
    make_reply(said, "Hidden.", is_shown=False, sibling_index=1)
    make_message(conversation, "Note.", kind=MessageKind.NOTE, author=make_user())
    for number in range(60):
        make_message(conversation, f"More {number}.")
    path = f"/api/chat/conversations/{conversation.pk}/messages/"
    first = visitor.call("GET", path).json()
    assert first["previous"] is None
    second = visitor.call("GET", first["next"]).json()
    assert second["next"] is None
    texts = [message["text"] for message in [*first["results"], *second["results"]]]
    assert texts == ["First.", "Hm.", *(f"More {number}." for number in range(60))]
    assert first["results"][1]["id"] == str(reply.pk)
    back = visitor.call("GET", second["previous"]).json()
    assert back["results"] == first["results"]


@pytest.mark.parametrize("inside", ["p=abc", "p=%00", "o=-1", "p=1.5", "p=\ud83d", "o=x"])
def test_cursor_that_is_not_ours_is_a_400(visitor: Caller, inside: str) -> None:
    assert visitor.conversation is not None
    path = f"/api/chat/conversations/{visitor.conversation.pk}/messages/"
    for cursor in (base64.b64encode(inside.encode("utf-8", "surrogatepass")).decode(), "not base64 é"):
        response = visitor.call("GET", f"{path}?{urlencode({'cursor': cursor})}")
        assert (response.status_code, response.json()["code"]) == (400, "malformed")


def test_cursor_beyond_every_number_is_an_empty_page(visitor: Caller) -> None:
    assert visitor.conversation is not None
    make_message(visitor.conversation)
    cursor = base64.b64encode(b"p=99999999999999999999999999").decode()
    path = f"/api/chat/conversations/{visitor.conversation.pk}/messages/?{urlencode({'cursor': cursor})}"
    assert visitor.call("GET", path).json()["results"] == []


def test_feedback_is_kept_and_changeable(visitor: Caller) -> None:
    assert visitor.conversation is not None
    reply = make_reply(make_message(visitor.conversation))
    path = f"/api/chat/messages/{reply.pk}/feedback"
    first = visitor.call("POST", path, {"value": 1, "reasons": ["kind"], "comment": "Thanks."})
    assert (first.status_code, first.json()["feedback"]) == (200, 1)
    assert visitor.call("POST", path, {"value": -1}).json()["feedback"] == -1
    assert list(Feedback.objects.values_list("value", flat=True)) == [1, -1]


def test_feedback_on_a_message_that_is_no_reply_is_404_and_on_a_running_one_409(visitor: Caller) -> None:
    assert visitor.conversation is not None
    said = make_message(visitor.conversation)
    running = make_reply(said, "", status="running")
    assert visitor.call("POST", f"/api/chat/messages/{said.pk}/feedback", {"value": 1}).status_code == 404
    assert visitor.call("POST", f"/api/chat/messages/{running.pk}/feedback", {"value": 1}).status_code == 409


def test_rating_and_closing(visitor: Caller) -> None:
    assert visitor.conversation is not None
    path = f"/api/chat/conversations/{visitor.conversation.pk}"
    assert visitor.call("POST", f"{path}/rating", {"stars": 4, "comment": "fine"}).json()["stars"] == 4
    assert visitor.call("POST", f"{path}/close").json() == {
        "conversation": str(visitor.conversation.pk),
        "state": "closed",
    }
    assert Conversation.objects.get(pk=visitor.conversation.pk).state == ConversationState.CLOSED
    for stars in (0, 6, 2.5, True, None, "3"):
        assert visitor.call("POST", f"{path}/rating", {"stars": stars}).status_code == 400


def test_consent_is_appended_with_the_version_of_its_text(visitor: Caller) -> None:
    granted = visitor.call("POST", "/api/chat/consent", {"purpose": "improvement", "granted": True})
    assert (granted.status_code, granted.json()["version"]) == (200, "improvement-1")
    refused = visitor.call(
        "POST", "/api/chat/consent", {"purpose": "improvement", "granted": False, "version": "improvement-1"}
    )
    assert refused.json()["granted"] is False
    assert Consent.objects.count() == 2
    for bad in (
        {"purpose": "improvement", "granted": "true"},
        {"purpose": "else", "granted": True},
        {"purpose": "improvement", "granted": True, "version": "improvement-9"},
    ):
        assert visitor.call("POST", "/api/chat/consent", bad).status_code == 400
    assert Consent.objects.count() == 2


def test_download_is_a_file_of_ones_own_conversation(visitor: Caller) -> None:
    assert visitor.conversation is not None
    make_reply(make_message(visitor.conversation, "Hello?"), "Hello.")
    response = visitor.call("GET", f"/api/chat/conversations/{visitor.conversation.pk}/download")
    assert response["Content-Disposition"].startswith("attachment;")
    assert response["Cache-Control"] == "no-store"
    assert [message["text"] for message in json.loads(response.content)["messages"]] == ["Hello?", "Hello."]


def test_deleting_oneself_leaves_others_alone_and_ends_the_token(visitor: Caller) -> None:
    other = arrive()
    assert visitor.conversation is not None
    assert other.conversation is not None
    make_message(visitor.conversation)
    make_message(other.conversation)
    response = visitor.call("DELETE", "/api/chat/me")
    assert response.status_code == 200
    assert response.json()["erased"] == {"chat.Visitor": 1, "chat.Conversation": 1, "chat.Message": 1}
    assert visitor.call("DELETE", "/api/chat/me").status_code == 401
    assert list(Visitor.objects.all()) == [other.visitor]
    assert other.conversation.messages.count() == 1


def test_deletion_that_would_overreach_is_refused_and_changes_nothing(visitor: Caller) -> None:
    other = arrive()
    assert visitor.conversation is not None
    assert other.conversation is not None
    make_message(other.conversation, parent=make_message(visitor.conversation))
    response = visitor.call("DELETE", "/api/chat/me")
    assert (response.status_code, response.json()["code"]) == (409, "erasure_refused")
    assert Visitor.objects.count() == 2


def test_helplines_need_no_token() -> None:
    lines = Client().get("/api/chat/helplines?country=gb").json()
    assert lines["country"] == "GB"
    assert "Samaritans" in [line["name"] for line in lines["resources"]]
    site = make_site(helplines=[{"name": "Our nurse", "phone": "1"}])
    assert [line["name"] for line in Client().get(f"/api/chat/helplines?site={site.slug}").json()["resources"]] == [
        "Our nurse"
    ]
    for strange in ("", "zz", "%00", "%F0%9F%98%80", "x" * 300):
        assert Client().get(f"/api/chat/helplines?country={strange}&site={strange}").status_code == 200
