"""The process that keeps the wanted versions served: `python -m deploy.engines.keeper`.

Every 2 s, and at once when somebody says that the versions changed or a start has ended, it asks `chat.policies` which
versions must answer and writes the endpoint directory; `keep` has the rules of a round. Django is set up here, at the
door; torch is never imported.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import aiohttp

from deploy.engines.directory import EndpointDirectory
from deploy.engines.driver import EngineDriver, ServedVersion
from deploy.engines.errors import EngineSetupError, EngineStartFailed
from deploy.engines.keep import Keeping
from deploy.engines.launch import ENDPOINT_VARIABLE, CircusLauncher
from deploy.engines.llamacpp import LlamaCppDriver
from deploy.engines.model_folder import read_model_folder
from deploy.engines.remote import RemoteDriver
from deploy.engines.vllm import VllmDriver, VllmServer
from deploy.engines.vllm_env import PYTHON_VARIABLE, find_vllm_python
from deploy.env import Environment, read_environment
from rubric import open_client

ROUND_S: Final = 2.0
SHORTEST_ROUND_S: Final = 0.1
VLLM_ARGUMENTS_VARIABLE: Final = "RAPPORT_VLLM_ARGS"
OUTPUT_CLASS: Final = "deploy.local.stream.PrefixStream"
OUR_WATCHERS: Final = "engine-"


def tell(text: str) -> None:
    """One line of the process's log."""
    print(text, flush=True)


def read_wanted() -> list[ServedVersion]:
    """The versions that must answer now, from the database."""
    from django.db import close_old_connections

    from chat.policies import served_versions

    close_old_connections()
    try:
        rows = served_versions()
    finally:
        close_old_connections()
    return [
        ServedVersion(name=row.name, folder=Path(row.folder) if row.folder else None, kind=row.kind) for row in rows
    ]


def make_launcher() -> CircusLauncher:
    """The launcher of the product. Raises EngineStartFailed where this is not started by it."""
    endpoint = os.environ.get(ENDPOINT_VARIABLE)
    if not endpoint:
        raise EngineStartFailed(name="keeper", reason=f"{ENDPOINT_VARIABLE} is not set: start it with `make run`")
    return CircusLauncher(endpoint, output=OUTPUT_CLASS)


def make_driver(environment: Environment, *, launcher: CircusLauncher, client: aiohttp.ClientSession) -> EngineDriver:
    """The driver that RAPPORT_ENGINE names. Raises EngineSetupError."""
    if environment.engine == "remote":
        return RemoteDriver(
            base_url=environment.engine_url,
            model=environment.engine_model,
            api_key=environment.engine_key,
            client=client,
        )
    base = read_model_folder(Path(environment.model_folder))
    if environment.engine == "vllm":
        return VllmDriver(base=base, launcher=launcher, client=client, server=_vllm_server(environment))
    return LlamaCppDriver(base=base, launcher=launcher, client=client, work=environment.data / "run" / "adapters")


def _vllm_server(environment: Environment) -> VllmServer:
    if environment.engine_url:
        return VllmServer(
            address=environment.engine_url,
            base_name=environment.engine_model or "base",
            api_key=environment.engine_key,
        )
    python = find_vllm_python(environment.cache)
    if python is None:
        raise EngineStartFailed(name="vllm", reason="its environment is missing: `make install` builds it")
    return VllmServer(
        python=python,
        is_cpu=not os.environ.get(PYTHON_VARIABLE),
        extra_arguments=tuple(shlex.split(os.environ.get(VLLM_ARGUMENTS_VARIABLE, ""))),
    )


class WantedVersions:
    """What the database said last: while it is away, what is served stays."""

    def __init__(self, read: Callable[[], list[ServedVersion]]) -> None:
        self._read = read
        self._last: list[ServedVersion] = []
        self._is_away = False

    async def read(self) -> list[ServedVersion]:
        """The newest answer, or the last one."""
        from django.db import DatabaseError

        try:
            self._last = await asyncio.to_thread(self._read)
        except DatabaseError as error:
            if not self._is_away:
                tell(f"the database does not answer ({type(error).__name__}); what is served stays")
            self._is_away = True
        else:
            self._is_away = False
        return self._last


async def run(environment: Environment) -> None:
    """Rounds until SIGTERM or SIGINT. The servers are left running: the launcher ends them in its own order."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    launcher = make_launcher()
    async with open_client() as client:
        keeping = Keeping(driver=make_driver(environment, launcher=launcher, client=client), tell=tell)
        directory = EndpointDirectory(environment.redis_url)
        wanted = WantedVersions(read_wanted)
        async with _closing(keeping, directory):
            await keeping.adopt(await wanted.read(), await directory.read())
            await _end_orphans(launcher, keeping)
            await keep_rounds(keeping, wanted, directory, stopped=stopped)
    launcher.close()


async def keep_rounds(
    keeping: Keeping, wanted: WantedVersions, directory: EndpointDirectory, *, stopped: asyncio.Event
) -> None:
    """Round after round until `stopped`; news shorten the wait between two, the poll stays the truth."""
    listeners = [asyncio.create_task(directory.heed(keeping.news)), asyncio.create_task(stopped.wait())]
    listeners[1].add_done_callback(lambda _: keeping.news.set())
    try:
        while not stopped.is_set():
            began_at = time.monotonic()
            keeping.news.clear()
            await keeping.round(await wanted.read())
            await directory.write(keeping.endpoints, is_ready=keeping.is_ready, refusals=keeping.refusals)
            await asyncio.sleep(SHORTEST_ROUND_S)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(keeping.news.wait(), max(0.0, ROUND_S - (time.monotonic() - began_at)))
    finally:
        for listener in listeners:
            listener.cancel()
        await asyncio.gather(*listeners, return_exceptions=True)


async def _end_orphans(launcher: CircusLauncher, keeping: Keeping) -> None:
    """End what an earlier keeper started and nobody adopted."""
    kept = {f"{OUR_WATCHERS}{name}" for name in keeping.endpoints}
    shared = {f"{OUR_WATCHERS}{endpoint.driver}" for endpoint in keeping.endpoints.values()}
    for name in await launcher.names():
        if name.startswith(OUR_WATCHERS) and name not in kept | shared:
            tell(f"{name} was left by an earlier keeper and ends")
            await launcher.stop(name)


@contextlib.asynccontextmanager
async def _closing(keeping: Keeping, directory: EndpointDirectory) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await directory.close()
        await keeping.close()


def main() -> int:
    """The command; the exit status is 1 where it cannot begin."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
    import django

    django.setup()
    try:
        asyncio.run(run(read_environment()))
    except EngineSetupError as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
