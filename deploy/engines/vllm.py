"""The vLLM driver: one server, versions are adapter names that are loaded and unloaded while it runs.

The server is ours (started through the launcher) or stands behind an address (RAPPORT_ENGINE_URL: GPUs, several
replicas behind one address; they must see the same version folders). Adapters are checked before it hears of them:
one with a NaN would be taken with status 200 and poison the base until a restart.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from deploy.engines.adapters import MAX_RANK, TARGETS, check_adapter
from deploy.engines.driver import EngineCounters, EngineHealth, Launcher, ServedVersion
from deploy.engines.errors import EngineStartFailed, VersionUnservable
from deploy.engines.health import ask_one_token
from deploy.engines.llamacpp_server import SPINS
from deploy.engines.model_folder import ModelFolder
from deploy.engines.ports import free_port
from rubric import Deadlines, Dialect, Endpoint, EngineFeatures

WATCHER: Final = "engine-vllm"
BASE_NAME: Final = "base"
START_S: Final = 240.0
# On a machine that never ran it, the first token waits for kernels to be compiled.
FIRST_ANSWER_S: Final = Deadlines(connect_s=2.0, first_token_s=START_S, whole_s=START_S)
LOAD_S: Final = 60.0
SLOTS: Final = 8
CONTEXT_TOKENS: Final = 2048
_POLL_S: Final = 0.5
_COUNTS = re.compile(r"^vllm:(generation_tokens_total|num_requests_running)\{[^}]*\} (\S+)$", re.MULTILINE)

FEATURES: Final = EngineFeatures(
    adapters=True, logprobs=True, schema=True, token_ids=True, priority=True, prompt_logprobs=True
)
DIALECT: Final = Dialect(
    extras={"return_token_ids": True},
    repetition_field="repetition_penalty",
    sampled_kind="processed",
    greedy_kind="raw",
    sends_request_id=True,
)
_CPU_ENVIRON: Final[Mapping[str, str]] = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "OMP_NUM_THREADS": "2",
    # Threads bound to cores, spinning for each other: beside other busy processes that made .3 tokens/s, this 4-8.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    **dict([SPINS]),
}
_CPU_ARGUMENTS: Final = (
    *("--dtype", "float32", "--enforce-eager", "--distributed-executor-backend", "uni"),
    *("--max-model-len", str(CONTEXT_TOKENS)),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class VllmServer:
    """How to start our own server, or where another one is."""

    python: Path | None = None  # of vLLM's environment; None: use `address`
    is_cpu: bool = True
    extra_arguments: tuple[str, ...] = ()  # at the end: what the operator sets wins
    address: str = ""
    base_name: str = BASE_NAME  # the name under which the address serves the base
    api_key: str = field(default="", repr=False)


class VllmDriver:
    """Serves the base and any number of its adapters from one server."""

    def __init__(
        self, *, base: ModelFolder, launcher: Launcher, client: aiohttp.ClientSession, server: VllmServer
    ) -> None:
        self._base = base
        self._launcher = launcher
        self._client = client
        self._server = server
        self._served: dict[str, ServedVersion] = {}
        self._address = server.address.rstrip("/").removesuffix("/v1")
        self._key = server.api_key or secrets.token_urlsafe(24)
        self._starting = asyncio.Lock()

    async def ensure(self, version: ServedVersion) -> Endpoint:
        """See EngineDriver: start the server where it is not running, load the adapter where it is not loaded."""
        if version.kind == "operator":
            raise VersionUnservable(name=version.name, reason="the engine vllm serves model folders of this product")
        async with self._starting:
            if not await self._is_running():
                await self._start()
            if version.kind == "adapter":
                await self._load(version)
        self._served[version.name] = version
        return self._endpoint_of(version)

    async def renew(self, version: ServedVersion) -> Endpoint:
        """See EngineDriver: where the base is not well either, the whole server is replaced and everything reloaded."""
        async with self._starting:
            base_endpoint = self._endpoint(self._server.base_name)
            if self._address and (await self.health(base_endpoint)).is_well:
                await self._unload(version.name)
            elif self._server.python is not None:
                await self._start()
                for other in [v for v in self._served.values() if v.kind == "adapter" and v.name != version.name]:
                    await self._load(other)
        return await self.ensure(version)

    async def adopt(self, version: ServedVersion, endpoint: Endpoint) -> bool:
        """See EngineDriver."""
        if self._server.python is not None and not await self._launcher.is_alive(WATCHER):
            return False
        if not (await self.health(endpoint)).is_well:
            return False
        self._address, self._key = endpoint.base_url, endpoint.api_key
        self._served[version.name] = version
        return True

    async def is_serving(self, name: str) -> bool:
        """See EngineDriver."""
        return name in self._served and await self._is_running()

    async def retire(self, name: str) -> None:
        """See EngineDriver: the server lets running replies of an unloaded adapter end by itself."""
        version = self._served.pop(name, None)
        if version is not None and version.kind == "adapter" and await self._is_running():
            await self._unload(name)

    async def health(self, endpoint: Endpoint) -> EngineHealth:
        """See EngineDriver."""
        return await ask_one_token(endpoint, self._client)

    async def counters(self, endpoint: Endpoint) -> EngineCounters | None:
        """See EngineDriver; the counts of all versions together."""
        try:
            text = await self._get("/metrics")
            sums: dict[str, float] = {}
            for name, value in _COUNTS.findall(text):
                sums[name] = sums.get(name, 0.0) + float(value)
            return EngineCounters(
                generated_tokens=int(sums["generation_tokens_total"]), busy_slots=int(sums["num_requests_running"])
            )
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError):
            return None

    async def close(self) -> None:
        """See EngineDriver: nothing is held here."""

    async def _is_running(self) -> bool:
        if not self._address:
            return False
        return self._server.python is None or await self._launcher.is_alive(WATCHER)

    async def _start(self) -> None:
        """Start our own server and wait for a real token. Raises EngineStartFailed."""
        if self._server.python is None:
            raise EngineStartFailed(name="vllm", reason="no address and no environment of its own")
        port = free_port()
        self._address = f"http://127.0.0.1:{port}"
        environ = {"VLLM_API_KEY": self._key, "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True", **_QUIET}
        environ |= _CPU_ENVIRON if self._server.is_cpu else {}
        await self._launcher.start(WATCHER, self._argv(port), environ)
        end_at = time.monotonic() + START_S
        while not await self._is_listening():
            if not await self._launcher.is_alive(WATCHER):
                raise EngineStartFailed(name="vllm", reason="its process ended")
            if time.monotonic() > end_at:
                await self._launcher.stop(WATCHER)
                raise EngineStartFailed(name="vllm", reason=f"it did not listen within {START_S:.0f} s")
            await asyncio.sleep(_POLL_S)
        base = self._endpoint(self._server.base_name)
        health = await ask_one_token(base, self._client, deadlines=FIRST_ANSWER_S)
        if not health.is_well:
            await self._launcher.stop(WATCHER)
            raise EngineStartFailed(name="vllm", reason=f"its base gave {health.detail}")

    def _argv(self, port: int) -> list[str]:
        return [
            # The command `vllm` of the CPU wheel fails; the module behind it does not.
            *(str(self._server.python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(self._base.hf)),
            *("--served-model-name", self._server.base_name, "--host", "127.0.0.1", "--port", str(port)),
            *("--max-num-seqs", str(SLOTS), "--enable-lora", "--max-loras", "4", "--max-lora-rank", str(MAX_RANK)),
            # Without the list, scoring beside an adapter ends the server.
            *("--lora-target-modules", *TARGETS),
            *("--scheduling-policy", "priority", "--logprobs-mode", "processed_logprobs", "--shutdown-timeout", "10"),
            # The model folder's own sampling defaults would change the distribution behind the request's back.
            *("--generation-config", "vllm", "--uvicorn-log-level", "warning"),
            *("--structured-outputs-config", '{"backend":"xgrammar","disable_any_whitespace":true}'),
            *(_CPU_ARGUMENTS if self._server.is_cpu else ()),
            *self._server.extra_arguments,
        ]

    async def _is_listening(self) -> bool:
        try:
            await self._get("/health")
        except (aiohttp.ClientError, TimeoutError):
            return False
        return True

    async def _load(self, version: ServedVersion) -> None:
        """Check the adapter and have it loaded, unless its name is: names are never reused."""
        if version.folder is None:
            raise VersionUnservable(name=version.name, reason="an adapter needs its folder")
        checked = await asyncio.to_thread(check_adapter, version.folder, name=version.name, base=self._base)
        if version.name in await self._names():
            return
        status = await self._post(
            "/v1/load_lora_adapter", {"lora_name": version.name, "lora_path": str(checked.folder.resolve())}
        )
        if status != 200 and version.name not in await self._names():
            raise EngineStartFailed(name=version.name, reason=f"vLLM answered {status} to the adapter")
        health = await self.health(self._endpoint_of(version))
        if not health.is_well:
            await self._unload(version.name)
            raise EngineStartFailed(name=version.name, reason=f"it gave {health.detail}")

    async def _unload(self, name: str) -> None:
        await self._post("/v1/unload_lora_adapter", {"lora_name": name})

    async def _names(self) -> frozenset[str]:
        limits = aiohttp.ClientTimeout(total=LOAD_S)
        async with self._client.get(f"{self._address}/v1/models", headers=self._headers, timeout=limits) as answer:
            return frozenset(str(row["id"]) for row in (await answer.json())["data"])

    async def _get(self, path: str) -> str:
        limits = aiohttp.ClientTimeout(total=5.0)
        async with self._client.get(
            f"{self._address}{path}", headers=self._headers, timeout=limits, raise_for_status=True
        ) as answer:
            return await answer.text()

    async def _post(self, path: str, body: Mapping[str, Any]) -> int:
        limits = aiohttp.ClientTimeout(total=LOAD_S)
        async with self._client.post(
            f"{self._address}{path}", json=dict(body), headers=self._headers, timeout=limits
        ) as answer:
            await answer.read()
            return answer.status

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"}

    def _endpoint_of(self, version: ServedVersion) -> Endpoint:
        return self._endpoint(version.name if version.kind == "adapter" else self._server.base_name)

    def _endpoint(self, model: str) -> Endpoint:
        return Endpoint(
            base_url=self._address,
            model=model,
            driver="vllm",
            api_key=self._key,
            features=FEATURES,
            slots=SLOTS,
            context_tokens=CONTEXT_TOKENS,
            dialect=DIALECT,
            template=self._base.manifest.template,
        )


_QUIET: Final[Mapping[str, str]] = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}
