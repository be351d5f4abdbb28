"""The whole product on a scratch folder, for flow tests and benchmarks: the table of `make run`, logs in a file.

`with start_product(folder, ...) as product:` migrates, makes accounts, starts real processes below a guard and waits
until every web process is ready. Start it from the main thread: the guard stops when the thread that made it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from circus.client import CircusClient

from deploy.local.launch import expected_installation, write_secret_key
from deploy.local.place import ROOT, Place, open_run_folders, read_place
from deploy.local.processes import free_port
from deploy.local.ready import look

# What a test run sets for itself must not leak into the product that it starts.
NOT_INHERITED = {
    *("DJANGO_SETTINGS_MODULE", "DATABASE_URL", "REDIS_URL", "RAPPORT_ENCODER_URL", "RAPPORT_DATA"),
    *("RAPPORT_SECRET_KEY", "RAPPORT_ORIGINS", "RAPPORT_ALLOWED_HOSTS"),
}
STOP_TIMEOUT_S = 60.0


class ProductFailed(Exception):
    """The product did not get ready; the text holds what was missing and the log's last lines."""

    def __init__(self, missing: str, *, log: Path) -> None:
        last = "\n".join(log.read_text(errors="replace").splitlines()[-60:]) if log.exists() else "(no log)"
        super().__init__(f"The product did not get ready: {missing}\n{last}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A running product: its addresses (one per web process), its accounts as printed, and its processes by name."""

    place: Place
    addresses: tuple[str, ...]
    accounts: str
    environ: Mapping[str, str]
    log: Path
    guard: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        """The first web process."""
        return self.addresses[0]

    def pids(self, name: str) -> list[int]:
        """The processes of one row of the table (`web`, `web-2`, `worker`, `engine`, `encoder`, `redis`) or engine."""
        answer = self.ask("list", name=name)
        return [int(str(pid)) for pid in answer.get("pids", [])]

    def names(self) -> list[str]:
        """All rows, and the model servers that the keeper has added."""
        return [str(name) for name in self.ask("list").get("watchers", [])]

    def kill(self, name: str, *, signal_number: int = signal.SIGKILL) -> list[int]:
        """Sends a signal to a row's processes, as an accident would; the supervision starts them again."""
        pids = self.pids(name)
        for pid in pids:
            os.kill(pid, signal_number)
        return pids

    def log_text(self) -> str:
        """The merged log so far."""
        return self.log.read_text(errors="replace")

    def manage(self, *arguments: str) -> str:
        """Runs `manage.py` with the product's environment and returns what it printed."""
        return run_manage(*arguments, environ=self.environ)

    def wait_until_ready(self, *, timeout_s: float) -> None:
        """Returns once every web process says that it is ready; raises ProductFailed."""
        deadline = time.monotonic() + timeout_s
        for address in self.addresses:
            while (missing := look(address)) is not None:
                if time.monotonic() > deadline or self.guard.poll() is not None:
                    raise ProductFailed(missing, log=self.log)
                time.sleep(0.5)

    def stop(self) -> None:
        """Stops it as Ctrl-C would; a stop that hangs is killed."""
        self.guard.terminate()
        try:
            self.guard.wait(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.guard.terminate()  # asked twice, the guard kills the arbiter and then all that is left
            self.guard.wait(timeout=STOP_TIMEOUT_S)

    def ask(self, command: str, **properties: object) -> dict[str, list[object]]:
        """A command to the arbiter (circus): `stop` and `start` with `name`, `list`, …."""
        client = CircusClient(endpoint=self.place.circus_endpoint, timeout=5.0)
        try:
            answer: dict[str, list[object]] = client.send_message(command, **properties)
            return answer
        finally:
            client.stop()


@contextlib.contextmanager
def start_product(
    data: Path, *, env: Mapping[str, str] | None = None, web_processes: int = 1, timeout_s: float = 180.0
) -> Iterator[Product]:
    """Runs the product on `data` with free ports for the length of the block; `env` adds to the environment.

    The set-up must be complete (`make test` and `make bench-safety` see to it). Raises ProductFailed.
    """
    environ = product_environ(data, env=env or {})
    place = read_place(environ)
    open_run_folders(place)
    write_secret_key(place.data, environ=environ)
    run_manage("migrate", "--no-input", environ=environ)
    accounts = run_manage("bootstrap", environ=environ)
    log = place.data / "product.log"
    (place.run / "product.json").unlink(missing_ok=True)
    guard = _start_guard(environ, log=log, web_processes=web_processes)
    try:
        addresses = _wait_for_addresses(place, guard=guard, log=log)
        product = Product(place=place, addresses=addresses, accounts=accounts, environ=environ, log=log, guard=guard)
    except BaseException:
        guard.terminate()
        guard.wait(timeout=STOP_TIMEOUT_S)
        raise
    try:
        product.wait_until_ready(timeout_s=timeout_s)
        yield product
    finally:
        product.stop()


def product_environ(data: Path, *, env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a product on a scratch folder: ours less what a test run set for itself, then `env`."""
    inherited = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    installation = expected_installation(read_place(os.environ)).environ()
    port = str(free_port())
    ours = {"RAPPORT_DATA": str(data), "RAPPORT_HOST": "127.0.0.1", "RAPPORT_PORT": port}
    return {**installation, **inherited, **ours, "DJANGO_SETTINGS_MODULE": "deploy.settings", **env}


def run_manage(*arguments: str, environ: Mapping[str, str]) -> str:
    """Runs one `manage.py` command with this interpreter; raises CalledProcessError, its errors shown."""
    done = subprocess.run(
        (sys.executable, "manage.py", *arguments),
        cwd=ROOT,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def _start_guard(environ: Mapping[str, str], *, log: Path, web_processes: int) -> subprocess.Popen[bytes]:
    supervise = (sys.executable, "-m", "deploy.local.supervise", "--web-processes", str(web_processes))
    with log.open("ab") as output:
        return subprocess.Popen(
            (sys.executable, "-m", "deploy.local.guard", *supervise),
            cwd=ROOT,
            env={**environ, "RAPPORT_PARENT_PID": str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _wait_for_addresses(place: Place, *, guard: subprocess.Popen[bytes], log: Path) -> tuple[str, ...]:
    path = place.run / "product.json"
    deadline = time.monotonic() + 30.0
    while not path.exists():
        if guard.poll() is not None or time.monotonic() > deadline:
            raise ProductFailed("the supervision did not start", log=log)
        time.sleep(0.05)
    return tuple(str(address) for address in json.loads(path.read_text())["addresses"])
