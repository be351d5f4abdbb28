"""The served OpenAPI schema is valid, and every operation keeps to it under hundreds of generated requests."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.test import Client
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from chat.models import Alert
from chat.services.visitors import start_conversation
from tests.factories import make_message, make_reply, make_site, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.redis]
EXAMPLES = 25
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
)


class Insiders:
    """Ids and credentials that exist, so that requests come past the door."""

    def __init__(self) -> None:
        self.site = make_site(slug="schema", origins=["https://host.example"])
        self.renew()
        user = make_user("lead")
        client = Client()
        client.force_login(user)
        client.get("/staff/")
        self.cookies = {"sessionid": client.cookies["sessionid"].value, "csrftoken": client.cookies["csrftoken"].value}

    def renew(self) -> None:
        started = start_conversation(self.site)
        said = make_message(started.conversation)
        reply = make_reply(said)
        alert = Alert.objects.create(kind="crisis", conversation=started.conversation, message=said)
        self.token = started.token
        self.ids = {"conversation_id": started.conversation.pk, "message_id": reply.pk, "alert_id": alert.pk}


@pytest.fixture
def insiders(db: None, clean_redis: None, settings: Any) -> Iterator[Insiders]:
    for name in (
        "RAPPORT_MESSAGES_PER_MINUTE",
        "RAPPORT_ADDRESS_MESSAGES_PER_MINUTE",
        "RAPPORT_SITE_MESSAGES_PER_MINUTE",
    ):
        setattr(settings, name, 100_000)
    insiders = Insiders()
    for signal in (request_started, request_finished):  # as Django's own test client does: keep the test's connection
        signal.disconnect(close_old_connections)
    yield insiders
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


# As served. Requests go into the application without a server, inside the test's own transaction.
schema = schemathesis.openapi.from_wsgi("/api/schema?format=json", get_wsgi_application())


@schema.parametrize()  # type: ignore[untyped-decorator]
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
def test_operation_keeps_to_its_schema(case: schemathesis.Case, insiders: Insiders) -> None:
    """As an insider with real ids: whatever the body and the query hold, the answer is one that the schema names."""
    if case.operation.path.endswith("/me"):
        insiders.renew()  # the one operation that ends its caller
    for name, value in insiders.ids.items():
        if name in case.path_parameters:
            case.path_parameters[name] = str(value)
    if (
        isinstance(case.body, dict)
        and case.operation.path.endswith("/start")
        and isinstance(case.body.get("site"), str)
    ):
        case.body["site"] = "schema"
    headers = {"X-CSRFToken": insiders.cookies["csrftoken"]}
    cookies = dict(insiders.cookies)
    if "/api/chat/" in case.operation.path:
        headers, cookies = {"Authorization": f"Bearer {insiders.token}"}, {}
    response = case.call(headers=headers, cookies=cookies)
    case.validate_response(response, checks=list(CHECKS))


def test_schema_is_valid_and_complete() -> None:
    raw = schema.raw_schema
    assert raw["openapi"].startswith("3.")
    operations = [(path, method) for path, item in raw["paths"].items() for method in item if method != "parameters"]
    assert len(operations) >= 14
    for path, method in operations:
        operation = raw["paths"][path][method]
        assert operation["operationId"], (path, method)
        assert operation.get("description"), (path, method)
        if path not in {"/api/chat/start", "/api/chat/helplines"}:
            assert operation["security"], (path, method)


def test_generation_warns_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    from django.core.management import call_command

    call_command("spectacular", "--validate", "--fail-on-warn", "--file", "/dev/null")
    assert capsys.readouterr().err == ""
