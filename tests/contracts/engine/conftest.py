"""Real engines for the contract suite: the base and two random adapters, served by each driver in turn.

Run one engine alone with `-m engine` (llama.cpp) or `-m vllm`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from deploy.engines.convert import ensure_model
from deploy.engines.driver import EngineDriver, ServedVersion
from deploy.engines.llamacpp import LlamaCppDriver
from deploy.engines.model_folder import ModelFolder
from deploy.engines.vllm import VllmDriver, VllmServer
from deploy.engines.vllm_env import ensure_vllm_python
from deploy.env import cache_folder
from rubric import Completion, Deadlines, Endpoint, HttpChatModel, JsonObject, Sampling, Transcript, open_client
from tests.contracts.engine.reference import Reference, make_adapter
from tests.fakes.launcher import SubprocessLauncher

PATIENT = Deadlines(connect_s=5, first_token_s=60, between_tokens_s=30, whole_s=120)


@dataclass(frozen=True, kw_only=True)
class Served:
    """One driver with the three versions that it serves."""

    driver: EngineDriver
    launcher: SubprocessLauncher
    client: aiohttp.ClientSession
    versions: dict[str, ServedVersion]
    endpoints: dict[str, Endpoint] = field(default_factory=dict)

    def model(self, name: str) -> HttpChatModel:
        return HttpChatModel(self.endpoints[name], self.client)

    async def ensure(self, name: str) -> None:
        self.endpoints[name] = await self.driver.ensure(self.versions[name])

    async def ask(
        self, name: str, transcript: Transcript, *, sampling: Sampling, schema: JsonObject | None = None
    ) -> Completion:
        (answer,) = await self.model(name).complete(
            transcript, sampling=sampling, deadlines=PATIENT, request_id="contract", schema=schema
        )
        return answer


@pytest.fixture(scope="session")
def base() -> ModelFolder:
    return ensure_model(cache_folder(os.environ))


@pytest.fixture(scope="session")
def adapters(base: ModelFolder, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two adapters of random numbers; every run makes the same ones."""
    folder = tmp_path_factory.mktemp("adapters")
    return {name: make_adapter(base, folder / name, seed=seed) for name, seed in (("policy-a", 1), ("policy-b", 2))}


@pytest.fixture(scope="session")
def reference(base: ModelFolder) -> Reference:
    return Reference(base)


@pytest_asyncio.fixture(
    scope="session",
    loop_scope="session",
    params=[
        pytest.param("llamacpp", marks=pytest.mark.engine),
        pytest.param("vllm", marks=pytest.mark.vllm),
    ],
)
async def served(
    request: pytest.FixtureRequest,
    base: ModelFolder,
    adapters: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Served]:
    folder = tmp_path_factory.mktemp(request.param)
    versions = {"policy-base": ServedVersion(name="policy-base", folder=base.folder, kind="base")}
    versions |= {name: ServedVersion(name=name, folder=path, kind="adapter") for name, path in adapters.items()}
    async with SubprocessLauncher(folder / "log") as launcher, open_client() as client:
        driver: EngineDriver
        if request.param == "llamacpp":
            driver = LlamaCppDriver(base=base, launcher=launcher, client=client, work=folder / "work")
        else:
            python = ensure_vllm_python(cache_folder(os.environ))
            driver = VllmDriver(base=base, launcher=launcher, client=client, server=VllmServer(python=python))
        one = Served(driver=driver, launcher=launcher, client=client, versions=versions)
        for name in versions:
            await one.ensure(name)
        yield one
        await driver.close()
