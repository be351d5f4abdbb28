"""The llama.cpp driver: one server process per served version, the base alone or with its one adapter applied.

Never several adapters in one process: the server's prompt cache does not know of adapters, and an adapter's cached
prompt would be used for another. A promotion starts the new process, flips, drains the old one.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from deploy.engines.adapters import check_adapter
from deploy.engines.base_gguf import read_shape
from deploy.engines.driver import EngineCounters, EngineHealth, Launcher, ServedVersion
from deploy.engines.errors import EngineStartFailed, VersionUnservable
from deploy.engines.health import ask_one_token
from deploy.engines.llamacpp_server import CONTEXT_TOKENS, KEY_VARIABLE, SLOTS
from deploy.engines.lora_gguf import write_lora_gguf
from deploy.engines.model_folder import ModelFolder, read_model_folder
from deploy.engines.ports import free_port
from rubric import Dialect, Endpoint, EngineFeatures

START_S: Final = 60.0
DRAIN_S: Final = 130.0  # longer than a whole reply may take
_POLL_S: Final = 0.1
_COUNTS = re.compile(r"^llamacpp:(\w+) (\S+)$", re.MULTILINE)

FEATURES: Final = EngineFeatures(adapters=True, logprobs=True, schema=True, token_ids=True)
DIALECT: Final = Dialect(
    # The server's own defaults (40 and .05) would cut the distribution that the trainer rebuilds.
    extras={"top_k": 0, "min_p": 0.0},
    sampled_extras={"post_sampling_probs": True},
    repetition_field="repeat_penalty",
    penalty_extras={"repeat_last_n": CONTEXT_TOKENS},  # -1 for "all" is refused with 400
    sampled_kind="processed",
    greedy_kind="raw",
    closes_connections=True,
    min_top_logprobs=1,
)


def watcher_name(version_name: str) -> str:
    """The launcher's name for the process of one version."""
    return f"engine-{version_name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Server:
    version: ServedVersion
    endpoint: Endpoint


class LlamaCppDriver:
    """Serves versions of one base model. `work` is a folder of this run for converted adapters."""

    def __init__(
        self,
        *,
        base: ModelFolder,
        launcher: Launcher,
        client: aiohttp.ClientSession,
        work: Path,
        threads: int | None = None,
    ) -> None:
        self._base = base
        self._launcher = launcher
        self._client = client
        self._work = work
        self._threads = threads or min(os.cpu_count() or 2, 8)
        self._servers: dict[str, _Server] = {}

    async def ensure(self, version: ServedVersion) -> Endpoint:
        """See EngineDriver: a server that already runs is left alone."""
        server = self._servers.get(version.name)
        if server is not None and await self._launcher.is_alive(watcher_name(version.name)):
            return server.endpoint
        return await self._start(version)

    async def renew(self, version: ServedVersion) -> Endpoint:
        """See EngineDriver: the process is replaced, whatever it was doing."""
        return await self._start(version)

    async def adopt(self, version: ServedVersion, endpoint: Endpoint) -> bool:
        """See EngineDriver."""
        if not await self._launcher.is_alive(watcher_name(version.name)):
            return False
        if not (await self.health(endpoint)).is_well:
            return False
        self._servers[version.name] = _Server(version=version, endpoint=endpoint)
        return True

    async def is_serving(self, name: str) -> bool:
        """See EngineDriver."""
        return name in self._servers and await self._launcher.is_alive(watcher_name(name))

    async def retire(self, name: str) -> None:
        """See EngineDriver: the end of the process cuts its streams, so it waits for them first."""
        server = self._servers.pop(name, None)
        end_at = time.monotonic() + DRAIN_S
        while server is not None and time.monotonic() < end_at:
            counters = await self.counters(server.endpoint)
            if counters is None or counters.busy_slots == 0:
                break
            await asyncio.sleep(_POLL_S)
        await self._launcher.stop(watcher_name(name))
        self._adapter_file(name).unlink(missing_ok=True)

    async def health(self, endpoint: Endpoint) -> EngineHealth:
        """See EngineDriver."""
        return await ask_one_token(endpoint, self._client)

    async def counters(self, endpoint: Endpoint) -> EngineCounters | None:
        """The finished requests' tokens and those of the running ones; None where the server does not answer."""
        headers = {"Authorization": f"Bearer {endpoint.api_key}"}
        limits = aiohttp.ClientTimeout(total=5.0)
        try:
            async with self._client.get(f"{endpoint.base_url}/metrics", headers=headers, timeout=limits) as answer:
                counts = _COUNTS.findall(await answer.text())
            async with self._client.get(f"{endpoint.base_url}/slots", headers=headers, timeout=limits) as answer:
                slots = await answer.json()
            finished = next(float(value) for name, value in counts if name == "tokens_predicted_total")
            busy = [slot for slot in slots if slot["is_processing"]]
            running = sum(step["n_decoded"] for slot in busy for step in slot.get("next_token", ()))
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError, StopIteration):
            return None
        return EngineCounters(generated_tokens=int(finished) + running, busy_slots=len(busy))

    async def close(self) -> None:
        """See EngineDriver: nothing is held here."""

    async def _start(self, version: ServedVersion) -> Endpoint:
        base, lora = await asyncio.to_thread(self._prepare, version)
        endpoint = self._endpoint(version, base, port=free_port())
        argv = [
            *(sys.executable, "-m", "deploy.engines.llamacpp_server", "--model", str(base.gguf)),
            *("--port", endpoint.base_url.rpartition(":")[2], "--alias", version.name),
            *("--threads", str(self._threads), *(("--lora", str(lora)) if lora else ())),
        ]
        environ: Mapping[str, str] = {KEY_VARIABLE: endpoint.api_key}
        await self._launcher.start(watcher_name(version.name), argv, environ)
        try:
            await self._wait_until_well(endpoint, version)
        except Exception:
            # Not after a cancellation: then everything stops, and who started the process ends it too.
            self._servers.pop(version.name, None)
            await self._launcher.stop(watcher_name(version.name))
            raise
        self._servers[version.name] = _Server(version=version, endpoint=endpoint)
        return endpoint

    def _prepare(self, version: ServedVersion) -> tuple[ModelFolder, Path | None]:
        """Find the base and, for an adapter, check and convert it. Raises EngineSetupError."""
        if version.kind == "operator" or version.folder is None:
            raise VersionUnservable(name=version.name, reason="llama.cpp serves model folders of this product only")
        if version.kind == "base":
            return read_model_folder(version.folder), None
        checked = check_adapter(version.folder, name=version.name, base=self._base)
        file = self._adapter_file(version.name)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_lora_gguf(checked, file, shape=read_shape(self._base.hf))
        return self._base, file

    def _adapter_file(self, name: str) -> Path:
        return self._work / f"{name}.gguf"

    @staticmethod
    def _endpoint(version: ServedVersion, base: ModelFolder, *, port: int) -> Endpoint:
        return Endpoint(
            base_url=f"http://127.0.0.1:{port}",
            model=version.name,
            driver="llamacpp",
            api_key=secrets.token_urlsafe(24),
            features=FEATURES,
            slots=SLOTS,
            context_tokens=CONTEXT_TOKENS,
            dialect=DIALECT,
            template=base.manifest.template,
        )

    async def _wait_until_well(self, endpoint: Endpoint, version: ServedVersion) -> None:
        end_at = time.monotonic() + START_S
        while not await self._is_listening(endpoint):
            if not await self._launcher.is_alive(watcher_name(version.name)):
                raise EngineStartFailed(name=version.name, reason="its process ended")
            if time.monotonic() > end_at:
                raise EngineStartFailed(name=version.name, reason=f"it did not listen within {START_S:.0f} s")
            await asyncio.sleep(_POLL_S)
        health = await self.health(endpoint)
        if not health.is_well:
            raise EngineStartFailed(name=version.name, reason=f"it gave {health.detail}")

    async def _is_listening(self, endpoint: Endpoint) -> bool:
        try:
            limits = aiohttp.ClientTimeout(total=2.0)
            async with self._client.get(f"{endpoint.base_url}/health", timeout=limits) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False
