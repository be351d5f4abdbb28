"""A REST client of a visitor and of staff, and an empty Redis so that limits begin at zero."""

from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from chat.models import Conversation, Visitor, WidgetSite
from chat.services.visitors import start_conversation
from tests.factories import make_site, make_user


@dataclass
class Caller:
    """A visitor with a token, or somebody without one."""

    token: str = ""
    conversation: Conversation | None = None
    visitor: Visitor | None = None

    def call(self, method: str, path: str, content: object = None, **headers: str) -> Any:
        options: dict[str, Any] = {"headers": {"Authorization": f"Bearer {self.token}"} if self.token else {}}
        options["headers"].update(headers)
        if content is not None or method in {"POST", "PUT"}:
            options |= {"data": content if content is not None else {}, "content_type": "application/json"}
        return getattr(Client(), method.lower())(path, **options)


def arrive(site: WidgetSite | None = None) -> Caller:
    started = start_conversation(site or make_site())
    return Caller(token=started.token, conversation=started.conversation, visitor=started.visitor)


@pytest.fixture
def visitor(db: None, clean_redis: None) -> Caller:
    return arrive()


def staff_client(role: str = "reviewer", **options: Any) -> Client:
    client = Client(**options)
    is_admin = role == "admin"
    client.force_login(make_user(role, is_staff=is_admin, is_superuser=is_admin))
    return client
