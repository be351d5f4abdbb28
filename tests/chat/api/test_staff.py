"""The staff's REST door, call by call."""

from typing import Any

import pytest
from django.test import Client

from chat.models import Alert, AuditEntry, Message
from chat.models.conversations import ConversationState, MessageKind
from tests.chat.api.conftest import staff_client
from tests.factories import make_conversation, make_message, make_reply, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.redis]


def post(client: Client, path: str, content: object) -> Any:
    return client.post(path, data=content, content_type="application/json")


def test_inbox_lists_the_most_recently_active_first_without_texts(django_assert_num_queries: Any) -> None:
    older, newer = make_conversation(), make_conversation()
    make_message(newer, "WORDS of a visitor")
    Alert.objects.create(kind="crisis", conversation=older)
    client = staff_client()
    with django_assert_num_queries(3):  # log-in (2), page
        response = client.get("/api/staff/conversations/")
    rows = response.json()["results"]
    assert [row["id"] for row in rows] == [str(newer.pk), str(older.pk)]
    assert [row["open_alerts"] for row in rows] == [0, 1]
    assert "WORDS" not in response.content.decode()


def test_inbox_pages_stay_apart_when_times_are_equal() -> None:
    conversations = [make_conversation() for _ in range(70)]
    first = conversations[0]
    type(first).objects.update(last_activity_at=first.last_activity_at)
    client, path, seen = staff_client(), "/api/staff/conversations/", []
    while path:
        page = client.get(path).json()
        seen += [row["id"] for row in page["results"]]
        path = page["next"]
    assert len(seen) == len(set(seen)) == 70


def test_turns_come_in_order_and_page_by_page() -> None:
    conversation = make_conversation()
    for number in range(45):
        make_reply(make_message(conversation, f"Message {number}."))
    client, path, texts = staff_client(), f"/api/staff/conversations/{conversation.pk}/turns/", []
    while path:
        response = client.get(path)
        assert response["Cache-Control"] == "no-store"
        page = response.json()
        assert len(page["results"]) <= 20
        texts += [turn["text"] for turn in page["results"]]
        path = page["next"]
    assert texts == [f"Message {number}." for number in range(45)]


def test_staff_messages_are_shown_before_the_visitor_wrote_anything_and_stand_at_the_first_turn_later() -> None:
    conversation, client = make_conversation(), staff_client()
    path = f"/api/staff/conversations/{conversation.pk}/turns/"
    assert client.get(path).json() == {"next": None, "previous": None, "results": [], "notes": []}
    make_message(conversation, "Write to anna@example.org.", kind=MessageKind.STAFF, author=make_user())
    page = client.get(path).json()
    assert (page["results"], [note["kind"] for note in page["notes"]]) == ([], ["staff"])
    assert "anna@" not in page["notes"][0]["text"]
    make_message(conversation, "Hello.")
    page = client.get(path).json()
    assert (page["notes"], [note["kind"] for note in page["results"][0]["notes"]]) == ([], ["staff"])


def test_reviewer_sees_redacted_text_and_may_not_reveal() -> None:
    conversation = make_conversation()
    make_message(conversation, "My name is Anna.")
    path = f"/api/staff/conversations/{conversation.pk}/turns/"
    client = staff_client("reviewer")
    assert client.get(path).json()["results"][0]["text"] == "My name is [name_1]."
    assert client.get(f"{path}?reveal=1").status_code == 403
    assert not AuditEntry.objects.filter(verb="conversation.reveal").exists()


@pytest.mark.parametrize("role", ["lead", "admin"])
def test_lead_and_admin_may_reveal_and_it_is_audited(role: str) -> None:
    conversation = make_conversation()
    make_message(conversation, "My name is Anna.")
    turn = staff_client(role).get(f"/api/staff/conversations/{conversation.pk}/turns/?reveal=1").json()["results"][0]
    assert (turn["text"], turn["redacted"]) == ("My name is Anna.", False)
    assert AuditEntry.objects.filter(verb="conversation.reveal", subject=f"conversation {conversation.pk}").count() == 1


def test_staff_message_is_stored_once_and_comes_back() -> None:
    conversation = make_conversation()
    client = Client()
    client.force_login(make_user(display_name="Robin"))
    path = f"/api/staff/conversations/{conversation.pk}/messages/"
    first = post(client, path, {"client_id": "c1", "text": "I am here."})
    again = post(client, path, {"client_id": "c1", "text": "I am here."})
    assert first.status_code == again.status_code == 200
    assert first.json()["id"] == again.json()["id"]
    assert (first.json()["kind"], first.json()["author"]) == ("staff", "Robin")
    assert Message.objects.count() == 1


def test_staff_message_is_refused_with_a_reason() -> None:
    client, conversation = staff_client(), make_conversation()
    make_message(conversation, client_id="taken")
    path = f"/api/staff/conversations/{conversation.pk}/messages/"
    assert post(client, path, {"client_id": "taken", "text": "Hm."}).json()["code"] == "client_id_taken"
    for bad in ({}, {"client_id": "c", "text": " "}, {"client_id": "", "text": "a"}, {"client_id": "c", "text": 5}):
        assert post(client, path, bad).status_code == 400
    assert post(client, path, {"client_id": "c", "text": "x" * 8_001}).status_code == 400
    closed = make_conversation(state=ConversationState.CLOSED)
    answer = post(client, f"/api/staff/conversations/{closed.pk}/messages/", {"client_id": "c", "text": "a"})
    assert (answer.status_code, answer.json()["code"]) == (409, "closed")
    assert Message.objects.count() == 1


def test_alerts_are_listed_and_acknowledged() -> None:
    conversation = make_conversation()
    alert = Alert.objects.create(kind="crisis", conversation=conversation, message=make_message(conversation))
    client = Client()
    client.force_login(make_user(display_name="Robin"))
    assert [row["id"] for row in client.get("/api/staff/alerts/?open=1").json()["results"]] == [alert.pk]
    answer = post(client, f"/api/staff/alerts/{alert.pk}/acknowledge/", {})
    assert (answer.status_code, answer.json()["acknowledged_by"]) == (200, "Robin")
    assert client.get("/api/staff/alerts/?open=1").json()["results"] == []
    assert len(client.get("/api/staff/alerts/").json()["results"]) == 1
    assert post(client, "/api/staff/alerts/999999/acknowledge/", {}).status_code == 404
    assert post(client, "/api/staff/alerts/99999999999999999999999/acknowledge/", {}).status_code == 404


def test_changes_need_the_csrf_token_of_the_page() -> None:
    conversation = make_conversation()
    client = staff_client(enforce_csrf_checks=True)
    path = f"/api/staff/conversations/{conversation.pk}/messages/"
    assert post(client, path, {"client_id": "c1", "text": "Forged."}).status_code == 403
    assert Message.objects.count() == 0
    client.get(f"/staff/conversations/{conversation.pk}/")
    token = client.cookies["csrftoken"].value
    content = {"client_id": "c1", "text": "Meant."}
    answer = client.post(path, data=content, content_type="application/json", headers={"X-CSRFToken": token})
    assert answer.status_code == 200
