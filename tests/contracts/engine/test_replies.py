"""What a reply may be asked for and how it ends: stop strings, n, schema, unicode, cancelling."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import aclosing

import pytest

from rubric import Completion, EngineRefused, JsonObject, Piece, Sampling, Transcript
from tests.contracts.engine.conftest import PATIENT, Served

pytestmark = pytest.mark.asyncio(loop_scope="session")

PLAIN = Transcript.of(("user", "I lost my job today and I don't know what to do."))
STORY = Transcript.of(("user", "Tell me a very long story about a river, in many chapters."))
FAMILY = Transcript.of(("user", "Repeat exactly: 👨‍👩‍👧‍👦🎉ž漢 done"))
GREEDY = Sampling(max_tokens=24, temperature=0)
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "weights": {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3},
        "stage": {"enum": ["explore", "comfort", "act"]},
    },
    "required": ["weights", "stage"],
    "additionalProperties": False,
}


async def hear(served: Served, transcript: Transcript, *, sampling: Sampling, name: str = "policy-base") -> Completion:
    """A whole stream; its text is that of its pieces."""
    text = ""
    model = served.model(name)
    async with aclosing(
        model.stream(transcript, sampling=sampling, deadlines=PATIENT, request_id=f"hear-{time.monotonic_ns()}")
    ) as stream:
        async for step in stream:
            if isinstance(step, Completion):
                assert step.text == text
                return step
            text += step.text
    raise AssertionError("a stream without its end")


async def test_a_stop_string_ends_the_reply_before_itself(served: Served) -> None:
    free = await served.ask("policy-base", PLAIN, sampling=GREEDY)
    word = free.text.split()[5]
    stopped = await hear(served, PLAIN, sampling=Sampling(max_tokens=24, temperature=0, stop=(word,)))
    assert stopped.finish_reason == "stop"
    assert stopped.text == free.text[: free.text.index(word)]


async def test_a_stream_and_a_whole_answer_are_one_reply(served: Served) -> None:
    whole = await served.ask("policy-a", PLAIN, sampling=GREEDY)
    streamed = await hear(served, PLAIN, sampling=GREEDY, name="policy-a")
    assert (streamed.text, streamed.token_ids) == (whole.text, whole.token_ids)
    assert streamed.logprobs == pytest.approx(whole.logprobs, abs=0.02)
    assert streamed.completion_tokens == whole.completion_tokens
    assert streamed.finish_reason == "length"


async def test_a_reply_that_ends_by_itself_says_stop(served: Served) -> None:
    asked = Transcript.of(("user", "What is 2+2? Answer with one word."))
    reply = await hear(served, asked, sampling=Sampling(max_tokens=40, temperature=0))
    assert reply.finish_reason == "stop"
    assert reply.logprob_gap is None


async def test_n_replies_differ_and_each_has_its_tokens(served: Served) -> None:
    sampling = Sampling(max_tokens=16, temperature=1.0, seed=11)
    replies = await served.model("policy-base").complete(
        STORY, sampling=sampling, deadlines=PATIENT, request_id="n3", n=3
    )
    assert len(replies) == 3
    assert len({reply.text for reply in replies}) > 1
    assert all(reply.logprobs and len(reply.token_ids) == len(reply.logprobs) for reply in replies)


async def test_a_schema_holds_the_reply(served: Served) -> None:
    sampling = Sampling(max_tokens=80, temperature=0.7, seed=3)
    reply = await served.ask("policy-base", PLAIN, sampling=sampling, schema=SCHEMA)
    value = json.loads(reply.text)
    assert reply.finish_reason == "stop"
    assert value.keys() == {"weights", "stage"}
    assert len(value["weights"]) == 3
    assert value["stage"] in ("explore", "comfort", "act")


async def test_json_cut_by_the_token_limit_says_length(served: Served) -> None:
    """It comes under status 200 and is no JSON: only the finish reason tells."""
    reply = await served.ask("policy-base", PLAIN, sampling=Sampling(max_tokens=8, temperature=0), schema=SCHEMA)
    assert reply.finish_reason == "length"
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply.text)


async def test_characters_of_several_tokens_arrive_whole(served: Served) -> None:
    whole = await hear(served, FAMILY, sampling=Sampling(max_tokens=40, temperature=0))
    assert "👨\u200d👩" in whole.text
    assert "\ufffd" not in whole.text
    # An engine that gives one entry for such a character must say so.
    assert whole.logprob_gap is None or f"{len(whole.token_ids)} entries" in whole.logprob_gap
    assert (whole.logprob_gap is None) == (len(whole.token_ids) in (whole.completion_tokens, _less_one(whole)))


def _less_one(reply: Completion) -> int:
    return (reply.completion_tokens or 0) - 1 if reply.finish_reason == "stop" else -1


async def test_a_reply_cut_inside_a_character_is_still_text(served: Served) -> None:
    limits = range(4, 12)
    replies = await asyncio.gather(
        *(hear(served, FAMILY, sampling=Sampling(max_tokens=limit, temperature=0)) for limit in limits)
    )
    for reply in replies:
        assert not reply.text.endswith(("\u200d", "\ufffd"))
        reply.text.encode()
    assert len({reply.text for reply in replies}) < len(limits)  # some limits do fall inside one


async def test_a_prompt_that_does_not_fit_is_refused(served: Served) -> None:
    with pytest.raises(EngineRefused) as caught:
        await served.ask("policy-base", Transcript.of(("user", "word " * 4000)), sampling=GREEDY)
    assert caught.value.status == 400
    assert not caught.value.is_retryable


async def start_and_leave(served: Served, *, after_pieces: int) -> None:
    model = served.model("policy-base")
    sampling = Sampling(max_tokens=400, temperature=0.7)
    async with aclosing(
        model.stream(STORY, sampling=sampling, deadlines=PATIENT, request_id=f"leave-{time.monotonic_ns()}")
    ) as stream:
        seen = 0
        async for step in stream:
            seen += isinstance(step, Piece)
            if seen == after_pieces:
                return


async def test_leaving_a_stream_stops_the_engine_and_frees_its_slot(served: Served) -> None:
    await start_and_leave(served, after_pieces=3)
    at_stop = await served.driver.counters(served.endpoints["policy-base"])
    await asyncio.sleep(1.0)
    later = await served.driver.counters(served.endpoints["policy-base"])
    assert at_stop is not None
    assert later is not None
    assert later.generated_tokens - at_stop.generated_tokens <= 10
    assert later.busy_slots == 0


async def tokens_per_s(served: Served) -> float:
    reply = await hear(served, PLAIN, sampling=Sampling(max_tokens=30, temperature=0))
    assert reply.first_token_ms is not None
    return 1000 * (len(reply.token_ids) - 1) / (reply.total_ms - reply.first_token_ms)


async def test_a_request_after_eight_cancelled_ones_runs_at_single_stream_speed(served: Served) -> None:
    alone = min([await tokens_per_s(served) for _ in range(2)])
    await asyncio.gather(*(start_and_leave(served, after_pieces=2) for _ in range(8)))
    after = 0.0
    for _ in range(6):  # other work on the machine only slows; eight running replies would for longer than this
        after = max(after, await tokens_per_s(served))
        if after > 0.7 * alone:
            break
    assert after > 0.7 * alone  # beside eight running streams it is a fifth
