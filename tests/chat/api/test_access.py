"""A13: every endpoint x {no token, another's, expired, a role without the right} is refused and changes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from chat.models import Alert, Message
from chat.services.visitors import token_for
from tests.chat.api.conftest import Caller, arrive, staff_client
from tests.factories import make_message, make_reply, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.redis]


@pytest.fixture(autouse=True)
def _empty_limits(clean_redis: None) -> None:
    """Every test begins with nothing counted."""


@dataclass
class World:
    """A visitor with a conversation, a reply and an alert, and another visitor."""

    owner: Caller
    stranger: Caller
    reply: Message
    alert: Alert

    def path(self, template: str) -> str:
        assert self.owner.conversation is not None
        return template.format(c=self.owner.conversation.pk, m=self.reply.pk, a=self.alert.pk)


@pytest.fixture
def world(db: None) -> World:
    owner, stranger = arrive(), arrive()
    assert owner.conversation is not None
    said = make_message(owner.conversation)
    alert = Alert.objects.create(kind="crisis", conversation=owner.conversation, message=said)
    return World(owner, stranger, make_reply(said), alert)


VISITOR_CALLS = [
    ("GET", "/api/chat/conversations/{c}/messages/", None),
    ("POST", "/api/chat/conversations/{c}/rating", {"stars": 1}),
    ("POST", "/api/chat/conversations/{c}/close", {}),
    ("GET", "/api/chat/conversations/{c}/download", None),
    ("POST", "/api/chat/messages/{m}/feedback", {"value": -1}),
    ("POST", "/api/chat/consent", {"purpose": "improvement", "granted": True}),
    ("DELETE", "/api/chat/me", None),
]
OWN_CALLS = [call for call in VISITOR_CALLS if "{" in call[1]]
STAFF_CALLS = [
    ("GET", "/api/staff/conversations/", None),
    ("GET", "/api/staff/conversations/{c}/turns/", None),
    ("GET", "/api/staff/conversations/{c}/turns/?reveal=1", None),
    ("POST", "/api/staff/conversations/{c}/messages/", {"client_id": "c9", "text": "Hello."}),
    ("GET", "/api/staff/alerts/", None),
    ("POST", "/api/staff/alerts/{a}/acknowledge/", {}),
]
STAFF_PAGES = ["/staff/", "/staff/conversations/{c}/"]
OPEN_TO_ALL = {"schema", "start", "helplines"}


def rows() -> dict[str, list[Any]]:
    """Everything there is, so that "no state change" means none at all (log-ins aside)."""
    models = [model for model in apps.get_models() if model._meta.app_label in {"chat", "training"}]
    return {
        model._meta.label: [
            {key: value for key, value in row.items() if key != "last_login"}
            for row in model._default_manager.order_by("pk").values()
        ]
        for model in models
    }


def expired(caller: Caller) -> Caller:
    assert caller.conversation is not None
    assert caller.visitor is not None
    past = timezone.now() - timedelta(seconds=5)
    return Caller(token=token_for(caller.conversation, visitor=caller.visitor, expires_at=past))


def spoiled(caller: Caller) -> Caller:
    return Caller(token=caller.token[:-1] + ("A" if caller.token[-1] != "A" else "B"))


@pytest.mark.parametrize(("method", "template", "content"), VISITOR_CALLS)
def test_without_a_valid_token_every_call_is_401(world: World, method: str, template: str, content: object) -> None:
    before = rows()
    for who, code in [
        (Caller(), "token_missing"),
        (expired(world.owner), "token_expired"),
        (spoiled(world.owner), "token_invalid"),
        (Caller(token="x y"), "token_missing"),
    ]:
        response = who.call(method, world.path(template), content)
        assert (response.status_code, response.json()["code"]) == (401, code)
        assert response["WWW-Authenticate"].startswith("Bearer")
    assert rows() == before


@pytest.mark.parametrize(("method", "template", "content"), OWN_CALLS)
def test_somebody_elses_id_is_404(world: World, method: str, template: str, content: object) -> None:
    before = rows()
    response = world.stranger.call(method, world.path(template), content)
    assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert rows() == before


@pytest.mark.parametrize(("method", "template", "content"), VISITOR_CALLS)
def test_a_staff_log_in_is_no_visitor_token(world: World, method: str, template: str, content: object) -> None:
    client = staff_client("admin")
    before = rows()
    options = {"data": content, "content_type": "application/json"} if content is not None else {}
    assert getattr(client, method.lower())(world.path(template), **options).status_code == 401
    assert rows() == before


@pytest.mark.parametrize(("method", "template", "content"), STAFF_CALLS)
def test_staff_calls_are_closed_to_everybody_else(world: World, method: str, template: str, content: object) -> None:
    clients = {role: staff_client(role) for role in ("", "trainer", "promoter")}
    inactive = staff_client("reviewer")
    type(make_user()).objects.filter(pk=inactive.session["_auth_user_id"]).update(is_active=False)
    before = rows()
    options = {"data": content, "content_type": "application/json"} if content is not None else {}
    path = world.path(template)
    assert world.owner.call(method, path, content).status_code == 401
    assert getattr(Client(), method.lower())(path, **options).status_code == 401
    assert getattr(inactive, method.lower())(path, **options).status_code == 401
    for client in clients.values():
        assert getattr(client, method.lower())(path, **options).status_code == 403
    assert rows() == before


@pytest.mark.parametrize("template", STAFF_PAGES)
def test_staff_pages_are_closed_to_everybody_else(world: World, template: str) -> None:
    path = world.path(template)
    anonymous = Client().get(path)
    assert (anonymous.status_code, anonymous["Location"].partition("?")[0]) == (302, "/staff/login/")
    for role in ("", "trainer", "promoter"):
        assert staff_client(role).get(path).status_code == 403
    for role in ("reviewer", "lead", "admin"):
        assert staff_client(role).get(path).status_code == 200


def test_admin_is_closed_to_roles_below_admin() -> None:
    for role in ("reviewer", "lead", "trainer", "promoter"):
        assert staff_client(role).get("/admin/chat/message/").status_code == 302


def test_this_matrix_knows_every_route_of_the_rest_door() -> None:
    """A new endpoint must join the matrix (or the short list of open ones), or this fails."""
    covered = {name_of(template) for _, template, _ in [*VISITOR_CALLS, *STAFF_CALLS]}
    routes = {route for route in api_routes(get_resolver()) if route.name not in OPEN_TO_ALL and route.name}
    assert {route.name for route in routes} <= covered | {"send"}


def api_routes(resolver: Any, *, below_api: bool = False) -> Iterator[URLPattern]:
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            if below_api or str(entry.pattern) == "api/":
                yield from api_routes(entry, below_api=True)
        elif below_api:
            yield entry


def name_of(template: str) -> str | None:
    from django.urls import resolve

    filled = template.format(c="5f6b2f0e-7d0e-4b6e-9a55-0d2f6f0a1b2c", m="5f6b2f0e-7d0e-4b6e-9a55-0d2f6f0a1b2c", a=1)
    return resolve(filled.partition("?")[0]).url_name
