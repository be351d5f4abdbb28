"""How versions come and go: bad adapters, warm caches, draining, a crash and the restart."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from deploy.engines.adapters import CONFIG, WEIGHTS, write_adapter_manifest
from deploy.engines.driver import ServedVersion
from deploy.engines.errors import AdapterRefused
from deploy.engines.model_folder import ModelFolder
from rubric import Completion, EngineBroken, EngineError, Sampling, Transcript
from tests.contracts.engine.conftest import PATIENT, Served

pytestmark = pytest.mark.asyncio(loop_scope="session")

PLAIN = Transcript.of(("user", "I lost my job today and I don't know what to do."))
STORY = Transcript.of(("user", "Tell me a very long story about a river, in many chapters."))
GREEDY = Sampling(max_tokens=16, temperature=0)
TOLERANCE = 0.02  # a cached prompt is read in other batches than a new one
KEY = "base_model.model.model.layers.{}.self_attn.q_proj.lora_{}.weight"


def truncate(folder: Path, base: ModelFolder) -> None:
    raw = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(raw[: len(raw) // 2])
    write_adapter_manifest(folder, base_sha256=base.manifest.base_sha256)


def poison(folder: Path, base: ModelFolder) -> None:
    rewrite(folder, base, lambda weights: weights[KEY.format(3, "B")].__setitem__((5, 1), np.nan))


def misshape(folder: Path, base: ModelFolder) -> None:
    rewrite(folder, base, lambda weights: weights.__setitem__(KEY.format(3, "B"), np.ones((64, 8), np.float32)))


def rerank(folder: Path, base: ModelFolder) -> None:
    rewrite(folder, base, lambda weights: weights.__setitem__(KEY.format(3, "A"), np.ones((12, 576), np.float32)))


def overrank(folder: Path, base: ModelFolder) -> None:
    config = json.loads((folder / CONFIG).read_text()) | {"r": 64}
    (folder / CONFIG).write_text(json.dumps(config))
    write_adapter_manifest(folder, base_sha256=base.manifest.base_sha256)


def grow(folder: Path, base: ModelFolder) -> None:
    rewrite(folder, base, lambda weights: weights.__setitem__(KEY.format(30, "A"), np.ones((8, 576), np.float32)))


def change_base(folder: Path, base: ModelFolder) -> None:
    write_adapter_manifest(folder, base_sha256="0" * 64)


def rewrite(folder: Path, base: ModelFolder, change: Callable[[dict[str, np.ndarray]], object]) -> None:
    weights = {key: value.copy() for key, value in load_file(folder / WEIGHTS).items()}
    change(weights)
    save_file(weights, folder / WEIGHTS)
    write_adapter_manifest(folder, base_sha256=base.manifest.base_sha256)


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (truncate, "unreadable"),
        (poison, "finite"),
        (misshape, "shapes"),
        (rerank, "rank"),
        (overrank, "rank"),
        (grow, "keys"),
        (change_base, "base"),
    ],
)
async def test_a_bad_adapter_is_refused_and_harms_nobody(
    served: Served,
    base: ModelFolder,
    adapters: dict[str, Path],
    tmp_path: Path,
    spoil: Callable[[Path, ModelFolder], None],
    rule: str,
) -> None:
    folder = tmp_path / "policy-bad"
    shutil.copytree(adapters["policy-a"], folder)
    spoil(folder, base)
    before = list(served.launcher.started)
    with pytest.raises(AdapterRefused) as caught:
        await served.driver.ensure(ServedVersion(name="policy-bad", folder=folder, kind="adapter"))
    assert caught.value.rule == rule
    assert served.launcher.started == before
    assert (await served.driver.health(served.endpoints["policy-base"])).is_well


async def test_a_new_version_never_answers_from_an_old_ones_cache(served: Served, adapters: dict[str, Path]) -> None:
    cold_b = await served.ask("policy-b", PLAIN, sampling=GREEDY)
    warm_a = await served.ask("policy-a", PLAIN, sampling=GREEDY)
    served.versions["policy-b2"] = replace(served.versions["policy-b"], name="policy-b2")
    await served.ensure("policy-b2")
    first = await served.ask("policy-b2", PLAIN, sampling=GREEDY)
    assert first.token_ids == cold_b.token_ids
    assert first.logprobs == pytest.approx(cold_b.logprobs, abs=TOLERANCE)
    again_a = await served.ask("policy-a", PLAIN, sampling=GREEDY)
    assert again_a.token_ids == warm_a.token_ids
    assert first.logprobs != pytest.approx(warm_a.logprobs, abs=2 * TOLERANCE)


async def test_a_version_that_retires_finishes_its_running_reply(served: Served) -> None:
    """Needs policy-b2 of the test before, or serves it now."""
    served.versions.setdefault("policy-b2", replace(served.versions["policy-b"], name="policy-b2"))
    await served.ensure("policy-b2")
    began = asyncio.Event()

    async def hear() -> Completion:
        model = served.model("policy-b2")
        sampling = Sampling(max_tokens=40, temperature=0.7, seed=2)
        async with aclosing(model.stream(STORY, sampling=sampling, deadlines=PATIENT, request_id="drain")) as stream:
            async for step in stream:
                began.set()
                if isinstance(step, Completion):
                    return step
        raise AssertionError("a stream without its end")

    reply = asyncio.create_task(hear())
    await began.wait()
    await served.driver.retire("policy-b2")
    assert (await reply).finish_reason in ("length", "stop")
    with pytest.raises(EngineError):
        await served.ask("policy-b2", PLAIN, sampling=GREEDY)
    assert not await served.driver.is_serving("policy-b2")


async def hear_until_killed(served: Served, name: str, *, heard: list[str]) -> None:
    process = next(n for n in served.launcher.started if n in (f"engine-{name}", "engine-vllm"))
    sampling = Sampling(max_tokens=400, temperature=0.7)
    stream = served.model(name).stream(STORY, sampling=sampling, deadlines=PATIENT, request_id="kill")
    async with aclosing(stream):
        async for step in stream:
            heard.append(step.text)
            if len(heard) == 5:
                os.killpg(served.launcher.pid(process), signal.SIGKILL)


async def test_a_killed_server_breaks_its_streams_and_comes_back_with_every_version(served: Served) -> None:
    """Last: it takes the server away from under everybody."""
    before = {name: await served.ask(name, PLAIN, sampling=GREEDY) for name in ("policy-base", "policy-a", "policy-b")}
    heard: list[str] = []
    with pytest.raises(EngineBroken):
        await hear_until_killed(served, "policy-a", heard=heard)
    assert len("".join(heard)) > 5
    assert not (await served.driver.health(served.endpoints["policy-a"])).is_well
    served.endpoints["policy-a"] = await served.driver.renew(served.versions["policy-a"])
    for name, reply in before.items():
        await served.ensure(name)
        again = await served.ask(name, PLAIN, sampling=GREEDY)
        assert again.token_ids == reply.token_ids
