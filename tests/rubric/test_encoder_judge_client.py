"""What the encoder process says of a reply is read strictly: a level that was not judged never becomes a number."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from rubric import EncoderClient, EncoderTimeout, EncoderUnavailable
from tests.rubric.test_encoder import encoder_answering, saying

CRITERIA = ("Names the feeling", "Asks one question")
ANSWER: dict[str, Any] = {
    "version": "judge-1",
    "levels": [[0.0, 0.0, 0.0, 0.5, 0.5], None],
    "expected": [0.875, None],
    "genuine": 0.75,
    "mechanisms": [[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
    "evidence": [[0, 5], None],
    "none_reasons": [None, "empty_criterion"],
}


async def test_levels_come_back_in_order_with_evidence_or_the_reason_for_none() -> None:
    async with encoder_answering(saying(ANSWER)) as client:
        reading = await client.judge("visitor: hi", "Hello.", criteria=CRITERIA)
    first, second = reading.criteria
    assert (reading.version, first.expected, first.evidence, first.none_reason) == ("judge-1", 0.875, (0, 5), None)
    assert first.probabilities == (0.0, 0.0, 0.0, 0.5, 0.5)
    assert (second.expected, second.probabilities, second.none_reason) == (None, (), "empty_criterion")
    assert reading.mechanisms[2] == (0.0, 0.0, 1.0)
    assert reading.genuine == 0.75


async def test_a_reply_that_nobody_could_read_has_no_mechanisms() -> None:
    nothing = {"levels": [None, None], "expected": [None, None], "evidence": [None, None], "mechanisms": None}
    body = {**ANSWER, **nothing, "genuine": None, "none_reasons": ["empty_reply", "empty_reply"]}
    async with encoder_answering(saying(body)) as client:
        reading = await client.judge("", " ", criteria=CRITERIA)
    assert reading.mechanisms == ()
    assert {one.none_reason for one in reading.criteria} == {"empty_reply"}


async def test_the_request_holds_context_reply_criteria_and_deadline_and_no_weights() -> None:
    seen: list[object] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(await request.json())
        return web.json_response(ANSWER)

    async with encoder_answering(answer, timeout_s=3.0) as client:
        await client.judge("visitor: hi", "Hello.", criteria=CRITERIA, wants_evidence=True)
    assert seen == [
        {
            "context": "visitor: hi",
            "reply": "Hello.",
            "criteria": list(CRITERIA),
            "wants_evidence": True,
            "deadline_ms": 3000,
        }
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 1},
        {"genuine": None},
        {"genuine": 1.2},
        {"genuine": "yes"},
        {"genuine": None, "mechanisms": None},
        {"levels": [[0.2] * 5]},
        {"levels": [[0.5, 0.5], None]},
        {"levels": [[0.2, 0.2, 0.2, 0.2, 0.9], None]},
        {"levels": [[1.5, -0.5, 0.0, 0.0, 0.0], None]},
        {"levels": [None, None]},
        {"expected": [1.2, None]},
        {"expected": [float("nan"), None]},
        {"expected": [True, None]},
        {"expected": ["10/10", None]},
        {"expected": [None, None]},
        {"expected": [0.875, 0.5]},
        {"expected": {"C1": 0.5}},
        {"none_reasons": [None, None]},
        {"none_reasons": ["empty_criterion", "empty_criterion"]},
        {"evidence": [[0, 7], None]},
        {"evidence": [[3, 3], None]},
        {"evidence": [[-1, 3], None]},
        {"evidence": [[0.5, 3], None]},
        {"mechanisms": [[0.5, 0.25, 0.25]]},
        {"mechanisms": [[0.5, 0.5, 0.5]] * 3},
    ],
)
async def test_an_answer_that_breaks_its_promise_gives_no_level_at_all(wrong: dict[str, Any]) -> None:
    async with encoder_answering(saying({**ANSWER, **wrong})) as client:
        with pytest.raises(EncoderUnavailable, match="list of levels"):
            await client.judge("visitor: hi", "Hello.", criteria=CRITERIA)


@pytest.mark.parametrize("name", sorted(ANSWER))
async def test_an_answer_with_a_part_missing_gives_no_level_at_all(name: str) -> None:
    body = {key: value for key, value in ANSWER.items() if key != name}
    async with encoder_answering(saying(body)) as client:
        with pytest.raises(EncoderUnavailable):
            await client.judge("visitor: hi", "Hello.", criteria=CRITERIA)


async def test_a_process_that_is_slow_is_a_timeout_and_one_that_is_down_is_unavailable() -> None:
    async def answer(_: web.Request) -> web.Response:
        await asyncio.sleep(5)
        return web.json_response({})

    async with encoder_answering(answer, timeout_s=0.05) as client:
        with pytest.raises(EncoderTimeout):
            await client.judge("", "Hello.", criteria=CRITERIA)
    async with EncoderClient("http://127.0.0.1:9") as client:
        with pytest.raises(EncoderUnavailable):
            await client.judge("", "Hello.", criteria=CRITERIA)


async def test_an_emoji_is_one_place_of_the_reply() -> None:
    body = {**ANSWER, "evidence": [[0, 3], None]}
    async with encoder_answering(saying(body)) as client:
        reading = await client.judge("", "\U0001f642 \u05e9", criteria=CRITERIA)
    assert reading.criteria[0].evidence == (0, 3)
