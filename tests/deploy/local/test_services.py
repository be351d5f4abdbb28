"""The private servers are real: they answer, they restart with their data, they go away."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import redis

from deploy.local import services
from deploy.local.guard import descendants
from deploy.local.place import ROOT


@pytest.fixture(autouse=True)
def no_named_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_REDIS_URL", raising=False)
    monkeypatch.delenv("TEST_DATABASE_URL", raising=False)


def test_private_redis_answers_with_its_password_alone_and_leaves_nothing() -> None:
    before = set(descendants())
    with services.private_redis() as url:
        client = redis.Redis.from_url(url)
        assert client.set("a", "1")
        assert client.get("a") == b"1"
        client.close()
        stranger = redis.Redis.from_url(url.replace(url[url.index("//") : url.index("@") + 1], "//"))
        with pytest.raises(redis.AuthenticationError):
            stranger.get("a")
        stranger.close()
        assert set(descendants()) - before
    assert set(descendants()) <= before


def test_private_postgres_keeps_its_data_over_a_restart_and_leaves_nothing() -> None:
    before = set(descendants())
    server = services.PrivatePostgres()
    try:
        server.start()
        with psycopg.connect(server.url, autocommit=True) as connection:
            version = connection.execute("show server_version").fetchone()
            connection.execute("create table kept (word text)")
            connection.execute("insert into kept values ('über')")
        assert version is not None
        assert version[0].startswith("18")
        server.stop()
        assert not server.does_answer()
        server.start()
        with psycopg.connect(server.url) as connection:
            assert connection.execute("select word from kept").fetchall() == [("über",)]
    finally:
        server.remove()
    assert not server.folder.exists()
    assert set(descendants()) <= before


def test_named_servers_are_used_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_REDIS_URL", "redis://elsewhere/0")
    monkeypatch.setenv("TEST_DATABASE_URL", "postgresql://elsewhere/x")
    with services.private_redis() as redis_url, services.private_postgres() as database_url:
        assert (redis_url, database_url) == ("redis://elsewhere/0", "postgresql://elsewhere/x")


def test_a_server_that_cannot_start_shows_its_last_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    server = services.PrivateRedis()
    monkeypatch.setattr(server, "command", lambda: ("/bin/sh", "-c", "echo no memory; exit 1"))
    try:
        with pytest.raises(services.ServiceFailed, match="no memory"):
            server.start()
    finally:
        server.remove()


def test_a_command_sees_the_servers_it_asked_for(tmp_path: Path) -> None:
    code = "import os; print(sorted(n for n in os.environ if n.startswith('TEST_')))"
    command = (sys.executable, "-m", "deploy.local.services", "redis", "--", sys.executable, "-c", code)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['TEST_REDIS_URL']"
