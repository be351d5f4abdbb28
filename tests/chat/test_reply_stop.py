"""A reply that is stopped: whenever the stop comes, it ends at once with what was shown, and the engine too."""

import asyncio
import time

import pytest

from chat import admission, reply
from chat.models.conversations import MessageStatus
from chat.reply import RunningReply, Stop
from chat.store import redis_here
from rubric import ScreenReading
from tests.chat.conftest import Room
from tests.chat.replies import PASSED, Sink, claimed, until
from tests.fakes.engine import Script

pytestmark = pytest.mark.redis


@pytest.mark.parametrize("status", [MessageStatus.STOPPED, MessageStatus.INTERRUPTED])
async def test_stop_in_mid_answer_keeps_what_was_shown_and_no_more(room: Room, status: MessageStatus) -> None:
    room.engine.script = Script(tokens=("One. ", "Two. ", "and then never", *("w ",) * 100), gap_s=0.05)
    sink = Sink()
    running = RunningReply(await claimed(room), sink=sink)
    sink.on_delta = lambda text: running.stop(Stop(status, code="why", is_retryable=True)) if "Two" in text else None
    outcome = await running.run()
    assert (outcome.status, outcome.code, outcome.is_retryable) == (status, "why", True)
    assert outcome.text == sink.text == "One. Two."
    at_stop = room.engine.generated_tokens
    await until(lambda: room.engine.running == 0)
    assert room.engine.generated_tokens - at_stop <= 10


async def test_stop_before_the_first_token_ends_at_once_with_no_text(room: Room) -> None:
    room.engine.script = Script(hangs=True)
    sink = Sink()
    running = RunningReply(await claimed(room), sink=sink)
    task = asyncio.create_task(running.run())
    await until(lambda: room.engine.running == 1)
    stopped_s = time.monotonic()
    running.stop(Stop())
    outcome = await task
    assert time.monotonic() - stopped_s < 0.5
    assert (outcome.status, outcome.text, outcome.code) == (MessageStatus.STOPPED, "", "")
    await until(lambda: room.engine.running == 0)
    assert await redis_here().zcard(admission._RUNNING) == 0
    assert admission.may_grade()


async def test_stop_before_the_reply_began_asks_no_engine(room: Room) -> None:
    running = RunningReply(await claimed(room), sink=Sink())
    running.stop(Stop())
    outcome = await running.run()
    assert outcome.status == MessageStatus.STOPPED
    await asyncio.sleep(0.05)
    assert room.engine.asked == []


async def test_stop_while_waiting_for_a_slot_gives_the_place_back(room: Room) -> None:
    for other in ("a", "b"):
        assert await admission._admit(other, slots=2) == 0
    sink = Sink()
    running = RunningReply(await claimed(room), sink=sink)
    task = asyncio.create_task(running.run())
    await until(lambda: sink.told)
    assert sink.told == ["queued 1"]
    running.stop(Stop())
    assert (await asyncio.wait_for(task, 1)).status == MessageStatus.STOPPED
    assert await redis_here().zcard(admission._QUEUE) == 0
    assert room.engine.asked == []


async def test_stop_does_not_wait_behind_what_the_engine_said_already(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quick engine and a slow screen: the text that waits to be screened is not shown after a stop."""

    async def slow_screen(texts: list[str]) -> list[ScreenReading]:
        await asyncio.sleep(0.1)
        return [PASSED] * len(texts)

    monkeypatch.setattr(reply, "screen_spans", slow_screen)
    room.engine.script = Script(tokens=tuple(f"Sentence {n}. " for n in range(300)))
    sink = Sink()
    running = RunningReply(await claimed(room), sink=sink)
    task = asyncio.create_task(running.run())
    await until(lambda: len(sink.deltas) >= 2)
    running.stop(Stop())
    stopped_s, shown = time.monotonic(), len(sink.deltas)
    outcome = await task
    assert time.monotonic() - stopped_s < 0.5
    assert outcome.status == MessageStatus.STOPPED
    assert len(sink.deltas) - shown <= 1


async def test_stop_during_the_last_screen_is_a_stop_with_what_was_shown(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Sink()
    running = RunningReply(await claimed(room), sink=sink)

    async def screen(texts: list[str]) -> list[ScreenReading]:
        running.stop(Stop())
        return [PASSED] * len(texts)

    monkeypatch.setattr(reply, "screen_spans", screen)
    room.engine.script = Script(tokens=("All at once", " and nothing more"))
    outcome = await running.run()
    assert (outcome.status, outcome.text) == (MessageStatus.STOPPED, sink.text)


async def test_cancelling_the_run_stops_the_engine(room: Room) -> None:
    room.engine.script = Script(tokens=("w. ",) * 400, gap_s=0.02)
    sink = Sink()
    task = asyncio.create_task(RunningReply(await claimed(room), sink=sink).run())
    await until(lambda: sink.deltas)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await until(lambda: room.engine.running == 0)
    assert await redis_here().zcard(admission._RUNNING) == 0


async def test_redis_that_hangs_does_not_hold_the_first_words_back(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    is_marked = asyncio.Event()

    async def hang(member: str) -> None:
        await is_marked.wait()

    monkeypatch.setattr(admission, "mark_first_token", hang)
    room.engine.script = Script(tokens=("One. ", "Two. "))
    sink = Sink()
    task = asyncio.create_task(RunningReply(await claimed(room), sink=sink).run())
    await until(lambda: sink.deltas)
    assert sink.text == "One."
    is_marked.set()
    assert (await task).text == "One. Two. "
