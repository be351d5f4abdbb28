"""The run of `make bench-judge`: which parts, what is asked once, what the exit status says."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from rubric import EncoderClient, EncoderUnavailable, JudgeReading, Role, Rubric, Transcript, fallback_rubric
from rubric.encoder_values import LEVEL_COUNT
from rubric.examiner import Examined, Reply
from tests.fakes.judges import EVEN, instruments
from training.bench import judge
from training.bench.judge import exit_status, measure, remembering, wanted_parts
from training.bench.judge_asking import (
    EMBEDDED_AT_ONCE,
    Instruments,
    Question,
    ask_examiner,
    ask_judge,
    expected_level,
    reward_of_levels,
)
from training.bench.judge_rows import PARTS, Row, exactly, not_measured, row
from training.bench.judge_speed import Served

CONTEXT = Transcript.of((Role.USER, "I failed again."))
SERVED = Served(url="http://127.0.0.1:1", pid=0, folder=Path("nowhere"))


def question(reply: str) -> Question:
    return Question(context=CONTEXT, reply=reply, criteria=("Names a feeling", "Asks something"))


def test_no_name_means_every_part_and_a_wrong_one_is_told() -> None:
    assert wanted_parts("") == PARTS
    assert wanted_parts("probes, pairs") == ("probes", "pairs")
    with pytest.raises(ValueError, match="prices"):
        wanted_parts("prices")


def test_every_part_can_be_measured() -> None:
    assert {*judge.MEASURES, "speed"} == set(PARTS)


async def test_the_same_question_is_asked_once_and_answered_in_place() -> None:
    asked: list[Question] = []

    async def ask(questions: Sequence[Question]) -> list[JudgeReading]:
        asked.extend(questions)
        return await instruments(level=lambda one, _: float(one.reply == "good")).judge(questions)

    remembered = remembering(ask)
    first = await remembered([question("good"), question("bad"), question("good")])
    again = await remembered([question("bad"), question("new")])
    assert [one.criteria[0].expected for one in (*first, *again)] == [1.0, 0.0, 1.0, 0.0, 0.0]
    assert asked == [question("good"), question("bad"), question("new")]


async def test_rows_are_printed_as_they_come_and_a_part_that_fails_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def works(_tools: Instruments) -> list[Row]:
        return [row("calibration.batches", exactly(0), n=60)]

    async def fails(_tools: Instruments) -> list[Row]:
        async with asyncio.TaskGroup() as group:
            group.create_task(_unavailable())
        return []

    async def _unavailable() -> None:
        raise EncoderUnavailable(base_url="http://encoder", reason="status 503")

    monkeypatch.setitem(judge.MEASURES, "pairs", fails)
    monkeypatch.setitem(judge.MEASURES, "calibration", works)
    rows, failed = await measure(("pairs", "calibration"), instruments(), SERVED)
    assert failed == ["pairs"]
    printed = capsys.readouterr()
    assert [json.loads(line)["goal"] for line in printed.out.splitlines()] == ["calibration.batches"]
    assert len(rows) == 1
    assert "EncoderUnavailable" in printed.err


@pytest.mark.parametrize(
    ("rows", "failed", "is_named", "status"),
    [
        ([row("pairs.judge", exactly(0.1), n=9)], [], True, 0),  # a missed bar is a finding
        ([not_measured("counsel.judge", "no data")], [], False, 0),
        ([not_measured("counsel.judge", "no data")], [], True, 1),
        ([], ["pairs"], False, 1),
    ],
)
def test_the_exit_status_says_whether_what_was_asked_for_was_measured(
    rows: list[Row], failed: list[str], is_named: bool, status: int
) -> None:
    assert exit_status(rows, failed, is_named=is_named) == status


async def test_questions_go_to_the_process_and_come_back_in_order() -> None:
    async def answer(request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        assert body["context"] == "visitor: I failed again."
        await asyncio.sleep(0.05 if body["reply"] == "slow" else 0)
        level = 1.0 if body["reply"] == "slow" else 0.0
        shares = [0.0] * LEVEL_COUNT
        shares[int(level * (LEVEL_COUNT - 1))] = 1.0
        count = len(body["criteria"])
        return web.json_response(
            {
                "version": "judge-fake",
                "levels": [shares] * count,
                "expected": [level] * count,
                "evidence": [None] * count,
                "none_reasons": [None] * count,
                "genuine": 1.0,
                "mechanisms": EVEN,
            }
        )

    app = web.Application()
    app.add_routes([web.post("/v1/judge", answer)])
    async with TestServer(app) as server, EncoderClient(str(server.make_url("")), timeout_s=5) as client:
        readings = await ask_judge(client, [question("slow"), question("quick"), question("quick too")])
    assert [reading.criteria[1].expected for reading in readings] == [1.0, 0.0, 0.0]


class Measuring:
    """An examiner that says where the vectors it gets came from."""

    def examine(self, reply: Reply) -> Examined:
        assert float(reply.text_vector[0]) == len(reply.text.strip())
        assert float(reply.message_vector[0]) == len(reply.message)
        quality = None if not reply.text.strip() else len(reply.text) / 100
        return Examined(quality=quality, genuine=quality, mechanisms=(), none_reason=None, version="examiner-fake")


async def test_the_examiner_gets_the_vectors_of_the_reply_and_of_the_message_each_embedded_once() -> None:
    embedded: list[str] = []

    async def embed(request: web.Request) -> web.Response:
        texts = json.loads(await request.read())["texts"]
        assert len(texts) <= EMBEDDED_AT_ONCE
        embedded.extend(texts)
        return web.json_response(
            {"version": "encoder-fake", "embeddings": [[float(len(text))] * 384 for text in texts]}
        )

    app = web.Application()
    app.add_routes([web.post("/v1/embed", embed)])
    replies = [(CONTEXT, "!" * length) for length in (1, 20, 3, 3)] + [(CONTEXT, "")]
    async with TestServer(app) as server, EncoderClient(str(server.make_url("")), timeout_s=5) as client:
        found = await ask_examiner(client, Measuring(), replies)
    assert [one.quality for one in found] == [0.01, 0.2, 0.03, 0.03, None]
    assert sorted(embedded) == sorted({"!", "!" * 20, "!!!", CONTEXT.last_user})


def test_levels_become_rewards_as_the_product_makes_them() -> None:
    rubric: Rubric = fallback_rubric("bench")  # want and avoid, want and avoid, want and want
    assert reward_of_levels([1, 0, 1, 0, 1, 1], rubric) == 1.0
    assert reward_of_levels([1, 1, 1, 0, 1, 1], rubric) == pytest.approx(5 / 6)
    assert reward_of_levels([None, None, 1, 0, 1, 1], rubric) is None
    assert reward_of_levels([1, None, 1, 0, 1, 1], rubric) == 1.0
    assert expected_level((0.5, 0.0, 0.0, 0.0, 0.5)) == 0.5
