"""G14 and G15: the whole product with a real engine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import redis

from chat.prompting import Said, build_prompt, default_system_prompt, estimate_tokens
from chat.store import ENDPOINTS_KEY
from deploy.engines.model_folder import read_model_folder
from deploy.local.chat_bench.desk import Desk
from deploy.local.chat_bench.questions import fresh_seats, name_of_live
from deploy.local.chat_bench.random_lora import write_random_lora
from deploy.local.product import Product, start_product
from rubric import Completion, Deadlines, Endpoint, HttpChatModel, Role, Sampling, open_client
from training.bench import machine
from training.bench.chat_goals import AIMS, Line
from training.bench.figures import of_rounds, ratios
from training.bench.target import Target
from training.bench.turns import open_all
from training.bench.visitor import Seat

CHATS = 8
REPLY_TOKENS = 96  # as in `engine_settings`
STORY = "Tell me a very long story about a river and its fish, in many chapters."
SETTINGS = "deploy.local.chat_bench.engine_settings"
SERVED_WITHIN_S = 60.0
WORKER_S = 30.0
PATIENT = Deadlines(connect_s=5.0, first_token_s=120.0, between_tokens_s=60.0, whole_s=300.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A running product with the bench's way into its database and its Redis."""

    product: Product
    desk: Desk
    redis: redis.Redis

    @property
    def web(self) -> Target:
        """The web process."""
        return Target(address=self.product.address, pid=self.product.pids("web")[0])

    def seats(self, count: int) -> list[Seat]:
        """Fresh conversations."""
        return fresh_seats(count, environ=self.product.environ)

    def endpoint(self, name: str) -> Endpoint | None:
        """Where a version is served now."""
        row = self.redis.hget(ENDPOINTS_KEY, name)
        return Endpoint.from_json(row) if isinstance(row, str) else None


@contextlib.asynccontextmanager
async def open_stage(engine: str) -> AsyncIterator[Stage]:
    """The whole product on a scratch folder with this engine."""
    machine.pin([os.getpid()], range(os.cpu_count() or 1))
    with tempfile.TemporaryDirectory(prefix="rapport-bench-") as folder:
        env = {"DJANGO_SETTINGS_MODULE": SETTINGS, "RAPPORT_ENGINE": engine}
        with start_product(Path(folder), env=env, timeout_s=400.0) as product:
            client = redis.Redis.from_url(_redis_url(product), decode_responses=True)
            desk = Desk(product.environ)
            try:
                yield Stage(product=product, desk=desk, redis=client)
            finally:
                desk.close()
                client.close()


def _redis_url(product: Product) -> str:
    """Of the Redis that the product started; its configuration is readable by us alone."""
    options = dict(
        row.split(" ", 1) for row in (product.place.run / "redis.conf").read_text().splitlines() if " " in row
    )
    return f"redis://:{options['requirepass']}@127.0.0.1:{options['port']}/0"


# --- G14 -------------------------------------------------------------------------------------------------------------


async def measure_publish(stage: Stage, engine: str, *, rounds: int = 3) -> list[Line]:
    """A random LoRA's row is written; it is served; the pointer moves; two replies run meanwhile."""
    base = read_model_folder(Path(stage.product.environ["RAPPORT_MODEL_FOLDER"]))
    took, failed = [], []
    for number in range(rounds):
        name = f"policy-{uuid4().hex[:12]}"
        folder = write_random_lora(stage.product.place.data / "loras" / name, base, seed=number)
        talkers = await open_all(stage.web, stage.seats(2))
        replies = [visitor.say(STORY) for visitor in talkers]
        await asyncio.gather(*(visitor.wait("reply.started") for visitor in talkers))
        began_s = time.monotonic()
        await asyncio.to_thread(stage.desk.ask, "publish", name, str(folder), base.manifest.base_sha256)
        await _served(stage, name)
        before, flipped_s = await asyncio.to_thread(stage.desk.ask, "flip", name)
        took.append(flipped_s - began_s)
        await asyncio.gather(*replies, return_exceptions=True)
        failed.append(float(sum(visitor.heard.status != "complete" for visitor in talkers)))
        if number == rounds - 1:
            await _answers(stage, name)
        await asyncio.to_thread(stage.desk.ask, "flip", str(before))
        await asyncio.to_thread(stage.desk.ask, "retire", name)
        for visitor in talkers:
            visitor.close()
    return [
        Line(aim=AIMS[f"G14.{engine}"], figure=of_rounds(took)),
        Line(aim=AIMS[f"G14.{engine}_failed"], figure=of_rounds(failed), note="2 replies a round"),
    ]


async def _served(stage: Stage, name: str) -> None:
    """Wait until the version has an endpoint. Raises TimeoutError."""
    end_s = time.monotonic() + SERVED_WITHIN_S
    while stage.endpoint(name) is None:
        if time.monotonic() > end_s:
            raise TimeoutError(f"{name} was not served within {SERVED_WITHIN_S:.0f} s")
        await asyncio.sleep(0.02)


async def _answers(stage: Stage, name: str) -> None:
    """A new conversation is answered by the version. Raises RuntimeError."""
    (visitor,) = await open_all(stage.web, stage.seats(1))
    await visitor.say("Hello.")
    welcome = await visitor.hello()
    visitor.close()
    if visitor.heard.status != "complete" or welcome["conversation"]["policy"] != name:
        raise RuntimeError(f"a new conversation was not answered by {name} ({visitor.heard.status})")


# --- G15 -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Burst:
    """Eight replies at once: their tokens, and tokens a second."""

    tokens: int
    per_s: float


async def _whole(burst: Callable[[], Awaitable[Burst]]) -> float:
    """Tokens a second of a burst whose replies all have their full length. Raises RuntimeError after five without.

    A reply that ends early leaves seven to the engine, which takes a third longer for their tokens than for those of
    eight: whichever arm drew it would lose by that, not by what lies between.
    """
    for _ in range(5):
        found = await burst()
        if found.tokens == CHATS * REPLY_TOKENS:
            return found.per_s
    raise RuntimeError(f"five bursts of {CHATS} replies, and in each one ended early")


async def _bare_burst(endpoint: Endpoint) -> Burst:
    """Eight requests straight to the engine, each with a seed of its own."""
    said = [Said(seq=1, position=1, role=Role.USER, text=STORY)]
    prompt = build_prompt(said, system=default_system_prompt(), budget_tokens=1_400, count=estimate_tokens)

    async def one(model: HttpChatModel, seed: int) -> int:
        sampling = Sampling(max_tokens=REPLY_TOKENS, temperature=0.7, seed=seed)
        stream = model.stream(prompt.transcript, sampling=sampling, deadlines=PATIENT, request_id=f"bare-{seed}")
        async with contextlib.aclosing(stream) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    return piece.completion_tokens or 0
        return 0

    async with open_client() as client:
        began_s = time.monotonic()
        seeds = random.sample(range(1_000_000), CHATS)
        tokens = await asyncio.gather(*(one(HttpChatModel(endpoint, client), seed) for seed in seeds))
        return Burst(sum(tokens), sum(tokens) / (time.monotonic() - began_s))


async def _product_burst(stage: Stage) -> Burst:
    """Eight visitors who send at the same moment. Raises RuntimeError where a reply failed."""
    visitors = await open_all(stage.web, stage.seats(CHATS))
    began_s = time.monotonic()
    await asyncio.gather(*(visitor.say(STORY) for visitor in visitors))
    took_s = time.monotonic() - began_s
    found, _ = await asyncio.to_thread(stage.desk.ask, "tokens", *(one.seat.conversation for one in visitors))
    for visitor in visitors:
        visitor.close()
    if not isinstance(found, dict) or found["complete"] < CHATS:
        raise RuntimeError(f"not all of {CHATS} replies are complete: {found}")
    return Burst(int(found["tokens"]), float(found["tokens"]) / took_s)


async def _bare_rate(endpoint: Endpoint) -> float:
    return await _whole(lambda: _bare_burst(endpoint))


async def _product_rate(stage: Stage) -> float:
    return await _whole(lambda: _product_burst(stage))


def _pin(stage: Stage, *, is_apart: bool) -> None:
    """The engine on one core and everything else on the other, or everything everywhere."""
    measured, other = machine.cores()
    everywhere = range(os.cpu_count() or 1)
    for name in stage.product.names():
        is_engine = name.startswith("engine-")
        core = [measured] if is_engine else [other]
        machine.pin(stage.product.pids(name), core if is_apart else everywhere)
    machine.pin([os.getpid()], [other] if is_apart else everywhere)


async def _let_work(stage: Stage, *, is_wanted: bool) -> None:
    """Start or stop the worker, which grades. Raises TimeoutError."""
    stage.product.ask("start" if is_wanted else "stop", name="worker")
    end_s = time.monotonic() + WORKER_S
    while bool(stage.product.pids("worker")) is not is_wanted:
        if time.monotonic() > end_s:
            raise TimeoutError(f"the worker did not {'start' if is_wanted else 'stop'} within {WORKER_S:.0f} s")
        await asyncio.sleep(0.5)


async def _rounds(stage: Stage, endpoint: Endpoint, *, rounds: int) -> tuple[list[float], list[float]]:
    ours, bare = [], []
    for _ in range(rounds):
        bare.append(await _bare_rate(endpoint))
        ours.append(await _product_rate(stage) * 100)
    return ours, bare


async def measure_whole_engine(stage: Stage) -> list[Line]:
    """Pinned and not, without and with grading; the first run of each arm warms the engine."""
    name = name_of_live(stage.product.environ)
    endpoint = stage.endpoint(name)
    if endpoint is None:
        raise RuntimeError(f"{name} is not served")
    await _let_work(stage, is_wanted=False)
    _pin(stage, is_apart=True)
    await _bare_rate(endpoint)
    ours, bare = await _rounds(stage, endpoint, rounds=3)
    _pin(stage, is_apart=False)
    free_ours, free_bare = await _rounds(stage, endpoint, rounds=3)
    await _let_work(stage, is_wanted=True)
    _pin(stage, is_apart=True)
    graded = [await _product_rate(stage) * 100 for _ in range(3)]
    return [
        Line(aim=AIMS["G15.pinned"], figure=ratios(ours, bare)),
        Line(aim=AIMS["G15.unpinned"], figure=ratios(free_ours, free_bare)),
        Line(aim=AIMS["G15.graded"], figure=ratios(graded, bare)),
        Line(aim=AIMS["G15.bare"], figure=of_rounds(bare)),
    ]
