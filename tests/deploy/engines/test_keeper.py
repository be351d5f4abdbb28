"""`deploy.engines.keeper`: the door's own parts; the rounds are told in `test_keep`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings
from django.db import OperationalError

from chat.models import PolicyVersion
from chat.models.learning import VersionKind, VersionOrigin, VersionState
from chat.store import wake_keeper
from deploy.engines import keeper
from deploy.engines.directory import EndpointDirectory
from deploy.engines.driver import ServedVersion
from deploy.engines.errors import EngineSetupError, EngineStartFailed
from deploy.engines.keep import Keeping
from deploy.engines.keeper import WantedVersions, _end_orphans, keep_rounds, make_driver, make_launcher, read_wanted
from deploy.engines.launch import CircusLauncher
from deploy.engines.llamacpp import LlamaCppDriver
from deploy.engines.remote import RemoteDriver
from deploy.engines.vllm import VllmDriver
from deploy.env import read_environment
from rubric import Endpoint, open_client
from tests.deploy.engines.test_keep import TellableDriver
from tests.fakes.tiny_model import make_tiny_base

BASE = ServedVersion(name="policy-base", folder=Path("base"), kind="base")


@pytest.mark.django_db(transaction=True)
def test_live_versions_are_wanted_with_their_kind_and_folder() -> None:
    made = [
        ("policy-1", VersionOrigin.BASE, "/models/1", VersionState.LIVE),
        ("policy-2", VersionOrigin.TRAINED, "/versions/2", VersionState.CANARY),
        ("policy-3", VersionOrigin.OPERATOR, "", VersionState.CANARY),
        ("policy-4", VersionOrigin.TRAINED, "/versions/4", VersionState.RETIRED),
        ("policy-5", VersionOrigin.TRAINED, "/versions/5", VersionState.UNSAFE),
    ]
    for name, origin, folder, state in made:
        PolicyVersion.objects.create(kind=VersionKind.POLICY, name=name, origin=origin, folder=folder, state=state)
    assert {(version.name, version.kind, version.folder) for version in read_wanted()} == {
        ("policy-1", "base", Path("/models/1")),
        ("policy-2", "adapter", Path("/versions/2")),
        ("policy-3", "operator", None),
    }


async def test_what_is_served_stays_while_the_database_is_away(capsys: pytest.CaptureFixture[str]) -> None:
    answers: list[list[ServedVersion] | Exception] = [[BASE], OperationalError("gone"), OperationalError("gone"), []]

    def read() -> list[ServedVersion]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    wanted = WantedVersions(read)
    assert [await wanted.read() for _ in range(4)] == [[BASE], [BASE], [BASE], []]
    assert capsys.readouterr().out.count("does not answer") == 1


@contextlib.asynccontextmanager
async def rounds(driver: TellableDriver, wanted: list[ServedVersion]) -> AsyncIterator[EndpointDirectory]:
    """The keeper's rounds while the block runs."""
    directory, stopped = EndpointDirectory(settings.REDIS_URL), asyncio.Event()
    keeping = Keeping(driver=driver, tell=lambda _: None)
    running = asyncio.create_task(
        keep_rounds(keeping, WantedVersions(lambda: list(wanted)), directory, stopped=stopped)
    )
    yield directory
    stopped.set()
    await asyncio.wait_for(running, 5)
    await directory.close()


async def until_served(directory: EndpointDirectory, *names: str) -> None:
    """Returns once the directory holds these and no others."""
    async with asyncio.timeout(5):
        while (await directory.read()).keys() != set(names):
            await asyncio.sleep(0.02)


@pytest.fixture
def rare_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens within seconds is not the poll's doing."""
    monkeypatch.setattr(keeper, "ROUND_S", 600.0)


@pytest.mark.redis
async def test_a_word_that_the_versions_changed_begins_a_round_at_once(clean_redis: None, rare_rounds: None) -> None:
    wanted = [BASE]
    async with rounds(TellableDriver(), wanted) as directory:
        await until_served(directory, "policy-base")
        wanted.append(ServedVersion(name="policy-new", folder=Path("new"), kind="adapter"))
        await asyncio.to_thread(wake_keeper)
        await until_served(directory, "policy-base", "policy-new")


@pytest.mark.redis
async def test_a_start_that_has_ended_is_written_down_at_once(clean_redis: None, rare_rounds: None) -> None:
    driver = TellableDriver(gate=asyncio.Event())
    async with rounds(driver, [BASE]) as directory:
        await asyncio.sleep(0.3)  # the first round is over, the version still starts
        assert await directory.read() == {}
        assert driver.gate is not None
        driver.gate.set()
        await until_served(directory, "policy-base")


@pytest.mark.redis
async def test_without_a_word_the_poll_finds_what_is_wanted(clean_redis: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "ROUND_S", 0.2)
    wanted = [BASE]
    async with rounds(TellableDriver(), wanted) as directory:
        await until_served(directory, "policy-base")
        wanted.clear()
        await until_served(directory)


class NamingLauncher(CircusLauncher):
    """Knows names and what was stopped; starts nothing."""

    def __init__(self, *names: str) -> None:
        super().__init__("ipc:///nowhere")
        self._names = set(names)
        self.stopped: list[str] = []

    async def names(self) -> frozenset[str]:
        return frozenset(self._names)

    async def stop(self, name: str) -> None:
        self.stopped.append(name)

    async def start(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        raise AssertionError(name)


async def test_only_model_servers_that_nobody_adopted_are_ended() -> None:
    driver = TellableDriver(alive={"policy-a"})
    keeping = Keeping(driver=driver, tell=lambda _: None)
    kept = ServedVersion(name="policy-a", folder=None, kind="base")
    await keeping.adopt([kept], {"policy-a": Endpoint(base_url="http://x", model="policy-a", driver="vllm")})
    launcher = NamingLauncher("web", "engine", "engine-policy-a", "engine-policy-old", "engine-vllm")
    await _end_orphans(launcher, keeping)
    launcher.close()
    assert launcher.stopped == ["engine-policy-old"]


async def test_each_engine_has_its_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAPPORT_VLLM_PYTHON", raising=False)
    base = make_tiny_base(tmp_path / "base")
    plain = replace(read_environment({}), model_folder=str(base.folder), data=tmp_path, cache=tmp_path)
    launcher = NamingLauncher()
    async with open_client() as client:
        llamacpp = make_driver(plain, launcher=launcher, client=client)
        at_address = replace(plain, engine="vllm", engine_url="http://gpu:8000/v1", engine_key="k")
        vllm = make_driver(at_address, launcher=launcher, client=client)
        remote = make_driver(
            replace(plain, engine="remote", engine_url="http://x/v1"), launcher=launcher, client=client
        )
        with pytest.raises(EngineStartFailed, match="environment is missing"):
            make_driver(replace(plain, engine="vllm"), launcher=launcher, client=client)
        with pytest.raises(EngineSetupError):
            make_driver(replace(plain, model_folder=""), launcher=launcher, client=client)
    launcher.close()
    assert (type(llamacpp), type(vllm), type(remote)) == (LlamaCppDriver, VllmDriver, RemoteDriver)


def test_without_an_arbiter_the_keeper_says_how_to_start_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAPPORT_CIRCUS_ENDPOINT", raising=False)
    with pytest.raises(EngineStartFailed, match="make run"):
        make_launcher()
