"""The calls to the screen: alone and joined with what came before; failing is a reading, and never a pass."""

from collections.abc import AsyncIterator

import pytest
from pytest_django import Settings

from chat import screening
from chat.safety import Standing, decide
from chat.screening import screen_spans, screen_visitor
from rubric import EncoderError, Level
from tests.fakes.encoder import FakeEncoder
from tests.fakes.engine import closed_port


@pytest.fixture
async def encoder(settings: Settings) -> AsyncIterator[FakeEncoder]:
    async with FakeEncoder(
        visitor={"END IT": "high", "pills\nall of them": "high", "no point": "watch"}, reply={"HARM": "high"}
    ) as fake:
        settings.RAPPORT_ENCODER_URL = fake.url
        settings.RAPPORT_SCREEN_TIMEOUT_S = 0.3
        yield fake
        await screening.encoder().aclose()


async def test_message_is_read_alone_and_with_the_ones_before(encoder: FakeEncoder) -> None:
    reading = await screen_visitor("all of them", before=("I have pills",))
    assert encoder.asked == [("visitor", ("all of them", "I have pills\nall of them"))]
    assert reading.levels == (Level.NONE, Level.HIGH)
    assert (reading.probability, reading.version, reading.failure) == (0.97, "screen-fake", "")


async def test_first_message_is_read_once(encoder: FakeEncoder) -> None:
    reading = await screen_visitor("There is no point.", before=())
    assert encoder.asked == [("visitor", ("There is no point.",))]
    assert reading.levels == (Level.WATCH,)


async def test_language_is_that_of_the_message_itself(encoder: FakeEncoder) -> None:
    assert not (await screen_visitor("zzz bonjour", before=("Good morning.",))).is_covered
    assert (await screen_visitor("Good morning.", before=("zzz bonjour",))).is_covered


@pytest.mark.parametrize("failure", ["hangs", "answers 500", "is gone"])
async def test_screen_that_does_not_answer_is_a_reading_that_counts_as_high(
    encoder: FakeEncoder, settings: Settings, failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    encoder.hangs = failure == "hangs"
    encoder.status = 500
    if failure == "is gone":
        settings.RAPPORT_ENCODER_URL = f"http://127.0.0.1:{closed_port()}"
    reading = await screen_visitor("Good morning.", before=())
    assert reading.failure in {"EncoderTimeout", "EncoderUnavailable"}
    assert (reading.levels, reading.probability) == ((), None)
    standing = Standing(turn=1, watch_until_turn=0, has_language_card=False)
    decision = decide(reading, standing, watched_turns=6)
    assert (decision.level, decision.calls_model) == (Level.HIGH, False)
    assert "morning" not in caplog.text
    await screening.encoder().aclose()


async def test_spans_are_read_as_a_reply_in_one_request_and_a_failure_leaves_as_an_error(encoder: FakeEncoder) -> None:
    assert [reading.level for reading in await screen_spans(["Good.", "HARM them"])] == [Level.NONE, Level.HIGH]
    assert encoder.asked == [("reply", ("Good.", "HARM them"))]
    encoder.status = 500
    with pytest.raises(EncoderError):
        await screen_spans(["Good."])
