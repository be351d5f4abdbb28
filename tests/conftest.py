"""What every test may use: the database marker, a clean Redis, and a database that can be emptied again."""

import os
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.db import connection
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker

from chat.models import audit
from chat.store import redis_sync
from tests.flows.product import product

# A busy machine is no failure; and CI asks the same examples each time, so that a red run can be repeated.
hypothesis.settings.register_profile("here", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "here")

__all__ = ["product"]  # started once for the flow and the browser tests
DATABASE_FIXTURES = {"db", "transactional_db", "django_db_setup"}
END_OTHER_CONNECTIONS = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever touches the database runs on both: mark it, so that the PostgreSQL run finds it.

    What needs the whole product comes last: its processes would slow everything else down. Such a test is marked
    `database` by hand, where another database can make a difference.
    """
    for item in items:
        fixtures = _fixtures_of(item)
        if fixtures & DATABASE_FIXTURES or item.get_closest_marker("django_db"):
            item.add_marker(pytest.mark.database)
    items.sort(key=lambda item: "product" in _fixtures_of(item))


def _fixtures_of(item: pytest.Item) -> set[str]:
    return set(getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The test database; at the end whatever thread still holds a connection loses it, else PostgreSQL keeps it."""
    yield
    with django_db_blocker.unblock():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(END_OTHER_CONNECTIONS)


@pytest.fixture(autouse=True, scope="session")
def _audit_entries_can_be_emptied() -> None:
    """Between transactional tests all tables are emptied, which the audit triggers rightly refuse."""
    original = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]

    def teardown(case: Any) -> None:
        with connection.schema_editor() as editor:
            audit.drop_triggers(None, editor)
        original(case)
        with connection.schema_editor() as editor:
            audit.create_triggers(None, editor)

    TransactionTestCase._fixture_teardown = teardown  # type: ignore[attr-defined]


@pytest.fixture
def clean_redis() -> Iterator[None]:
    """An empty Redis before the test."""
    redis_sync().flushdb()
    yield
    redis_sync().flushdb()


@pytest.fixture
def is_sqlite() -> bool:
    return "sqlite" in str(settings.DATABASES["default"]["ENGINE"])
