"""B11: two writers wait for each other; "database is locked" is an answer that nobody gets."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection, transaction

from chat.models import Conversation
from deploy.settings import database_settings
from tests.factories import make_conversation

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 200


def run_two(work: Callable[[], None]) -> list[BaseException]:
    """Do the work in two threads at once; the errors that came of it."""
    errors: list[BaseException] = []

    def go() -> None:
        try:
            for _ in range(ROUNDS):
                work()
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=go) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    return errors


def test_two_threads_that_read_and_then_write_never_fail() -> None:
    pk = make_conversation().pk

    def read_and_write() -> None:
        with transaction.atomic():
            row = Conversation.objects.get(pk=pk)
            row.visitor_turns += 1
            row.save()

    assert run_two(read_and_write) == []


def test_two_threads_that_lock_the_row_lose_no_count() -> None:
    pk = make_conversation().pk

    def count() -> None:
        with transaction.atomic():
            row = Conversation.objects.select_for_update().get(pk=pk)
            row.take_seq()
            row.save()

    assert run_two(count) == []
    assert Conversation.objects.get(pk=pk).last_seq == 2 * ROUNDS


def test_reader_is_never_held_up_by_a_writer() -> None:
    pk = make_conversation().pk
    seen: list[int] = []

    def read() -> None:
        try:
            seen.append(Conversation.objects.get(pk=pk).visitor_turns)
        finally:
            connection.close()

    with transaction.atomic():
        Conversation.objects.filter(pk=pk).update(visitor_turns=7)
        reader = threading.Thread(target=read)
        reader.start()
        reader.join(timeout=5)
        assert seen == [0]


@pytest.mark.parametrize(("begin", "is_refused"), [("BEGIN", True), ("BEGIN IMMEDIATE", False)])
def test_what_the_setting_is_for(tmp_path: Path, begin: str, is_refused: bool) -> None:
    """SQLite itself: a read that turns into a write is refused at once, whatever the timeout, unless begun to write."""
    file = tmp_path / "db.sqlite3"
    one, other = (sqlite3.connect(file, timeout=20, isolation_level=None) for _ in range(2))
    one.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (0);")
    try:
        one.execute(begin)
        one.execute("SELECT n FROM t").fetchone()
        if not is_refused:  # the other one waits its turn, up to its timeout
            one.execute("UPDATE t SET n = 1")
            one.execute("COMMIT")
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE t SET n = n + 1")
        other.execute("COMMIT")
        if is_refused:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                one.execute("UPDATE t SET n = n + 1")
    finally:
        one.close()
        other.close()
    assert database_settings(f"sqlite:///{file}")["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
