"""The product's launcher: circus, reached through its control socket, adds and removes one watcher per process."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from zmq.asyncio import Context
from zmq.constants import SocketOption, SocketType

from deploy.engines.errors import EngineStartFailed
from deploy.env import CHECKOUT

ENDPOINT_VARIABLE: Final = "RAPPORT_CIRCUS_ENDPOINT"
ANSWER_S: Final = 15.0
STOP_GRACE_S: Final = 5.0
BUSY_TRIES: Final = 50
BUSY_WAIT_S: Final = 0.2


class CircusLauncher:
    """Watchers by name; each call has its own short-lived socket, so an arbiter that was restarted is found again."""

    def __init__(self, endpoint: str, *, output: str = "") -> None:
        """`endpoint`: the arbiter's address (ipc://...). `output`: class path of the stream that takes the output."""
        self._endpoint = endpoint
        self._output = output
        self._context = Context()

    async def start(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """See Launcher. circus holds the process and passes its output on; it does not restart it."""
        await self.stop(name)
        options: dict[str, Any] = {
            "numprocesses": 1,
            "singleton": True,
            "copy_env": True,
            "working_dir": str(CHECKOUT),
            "env": dict(env),
            "graceful_timeout": STOP_GRACE_S,
            "stop_children": True,
            # A server that died is the keeper's news: it starts it again and reloads what it served.
            "respawn": False,
        }
        if self._output:
            options |= {side: {"class": self._output, "name": name} for side in ("stdout_stream", "stderr_stream")}
        answer = await self._ask_until_free(
            "add",
            {"name": name, "cmd": argv[0], "args": list(argv[1:]), "options": options, "start": True, "waiting": True},
        )
        if answer.get("status") != "ok":
            raise EngineStartFailed(name=name, reason=f"circus did not take it ({answer.get('reason', 'no reason')})")

    async def stop(self, name: str) -> None:
        """See Launcher."""
        if name in await self.names():
            await self._ask_until_free("rm", {"name": name, "waiting": True})

    async def is_alive(self, name: str) -> bool:
        """See Launcher. Raises EngineStartFailed where the arbiter gives no clear answer: nobody is dead by hearsay."""
        answer = await self._ask_until_free("numprocesses", {"name": name})
        if answer.get("status") == "ok":
            return bool(answer.get("numprocesses"))
        if "not found" in str(answer.get("reason", "")):
            return False
        raise EngineStartFailed(name=name, reason="circus did not say whether it runs")

    async def names(self) -> frozenset[str]:
        """See Launcher; every watcher of the arbiter, ours or not."""
        answer = await self._ask("list", {})
        return frozenset(answer.get("watchers", ()))

    def close(self) -> None:
        """Let go of the sockets."""
        self._context.destroy(linger=0)

    async def _ask_until_free(self, command: str, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Ask again while the arbiter is busy with another command, as it says by an error."""
        for _ in range(BUSY_TRIES):
            answer = await self._ask(command, properties)
            if answer.get("status") == "ok" or "already running" not in str(answer.get("reason", "")):
                break
            await asyncio.sleep(BUSY_WAIT_S)
        return answer

    async def _ask(self, command: str, properties: Mapping[str, Any]) -> dict[str, Any]:
        """One question, one answer. Raises EngineStartFailed where no arbiter answers."""
        name = uuid.uuid4().hex
        question = {"id": name, "command": command, "properties": properties}
        socket = self._context.socket(SocketType.DEALER)
        socket.setsockopt(SocketOption.IDENTITY, name.encode())
        socket.setsockopt(SocketOption.LINGER, 0)
        try:
            socket.connect(self._endpoint)
            await socket.send(orjson.dumps(question))
            async with asyncio.timeout(ANSWER_S):
                while True:
                    answer = orjson.loads(await socket.recv())
                    if isinstance(answer, dict) and answer.get("id") == name:
                        return answer
        except TimeoutError as error:
            raise EngineStartFailed(name=command, reason="no circus arbiter answered") from error
        finally:
            socket.close()
