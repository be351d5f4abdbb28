"""Errors: one shape, a trace, and never a word of what somebody wrote (neither in the answer's 500 nor in the log)."""

import json
import logging
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from tests.chat.api.conftest import Caller
from tests.chat.api.test_parsers import BAD_BODIES

pytestmark = pytest.mark.django_db


def shape_of(response: Any) -> set[str]:
    return set(response.json())


@pytest.mark.parametrize("name", BAD_BODIES)
def test_bad_body_is_a_400_with_one_shape_and_changes_nothing(visitor: Caller, name: str) -> None:
    """On SQLite and PostgreSQL alike: no database is asked."""
    path = f"/api/chat/conversations/{visitor.conversation.pk}/rating"  # type: ignore[union-attr]
    client = Client(headers={"Authorization": f"Bearer {visitor.token}"})
    response = client.post(path, data=BAD_BODIES[name], content_type="application/json")
    assert response.status_code == 400, response.content
    assert shape_of(response) == {"code", "detail", "trace"}
    assert visitor.conversation is not None
    assert visitor.conversation.ratings.count() == 0


def test_error_names_the_field(visitor: Caller) -> None:
    response = visitor.call("POST", f"/api/chat/conversations/{visitor.conversation.pk}/rating", {"stars": "5"})  # type: ignore[union-attr]
    assert response.status_code == 400
    assert response.json()["code"] == "invalid"
    assert response.json()["detail"].startswith("stars:")


@pytest.mark.parametrize(
    ("error", "status", "code"), [(RuntimeError, 500, "internal"), (OperationalError, 503, "unavailable")]
)
def test_unexpected_error_is_an_answer_without_a_traceback_and_a_log_line_without_words(
    visitor: Caller,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: type[Exception],
    status: int,
    code: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error("SECRET WORDS of a visitor")

    monkeypatch.setattr("chat.api.visitor.rate_conversation", fail)
    with caplog.at_level(logging.DEBUG):
        response = visitor.call("POST", f"/api/chat/conversations/{visitor.conversation.pk}/rating", {"stars": 5})  # type: ignore[union-attr]
    assert response.status_code == status
    assert response.json()["code"] == code
    assert "SECRET" not in response.content.decode()
    assert "SECRET" not in caplog.text
    if status == 500:
        assert response.json()["trace"] in caplog.text


def test_unknown_path_is_a_json_404() -> None:
    response = Client().get("/api/chat/nothing/here")
    assert response.status_code == 404
    assert shape_of(response) == {"code", "detail", "trace"}


def test_wrong_method_and_wrong_media_type_have_the_same_shape(visitor: Caller) -> None:
    path = "/api/chat/consent"
    assert shape_of(visitor.call("GET", path)) == {"code", "detail", "trace"}
    client = Client(headers={"Authorization": f"Bearer {visitor.token}"})
    response = client.post(path, data="a=1", content_type="application/x-www-form-urlencoded")
    assert response.status_code == 415
    assert shape_of(response) == {"code", "detail", "trace"}


def test_limit_is_a_429_that_says_when_to_come_back(visitor: Caller, settings: Any) -> None:
    settings.RAPPORT_MESSAGES_PER_MINUTE = 2
    path = f"/api/chat/conversations/{visitor.conversation.pk}/rating"  # type: ignore[union-attr]
    answers = [visitor.call("POST", path, {"stars": 5}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert 1 <= int(answers[2]["Retry-After"]) <= 61
    assert json.loads(answers[2].content)["code"] == "rate"
