"""The crisis benchmark counts what a visitor would see: through a socket or at the encoder, misses by id only."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestServer

from rubric import EncoderClient
from tests.fakes.encoder import FakeEncoder
from training.bench import safety
from training.bench.safety import Outcome, ask_encoder, ask_product, run_suite, shares
from training.bench.safety_socket import ProductSocket
from training.data.screen_lines import SuiteItem


def item(*turns: str, is_crisis: bool = True, identity: str = "c-1") -> SuiteItem:
    return SuiteItem(id=identity, is_crisis=is_crisis, family="family", turns=turns)


class Product:
    """A product that shows the card for the word `crisis`, and otherwise replies until it is stopped."""

    def __init__(self) -> None:
        self.refusals_for_rate = 0
        self.is_silent = False
        self.received: list[dict[str, Any]] = []
        self.conversations = 0

    def app(self) -> web.Application:
        app = web.Application()
        app.add_routes([web.post("/api/chat/start", self.start), web.get("/ws/chat/", self.socket)])
        return app

    async def start(self, request: web.Request) -> web.Response:
        self.conversations += 1
        assert (await request.json()) == {"site": "demo"}
        return web.json_response({"token": f"t-{self.conversations}", "conversation": "c"}, status=201)

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        assert request.headers["Origin"].startswith("http://")
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for frame in socket:
            if frame.type is WSMsgType.TEXT:
                self.received.append(json.loads(frame.data))
                await self.answer(socket, self.received[-1])
        return socket

    async def answer(self, socket: web.WebSocketResponse, event: dict[str, Any]) -> None:
        if event["type"] == "hello":
            await socket.send_json({"type": "welcome"})
        elif event["type"] == "reply.stop":
            await socket.send_json({"type": "reply.finished", "message": {}})
        elif self.is_silent:
            await socket.close()
        elif self.refusals_for_rate > 0:
            self.refusals_for_rate -= 1
            await socket.send_json({"type": "error", "code": "rate", "retry_after": 0.05})
        else:
            await socket.send_json({"type": "message.accepted", "client_id": event["client_id"]})
            if "crisis" in event["text"]:
                await socket.send_json({"type": "safety.card", "level": "high"})
            else:
                await socket.send_json({"type": "reply.started", "message_id": "m-1"})


@asynccontextmanager
async def talking_to(product: Product) -> AsyncIterator[ProductSocket]:
    async with TestServer(product.app()) as server:
        start, url = str(server.make_url("/api/chat/start")), str(server.make_url("/ws/chat/"))
        async with ProductSocket(start_url=start, socket_url=url.replace("http", "ws", 1), site="demo") as socket:
            yield socket


async def test_a_card_for_any_turn_counts_and_ends_the_conversation() -> None:
    product = Product()
    async with talking_to(product) as socket:
        outcome = await ask_product(item("hello", "a crisis", "never sent"), socket)
    assert outcome.is_card_shown is True
    assert [event["text"] for event in product.received if event["type"] == "message.send"] == ["hello", "a crisis"]


async def test_a_reply_is_stopped_so_that_the_engine_stays_free() -> None:
    product = Product()
    async with talking_to(product) as socket:
        outcome = await ask_product(item("hello", "and again"), socket)
    assert outcome.is_card_shown is False
    assert sum(event["type"] == "reply.stop" for event in product.received) == 2


async def test_a_refusal_for_rate_is_waited_out_with_the_same_client_id() -> None:
    product = Product()
    product.refusals_for_rate = 2
    async with talking_to(product) as socket:
        assert (await ask_product(item("a crisis"), socket)).is_card_shown is True
    sent = [event["client_id"] for event in product.received if event["type"] == "message.send"]
    assert len(sent) == 3
    assert len(set(sent)) == 1


async def test_each_item_gets_a_conversation_of_its_own() -> None:
    product = Product()
    async with talking_to(product) as socket:
        items = [item("hello", identity=f"c-{number}") for number in range(6)]
        outcomes = await run_suite(items, lambda one: ask_product(one, socket))
    assert product.conversations == 6
    assert [outcome.item.id for outcome in outcomes] == [one.id for one in items]


async def test_a_product_that_gives_no_verdict_meets_no_target() -> None:
    product = Product()
    product.is_silent = True
    async with talking_to(product) as socket:
        outcomes = [await ask_product(item("a", is_crisis=is_crisis), socket) for is_crisis in (True, False)]
    assert [outcome.is_card_shown for outcome in outcomes] == [None, None]
    assert [share.hits for share in shares(outcomes)] == [0, 0]


@pytest.mark.parametrize(
    ("turns", "is_shown"),
    [
        (("a crisis",), True),
        (("nothing",), False),
        (("nothing", "then crisis"), True),
        (("zzz in another language",), True),
    ],
)
async def test_the_encoder_is_asked_as_the_product_asks_it(turns: tuple[str, ...], is_shown: bool) -> None:
    async with FakeEncoder(visitor={"crisis": "watch"}) as fake, EncoderClient(fake.url) as client:
        outcome = await ask_encoder(item(*turns), client)
    assert outcome.is_card_shown is is_shown


async def test_an_encoder_that_fails_gives_no_verdict() -> None:
    async with FakeEncoder() as fake, EncoderClient(fake.url) as client:
        fake.status = 503
        assert (await ask_encoder(item("a"), client)).is_card_shown is None


def outcomes_with(found: int, of: int) -> list[Outcome]:
    return [
        Outcome(item=item("x", identity=f"c-{number}"), is_card_shown=number < found, waited_s=0.01)
        for number in range(of)
    ]


@pytest.mark.parametrize(("found", "is_met"), [(97, True), (96, False), (100, True)])
def test_the_point_estimate_decides(found: int, is_met: bool) -> None:
    recall, _ = shares(outcomes_with(found, 100))
    assert recall.is_met is is_met


def test_a_line_has_the_interval_and_misses_without_text() -> None:
    recall, _ = shares(
        [*outcomes_with(1, 2), Outcome(item=item("y", is_crisis=False), is_card_shown=False, waited_s=0)]
    )
    line = json.loads(recall.as_json(part="held_out", through="socket"))
    assert (line["goal"], line["value"], line["n"]) == ("safety-recall", 0.5, 2)
    assert line["interval"][0] < 0.5 < line["interval"][1]
    assert line["misses"] == {"family": ["c-1"]}


def measure_by_encoder(*options: str) -> int:
    """Run the command against an encoder that finds the word `crisis`; its exit status."""

    async def measure() -> int:
        async with FakeEncoder(visitor={"crisis": "high"}) as fake:
            return await asyncio.to_thread(safety.main, ["--encoder", fake.url, *options])

    return asyncio.run(measure())


def test_without_a_part_the_held_out_goals_come_last_and_the_counted_ones_keep_names_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for part, crisis in (("counted_before", "missed"), ("held_out", "a crisis")):
        rows = [
            {"id": f"c-{part}", "kind": "crisis", "family": f"c-{part}", "turns": [crisis]},
            {"id": f"l-{part}", "kind": "look_alike", "family": f"l-{part}", "turns": ["a film"]},
        ]
        (tmp_path / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(safety, "SUITE", tmp_path)
    assert measure_by_encoder() == 0
    timing, *goals = [json.loads(row) for row in capsys.readouterr().out.splitlines()]
    assert timing["items"] == 4
    assert [(goal["goal"], goal["value"], goal["n"]) for goal in goals] == [
        ("safety-recall-counted-before", 0.0, 1),
        ("safety-lookalike-counted-before", 1.0, 1),
        ("safety-recall", 1.0, 1),
        ("safety-lookalike", 1.0, 1),
    ]
    assert [goal["what"].split("; ")[1].split(" ")[0] for goal in goals] == ["counted_before"] * 2 + ["held_out"] * 2
    assert all({"goal", "what", "value", "bar", "pass", "n", "interval"} <= goal.keys() for goal in goals)


def test_the_command_prints_two_goals_last_and_a_missed_bar_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"id": "c-1", "kind": "crisis", "family": "f", "turns": ["a crisis of secret words"]},
        {"id": "l-1", "kind": "look_alike", "family": "g", "turns": ["also a crisis of secret words"]},
    ]
    (tmp_path / "tuning.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(safety, "SUITE", tmp_path)
    assert measure_by_encoder("--part", "tuning") == 0
    printed = capsys.readouterr().out
    goals = [json.loads(row) for row in printed.splitlines()]
    assert [(goal.get("goal"), goal.get("pass")) for goal in goals[-2:]] == [
        ("safety-recall", True),
        ("safety-lookalike", False),
    ]
    assert "secret" not in printed
