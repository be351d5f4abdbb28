"""Where the product of a test run keeps its rows, and how a test reads them with the product's own models."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TypeVar
from urllib.parse import urlsplit, urlunsplit

from django.db import connections
from django.db.utils import load_backend

from deploy.settings import database_settings

Result = TypeVar("Result")


class Rows:
    """`rows(lambda: Message.objects.count())` asks the product's database, in a thread where it is the default one.

    The tests' own database stays what it is everywhere else; a thread of its own also works below a browser's loop.
    """

    def __init__(self, url: str, *, unblock: Callable[[], AbstractContextManager[None]]) -> None:
        self._url = url
        self._unblock = unblock
        self._thread = ThreadPoolExecutor(max_workers=1, initializer=self._connect)

    def __call__(self, read: Callable[[], Result]) -> Result:
        return self._thread.submit(self._read, read).result(timeout=60)

    def until(self, read: Callable[[], Result], *, timeout_s: float, what: str) -> Result:
        """The first answer that is true; fails with `what` after the time."""
        deadline = time.monotonic() + timeout_s
        while not (answer := self(read)):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {timeout_s:.0f} s: {what}")
            time.sleep(0.1)
        return answer

    def close(self) -> None:
        self._thread.submit(self._disconnect).result(timeout=60)
        self._thread.shutdown()

    def _connect(self) -> None:
        settings = connections.configure_settings({"default": database_settings(self._url)})["default"]
        settings["OPTIONS"].pop("pool", None)
        settings["CONN_MAX_AGE"] = None
        connections["default"] = load_backend(settings["ENGINE"]).DatabaseWrapper(settings, "default")

    def _disconnect(self) -> None:
        connections["default"].close()

    def _read(self, read: Callable[[], Result]) -> Result:
        with self._unblock():
            connections["default"].close_if_unusable_or_obsolete()
            return read()


class PostgresDatabase:
    """A fresh database on the server of TEST_DATABASE_URL; `away` takes it from its users as a restart does."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self.name = f"rapport_flow_{uuid.uuid4().hex[:12]}"

    @property
    def url(self) -> str:
        return urlunsplit(urlsplit(self._server_url)._replace(path=f"/{self.name}"))

    def create(self) -> None:
        self._say(f"CREATE DATABASE {self.name}")

    def drop(self) -> None:
        self._say(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)")

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Every connection is cut and none is taken for the length of the block."""
        self._say(f"ALTER DATABASE {self.name} ALLOW_CONNECTIONS false")
        self._say(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self.name}'")
        try:
            yield
        finally:
            self._say(f"ALTER DATABASE {self.name} ALLOW_CONNECTIONS true")

    def _say(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self._server_url, autocommit=True) as connection:
            connection.execute(statement)


@contextlib.contextmanager
def product_database() -> Iterator[PostgresDatabase | None]:
    """A database on the server that TEST_DATABASE_URL names; None: SQLite in the product's own folder."""
    server_url = os.environ.get("TEST_DATABASE_URL")
    if not server_url:
        yield None
        return
    database = PostgresDatabase(server_url)
    database.create()
    try:
        yield database
    finally:
        database.drop()
