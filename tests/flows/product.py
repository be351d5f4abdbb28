"""The running product of a test run, started once: two web processes, worker, engine, encoder, Redis.

`tests/conftest.py` imports the fixture; flow and browser tests ask for `product`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import redis
from pytest_django.plugin import DjangoDbBlocker

from chat.models import WidgetSite
from chat.store import ENDPOINTS_KEY
from deploy.local.guard import descendants
from deploy.local.product import Product, start_product
from rubric import Endpoint
from tests.flows.database import PostgresDatabase, Rows, product_database
from tests.flows.engine_watch import look_at

START_S = 200.0
SETTINGS = "tests.flows.product_settings"


@dataclass(frozen=True, slots=True)
class Answer:
    """What an HTTP call brought: the status and the JSON, or the text where it is none."""

    status: int
    body: Any


class RunningProduct:
    """The product with its rows, its Redis and its doors."""

    def __init__(self, product: Product, rows: Rows, database: PostgresDatabase | None) -> None:
        self.itself = product
        self.rows = rows
        self.database = database

    @property
    def addresses(self) -> tuple[str, ...]:
        return self.itself.addresses

    @property
    def is_postgres(self) -> bool:
        return self.database is not None

    def password(self, account: str) -> str:
        """As it was printed once, at the first start."""
        found = re.search(rf"account\s+{account}\s+password (\S+)", self.itself.accounts)
        assert found, f"no account {account} was printed"
        return found[1]

    # --- processes ----------------------------------------------------------------------------------------------

    def kill(self, name: str) -> list[int]:
        return self.itself.kill(name)

    def model_server(self) -> str:
        """The name of the process that serves the live version."""
        return next(name for name in self.itself.names() if name.startswith("engine-"))

    def tree(self, name: str) -> list[int]:
        """A row's processes with everything below them, parents first."""
        pids = self.itself.pids(name)
        return [*pids, *(below for pid in pids for below in descendants(pid))]

    @contextlib.contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """A process that hangs: stopped for the length of the block with everything below it."""
        pids = self.tree(name)
        _signal(pids, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal(pids, signal.SIGCONT)

    @contextlib.contextmanager
    def thawed(self, name: str) -> Iterator[None]:
        """A frozen process that goes on for the length of the block."""
        _signal(self.tree(name), signal.SIGCONT)
        try:
            yield
        finally:
            _signal(self.tree(name), signal.SIGSTOP)

    def until_well(self, *, timeout_s: float = 90.0) -> None:
        """Everything that the product needs answers at every web process."""
        self.itself.wait_until_ready(timeout_s=timeout_s)

    def until_engine_rests(self, *, timeout_s: float = 60.0) -> None:
        """No slot of the model server works."""
        wait_for(lambda: not look_at(self.endpoint()).busy_slots, timeout_s=timeout_s, what="the engine is idle")

    # --- doors --------------------------------------------------------------------------------------------------

    def call(self, method: str, path: str, *, token: str = "", body: object = None, web: int = 0) -> Answer:
        """One REST call as our own page makes it."""
        headers = {"Origin": self.addresses[web]}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.addresses[web] + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return Answer(response.status, _content(response.read()))
        except urllib.error.HTTPError as error:
            return Answer(error.code, _content(error.read()))

    def parts(self, *, web: int = 0) -> Mapping[str, str]:
        """What /readyz says is wrong, by part; {} when all is well."""
        answer = self.call("GET", "/readyz", web=web)
        wrong = {part["name"]: part["why"] for part in answer.body["parts"] if not part["ok"]}
        assert (answer.status == 200) == (not wrong)
        return wrong

    @contextlib.contextmanager
    def hearing_what_is_wrong(self) -> Iterator[set[str]]:
        """Every part that /readyz called wrong at some time during the block, however briefly."""
        heard: set[str] = set()
        over = threading.Event()

        def listen() -> None:
            while not over.wait(0.05):
                heard.update(self.parts())

        listener = threading.Thread(target=listen)
        listener.start()
        try:
            yield heard
        finally:
            over.set()
            listener.join()

    def metric(self, name: str, *, web: int = 0) -> float:
        """A counter as /metrics serves it; `name` with its labels as Prometheus writes them."""
        text = str(self.call("GET", "/metrics", web=web).body)
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def make_site(self, slug: str, *, system_prompt: str = "", origins: Sequence[str] = ()) -> str:
        """A site of its own, open to the product's own pages and to those of `origins`; returns its slug."""
        fields = {"name": slug.title(), "origins": [*self.addresses, *origins], "system_prompt": system_prompt}
        self.rows(lambda: WidgetSite.objects.update_or_create(slug=slug, defaults=fields))
        return slug

    # --- what lies below ----------------------------------------------------------------------------------------

    @cached_property
    def redis_url(self) -> str:
        """Of the Redis that the product started itself."""
        lines = (self.itself.place.run / "redis.conf").read_text().splitlines()
        said = dict(line.split(" ", 1) for line in lines if " " in line)
        return f"redis://:{said['requirepass']}@127.0.0.1:{said['port']}/0"

    @property
    def redis(self) -> redis.Redis:
        return redis.Redis.from_url(self.redis_url, decode_responses=True, socket_timeout=5)

    def endpoint(self) -> Endpoint:
        """Where the live version is served now."""
        with contextlib.closing(self.redis) as client:
            rows: Any = client.hgetall(ENDPOINTS_KEY)
        return Endpoint.from_json(next(iter(rows.values())))

    def until_served_anew(self, before: Endpoint, *, timeout_s: float = 60.0) -> None:
        """The live version has another server than `before` (each start has a key of its own) and all is ready.

        Waiting for /readyz to say that the engine is away would miss it on a machine that starts a server in a second.
        """

        def is_another() -> bool:
            with contextlib.closing(self.redis) as client:
                rows: Any = client.hvals(ENDPOINTS_KEY)
            keys = {Endpoint.from_json(row).api_key for row in rows}
            return bool(keys) and before.api_key not in keys and "engine" not in self.parts()

        wait_for(is_another, timeout_s=timeout_s, what="the version is served again")

    @property
    def model_folder(self) -> Path:
        return Path(self.itself.environ["RAPPORT_MODEL_FOLDER"])


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _content(raw: bytes) -> Any:
    text = raw.decode()
    return json.loads(text) if text[:1] in "{[" and text else text


def wait_for(is_true: Callable[[], object], *, timeout_s: float, what: str, every_s: float = 0.05) -> Any:
    """The first answer that is true; fails with `what` after the time."""
    deadline = time.monotonic() + timeout_s
    while not (answer := is_true()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(every_s)
    return answer


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker) -> Iterator[RunningProduct]:
    """The product with two web processes, for the rest of the run."""
    folder = tmp_path_factory.mktemp("product")
    with product_database() as database:
        environ = {"DJANGO_SETTINGS_MODULE": SETTINGS}
        if database is not None:
            environ["DATABASE_URL"] = database.url
        with start_product(folder, env=environ, web_processes=2, timeout_s=START_S) as running:
            url = database.url if database else f"sqlite:///{folder / 'db.sqlite3'}"
            rows = Rows(url, unblock=django_db_blocker.unblock)
            try:
                yield RunningProduct(running, rows, database)
            finally:
                rows.close()
