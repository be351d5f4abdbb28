"""The output screen of a running reply: what is shown, what is withheld, and when."""

import asyncio
import time

import pytest
from pytest_django import Settings

from chat.models.conversations import MessageStatus
from chat.reply import RunningReply, Stop
from chat.spans import SPANS_AT_ONCE
from rubric import Piece
from tests.chat.conftest import Room
from tests.chat.replies import Sink, claimed, run, until
from tests.fakes.engine import Script

pytestmark = pytest.mark.redis


async def test_span_that_is_refused_is_never_shown_and_ends_the_engines_work(room: Room) -> None:
    room.engine.script = Script(tokens=("Fine. ", "Now HARM ", "them. ", *("More. ",) * 200), gap_s=0.02)
    outcome, sink = await run(room)
    assert (outcome.status, outcome.code, outcome.is_retryable) == (MessageStatus.BLOCKED, "blocked", True)
    assert outcome.text == sink.text == "Fine."
    assert outcome.verdict is not None
    assert (outcome.verdict.level, outcome.verdict.probability) == ("high", 0.97)
    await until(lambda: room.engine.running == 0)
    assert room.engine.generated_tokens < 50


async def test_harm_in_the_last_words_is_withheld_too(room: Room) -> None:
    room.engine.script = Script(tokens=("Fine. ", "then ", "HARM"))
    outcome, sink = await run(room)
    assert outcome.status == MessageStatus.BLOCKED
    assert sink.text == "Fine."


async def test_harm_before_the_engine_died_is_withheld_too(room: Room) -> None:
    room.engine.script = Script(tokens=("Fine. ", "then ", "HARM ", "x"), die_at=3)
    outcome, sink = await run(room)
    assert outcome.status == MessageStatus.BLOCKED
    assert sink.text == "Fine."


async def test_harm_that_only_shows_with_what_stood_before_is_withheld(room: Room) -> None:
    room.encoder.reply = {"Do. it now.": "high"}
    room.engine.script = Script(tokens=("Do. ", "it ", "now. "))
    outcome, sink = await run(room)
    assert outcome.status == MessageStatus.BLOCKED
    assert sink.text == "Do."


async def test_sentences_that_wait_for_the_screen_are_read_in_one_request_and_shown_one_by_one(room: Room) -> None:
    room.encoder.takes_s = 0.1
    room.engine.script = Script(tokens=tuple(f"Sentence {n}. " for n in range(9)))
    outcome, sink = await run(room)
    requests = [texts for direction, texts in room.encoder.asked if direction == "reply"]
    assert max(map(len, requests)) == SPANS_AT_ONCE
    assert len(requests) <= 4
    assert requests[-1][-1].endswith("Sentence 7. Sentence 8. ")
    assert len(sink.deltas) == sum(map(len, requests)) >= 9
    assert outcome.text == sink.text == "".join(room.engine.script.tokens)


async def test_sentence_that_is_refused_among_several_ends_the_reply_after_those_before_it(room: Room) -> None:
    room.encoder.takes_s = 0.1
    room.engine.script = Script(tokens=("One. ", "Two. ", "Three. ", "Now HARM them. ", "Five. "))
    outcome, sink = await run(room)
    assert (outcome.status, outcome.code) == (MessageStatus.BLOCKED, "blocked")
    assert outcome.text == sink.text == "One. Two. Three."
    assert len([texts for direction, texts in room.encoder.asked if direction == "reply"]) == 2
    assert outcome.verdict is not None
    assert outcome.verdict.level == "high"


@pytest.mark.parametrize("failure", ["hangs", "answers 500"])
async def test_screen_that_does_not_answer_withholds_the_span(room: Room, settings: Settings, failure: str) -> None:
    settings.RAPPORT_SCREEN_TIMEOUT_S = 0.2
    sink = Sink()
    running = RunningReply(await claimed(room), sink=sink)
    room.encoder.hangs = failure == "hangs"
    room.encoder.status = 500
    outcome = await running.run()
    assert outcome.status == MessageStatus.BLOCKED
    assert outcome.code == ("screen_EncoderTimeout" if failure == "hangs" else "screen_EncoderUnavailable")
    assert outcome.is_retryable
    assert (outcome.text, sink.text) == ("", "")
    assert outcome.verdict is not None
    assert (outcome.verdict.level, outcome.verdict.probability) == ("high", None)


async def test_verdict_that_is_kept_is_the_most_worried_one(room: Room) -> None:
    room.encoder.reply = {"worry": "watch"}
    room.engine.script = Script(tokens=("Calm. ", "No worry. ", *("Calm again. ",) * 60), gap_s=0.002)
    outcome, _ = await run(room)
    assert outcome.status == MessageStatus.COMPLETE
    assert outcome.verdict is not None
    assert (outcome.verdict.level, outcome.verdict.probability) == ("watch", 0.6)


async def test_every_word_that_is_shown_was_read_by_the_screen(room: Room) -> None:
    room.engine.script = Script(tokens=tuple(f"w{n} " + ("end. " if n % 9 == 8 else "") for n in range(100)))
    outcome, sink = await run(room)
    screened = [text for direction, texts in room.encoder.asked if direction == "reply" for text in texts]
    assert all(any(text.endswith(piece) for text in screened) for _, piece in sink.deltas)
    assert outcome.text == sink.text == "".join(room.engine.script.tokens)


async def test_held_text_is_shown_after_400_ms_though_the_engine_is_silent(room: Room) -> None:
    room.engine.script = Script(tokens=("I ", "hear", " you"), hang_at=2)
    sink = Sink()
    started_s = time.monotonic()
    running = RunningReply(await claimed(room), sink=sink)
    task = asyncio.create_task(running.run())
    await until(lambda: sink.deltas)
    assert sink.text == "I hear"
    assert time.monotonic() - started_s < 2
    running.stop(Stop())
    await task


async def test_reply_sleeps_through_the_tokens_until_a_span_is_due(room: Room) -> None:
    reply = RunningReply(await claimed(room), sink=Sink())
    for _ in range(5):
        reply._take(Piece("word ", token_ids=(1,)))
        assert not reply._is_due.is_set()
    started_s = time.monotonic()
    await asyncio.wait_for(reply._is_due.wait(), 5)
    assert 0.3 < time.monotonic() - started_s < 2
    assert reply.buffer.waiting == ["word " * 5]
    assert reply._alarm is None  # nothing is held, nothing is to be woken for
