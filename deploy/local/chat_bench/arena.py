"""The web process alone, as shipped, between a paced engine and an encoder: what a benchmark of it needs, in seconds.

The web process runs on one core and everything else on the other. The keeper is not there: the bench writes its
directory. Doubles come from `tests/bench` and run as processes; the product is pointed at them by its settings.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import redis

from deploy.engines.directory import EndpointDirectory
from deploy.local.chat_bench.questions import fresh_seats, name_of_live
from deploy.local.guard import follow_parent
from deploy.local.launch import write_secret_key
from deploy.local.place import ROOT, open_run_folders, read_place
from deploy.local.processes import free_port, web_command
from deploy.local.product import product_environ, run_manage
from deploy.local.services import PrivateRedis
from rubric import Dialect, Endpoint, EngineFeatures
from training.bench import machine
from training.bench.target import PacedAddress, Target
from training.bench.visitor import Seat

START_S = 60.0
DIRECTORY_S = 2.0
WEB = "tests.bench.stopwatch_web:application"
TWIN = "tests.bench.raw_twin:application"
SETTINGS = "deploy.local.chat_bench.settings"


class ArenaFailed(Exception):
    """A process did not get ready; the text holds its last lines."""

    def __init__(self, name: str, *, log: Path) -> None:
        last = log.read_text(errors="replace")[-3000:] if log.exists() else "(no log)"
        super().__init__(f"{name} did not answer within {START_S:.0f} s:\n{last}")


@dataclass(kw_only=True)
class Arena:
    """What runs, and where."""

    folder: Path
    environ: Mapping[str, str]
    redis: PrivateRedis
    webs: list[Target] = field(default_factory=list)
    twin: Target | None = None
    engine: PacedAddress = field(default_factory=lambda: PacedAddress(address=""))
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def web(self) -> Target:
        """The first web process."""
        return self.webs[0]

    def seats(self, count: int) -> list[Seat]:
        """Fresh conversations."""
        return fresh_seats(count, environ=self.environ)

    async def stop_redis(self) -> None:
        """As an outage: at once."""
        await asyncio.to_thread(self.redis.stop)

    async def start_redis(self) -> None:
        """On the same port, empty; returns once it answers."""
        await asyncio.to_thread(self.redis.start)

    async def use_up_limit(self, seats: Sequence[Seat]) -> None:
        """Count as many messages as a visitor may send in a minute."""
        client = redis.Redis.from_url(self.redis.url)
        now_ms = int(time.time() * 1000)
        for seat in seats:
            client.zadd(f"rapport:rate:visitor:{seat.visitor}", {f"bench:{number}": now_ms for number in range(20)})
        client.close()


@contextlib.asynccontextmanager
async def open_arena(
    *, web_processes: int = 1, with_twin: bool = False, with_encoder: bool = False
) -> AsyncIterator[Arena]:
    """Runs it for the length of the block. Raises ArenaFailed."""
    with tempfile.TemporaryDirectory(prefix="rapport-bench-") as name:
        server = PrivateRedis()
        arena = Arena(folder=Path(name), environ={}, redis=server)
        try:
            server.start()
            _start(arena, web_processes=web_processes, with_twin=with_twin, with_encoder=with_encoder)
            directory, row = EndpointDirectory(server.url), _directory_row(arena)
            await directory.write(row, is_ready=True)
            keeping = asyncio.create_task(_keep_directory(directory, row))
            try:
                yield arena
            finally:
                keeping.cancel()
                await asyncio.gather(keeping, return_exceptions=True)
        finally:
            for process in reversed(arena.processes):
                process.kill()
                process.wait()
            server.remove()


def _start(arena: Arena, *, web_processes: int, with_twin: bool, with_encoder: bool) -> None:
    measured, other = machine.cores()
    ports = [free_port() for _ in range(web_processes)]
    screen, engine = f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}"
    arena.engine = PacedAddress(address=engine)
    arena.environ = environ = product_environ(
        arena.folder,
        env={
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "REDIS_URL": arena.redis.url,
            "RAPPORT_ENGINE": "remote",
            "RAPPORT_ENGINE_URL": engine,
            "RAPPORT_ENCODER_URL": screen,
            "RAPPORT_ORIGINS": ",".join(f"http://127.0.0.1:{port}" for port in ports),
        },
    )
    place = read_place(environ)
    open_run_folders(place)
    write_secret_key(place.data, environ=environ)
    run_manage("migrate", "--no-input", environ=environ)
    run_manage("bootstrap", environ=environ)
    _run(arena, "engine", _module("tests.bench.paced_engine", "--port", engine.rpartition(":")[2]), core=other)
    module = (
        ("rubric.serve", "--model", environ["RAPPORT_ENCODER_FOLDER"])
        if with_encoder
        else ("tests.bench.instant_screen",)
    )
    _run(arena, "screen", _module(*module, "--port", screen.rpartition(":")[2]), core=other)
    for port in ports:
        command = web_command("127.0.0.1", port, application=WEB)
        arena.webs.append(_web(arena, f"web-{port}", command, port=port, core=measured))
    if with_twin:
        port = free_port()
        command = web_command("127.0.0.1", port, application=TWIN)
        arena.twin = _web(arena, "twin", command, port=port, core=measured)
    _wait(f"{screen}/healthz", name="screen", log=arena.folder / "screen.log")
    machine.pin([os.getpid()], [other])


def _module(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", *words)


def _run(arena: Arena, name: str, command: Sequence[str], *, core: int) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def prepare() -> None:
        os.sched_setaffinity(0, {core})
        follow_parent(parent)

    with _log(arena, name).open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=dict(arena.environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=prepare,  # noqa: PLW1509 - three system calls after the fork
        )
    arena.processes.append(process)
    return process


def _web(arena: Arena, name: str, command: Sequence[str], *, port: int, core: int) -> Target:
    process = _run(arena, name, command, core=core)
    address = f"http://127.0.0.1:{port}"
    _wait(f"{address}/healthz", name=name, log=_log(arena, name))
    return Target(address=address, pid=process.pid)


def _log(arena: Arena, name: str) -> Path:
    return arena.folder / f"{name}.log"


def _wait(url: str, *, name: str, log: Path) -> None:
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s:
        with contextlib.suppress(OSError):
            answer: IO[bytes] = urllib.request.urlopen(url, timeout=5)
            answer.close()
            return
        time.sleep(0.1)
    raise ArenaFailed(name, log=log)


def _directory_row(arena: Arena) -> dict[str, Endpoint]:
    """The live version, served by the paced engine."""
    name = name_of_live(arena.environ)
    endpoint = Endpoint(
        base_url=arena.engine.address,
        model="paced",
        driver="remote",
        features=EngineFeatures(logprobs=True, token_ids=True),
        slots=4096,
        dialect=Dialect(sampled_kind="processed"),
    )
    return {name: endpoint}


async def _keep_directory(directory: EndpointDirectory, row: Mapping[str, Endpoint]) -> None:
    """What the keeper does every two seconds."""
    while True:
        await asyncio.sleep(DIRECTORY_S)
        await directory.write(row, is_ready=True)
