"""The hop to the database: one thread, a second try where the connection was lost, and what waits for the commit."""

import asyncio
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, connections, transaction
from pytest_django import DjangoDbBlocker

from chat.services import database
from chat.services.database import after_commit, run_db
from deploy.settings import database_settings


class Verb:
    """Fails a number of times, then answers."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.calls = 0
        self._failures = failures
        self._error = error or OperationalError("server closed the connection unexpectedly")

    def __call__(self, *args: object, **options: object) -> tuple[object, ...]:
        self.calls += 1
        if self.calls <= self._failures:
            raise self._error
        return (*args, *options.values())


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "RETRY_AFTER_S", (0.01, 0.01, 0.01))


@pytest.mark.django_db
async def test_verb_is_called_with_its_arguments_and_answers() -> None:
    verb = Verb(0)
    assert await run_db(verb, 1, two=2) == (1, 2)
    assert verb.calls == 1


@pytest.mark.django_db
@pytest.mark.parametrize("error", [OperationalError("gone"), InterfaceError("connection already closed")])
async def test_lost_connection_is_tried_again_until_the_database_is_back(quick: None, error: Exception) -> None:
    verb = Verb(3, error)
    assert await run_db(verb, "answer") == ("answer",)
    assert verb.calls == 4


@pytest.mark.django_db
async def test_database_that_stays_away_is_an_error_in_the_end(quick: None) -> None:
    verb = Verb(99)
    with pytest.raises(OperationalError):
        await run_db(verb)
    assert verb.calls == 4


@pytest.mark.django_db
async def test_any_other_error_is_raised_at_once() -> None:
    verb = Verb(1, ValueError("not the database"))
    with pytest.raises(ValueError, match="not the database"):
        await run_db(verb)
    assert verb.calls == 1


def test_patience_covers_a_restart_of_the_database() -> None:
    assert 5 <= sum(database.RETRY_AFTER_S) <= 10
    assert database.RETRY_AFTER_S[0] <= 0.1


@pytest.mark.django_db
async def test_waiting_for_the_database_holds_nobody_else_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "RETRY_AFTER_S", (0.5,))
    waiting = asyncio.create_task(run_db(Verb(1), "late"))
    await asyncio.sleep(0.05)
    started_s = time.monotonic()
    assert await run_db(Verb(0), "quick") == ("quick",)
    assert time.monotonic() - started_s < 0.3
    assert not waiting.done()
    assert await waiting == ("late",)


@pytest.mark.django_db
async def test_all_work_of_a_process_shares_one_thread_and_so_one_connection() -> None:
    """B5: a hundred sockets are one connection."""
    threads = set(await asyncio.gather(*(run_db(threading.get_ident) for _ in range(100))))
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


@pytest.mark.django_db
async def test_loop_stays_free_while_a_verb_works() -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    heart = asyncio.create_task(beat())
    await run_db(time.sleep, 0.3)
    heart.cancel()
    assert beats > 5


# --- with the real database -----------------------------------------------------------------------------------------


def ask(alias: str = "default") -> int:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT 1")
        return int(cursor.fetchone()[0])


@pytest.fixture
def pooled(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The test database as the product connects to PostgreSQL: with a pool whose connections live on."""
    with django_db_blocker.unblock():
        yield from _pooled()


def _pooled() -> Iterator[str]:
    product = database_settings("postgresql://host/name")
    connections.databases["pooled"] = {
        **connection.settings_dict,
        "CONN_HEALTH_CHECKS": product["CONN_HEALTH_CHECKS"],
        "OPTIONS": {**product["OPTIONS"], "application_name": "pooled"},
    }
    yield "pooled"
    pool = getattr(connections["pooled"], "close_pool", None)
    if pool is not None:
        pool()
    del connections["pooled"]
    del connections.databases["pooled"]


def cut_pooled_connections() -> int:
    """What a restart of PostgreSQL looks like to them; how many there were."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'pooled'"
            )
            return int(cursor.fetchone()[0])
    finally:
        connection.close()


if connection.vendor == "postgresql":  # B5; the run on PostgreSQL has these

    async def test_connection_that_was_cut_between_two_calls_is_replaced(pooled: str) -> None:
        assert await run_db(ask, pooled) == 1
        assert await asyncio.to_thread(cut_pooled_connections) >= 1
        assert await run_db(ask, pooled) == 1

    async def test_connection_that_is_cut_in_the_middle_of_a_verb_is_tried_again(pooled: str) -> None:
        calls = 0

        def cut_once() -> int:
            nonlocal calls
            calls += 1
            with transaction.atomic(using=pooled):
                if calls == 1:
                    with connections[pooled].cursor() as cursor:
                        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
                return ask(pooled)

        assert await run_db(cut_once) == 1
        assert calls == 2


def test_sqlite_waits_its_turn_as_the_settings_say() -> None:
    options = database_settings("sqlite:////tmp/x.sqlite3")["OPTIONS"]
    assert options["transaction_mode"] == "IMMEDIATE"
    assert options["timeout"] == 20
    assert "journal_mode=WAL" in options["init_command"]


@pytest.mark.django_db(transaction=True)
async def test_sqlite_is_opened_once_and_not_for_every_hop() -> None:
    def opened() -> int:
        with connection.cursor():
            return id(connection.connection)

    first, second = await run_db(opened), await run_db(opened)
    if connection.vendor == "sqlite":
        assert first == second


@pytest.mark.django_db(transaction=True)
def test_sqlite_of_the_tests_is_set_up_as_the_products() -> None:
    if connection.vendor != "sqlite":
        assert settings.DATABASES["default"]["CONN_HEALTH_CHECKS"]
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        assert cursor.fetchone()[0] == "wal"


# --- after the commit -----------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_work_waits_for_the_commit_and_a_rollback_forgets_it() -> None:
    done: list[str] = []
    with transaction.atomic():
        after_commit(done.append, "kept")
        assert done == []
    assert done == ["kept"]

    def roll_back() -> None:
        with transaction.atomic():
            after_commit(done.append, "forgotten")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        roll_back()
    assert done == ["kept"]
    after_commit(done.append, "at once")
    assert done == ["kept", "at once"]


@pytest.mark.django_db(transaction=True)
def test_work_that_fails_takes_neither_the_commit_nor_the_rest_with_it(caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []

    def broken(words: str) -> None:
        raise ValueError(words)

    with transaction.atomic():
        after_commit(partial(broken, "what somebody wrote"))
        after_commit(done.append, "the rest")
    assert done == ["the rest"]
    assert "ValueError" in caplog.text
    assert "somebody" not in caplog.text
