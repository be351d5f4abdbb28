"""One reply from claim to ending: every way in which it can end, and what it costs."""

from dataclasses import replace

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from chat import admission, policies
from chat.context import estimate_prompt_tokens, prepare
from chat.limits import has_token_budget
from chat.models import Generation, Message
from chat.models.conversations import MessageStatus
from chat.reply import RunningReply, Stop
from chat.services.database import run_db
from chat.services.endings import finish_reply
from chat.store import ENDPOINTS_KEY, redis_here, redis_sync
from tests.chat.conftest import Room
from tests.chat.replies import Sink, claimed, finish, run, until
from tests.fakes.engine import Script

pytestmark = pytest.mark.redis


async def test_whole_reply_is_complete_with_everything_that_rebuilds_it(room: Room) -> None:
    outcome, sink = await run(room)
    assert (outcome.status, outcome.code, outcome.is_retryable) == (MessageStatus.COMPLETE, "", False)
    assert outcome.text == sink.text == "I hear you. That is hard."
    assert sink.told[0] == "started"
    assert outcome.completion is not None
    assert outcome.sampling is not None
    assert outcome.completion.finish_reason == "stop"
    assert len(outcome.completion.logprobs) == len(outcome.completion.token_ids) == 6
    assert outcome.engine_model == "fake-1"
    assert outcome.prompt_version.startswith("prompt-")
    assert outcome.context_from_seq == 1
    assert outcome.verdict is not None
    assert (outcome.verdict.level, outcome.verdict.screen_version) == ("none", "screen-fake")
    assert outcome.queued_ms is not None
    assert outcome.first_shown_ms is not None
    assert outcome.total_ms is not None
    assert outcome.queued_ms <= outcome.first_shown_ms <= outcome.total_ms


async def test_reply_without_a_sentence_end_is_shown_to_its_last_word(room: Room) -> None:
    room.engine.script = Script(tokens=("no ", "full ", "stop"))
    outcome, sink = await run(room)
    assert outcome.text == sink.text == "no full stop"


async def test_reply_that_holds_what_a_database_cannot_keep_is_finished_without_it(room: Room) -> None:
    room.engine.script = Script(
        tokens=("One.\x00 ", "\x00", "Two 😀."), finish_reason="a reason of its own making, and a long one"
    )
    claim = await claimed(room)
    outcome = await RunningReply(claim, sink=Sink()).run()
    outcome = replace(outcome, engine_model="/models/" + "m" * 200)
    assert await run_db(finish_reply, claim.fence, claim.message_id, outcome, owner="") is not None
    row = await sync_to_async(Message.objects.get)(pk=claim.message_id)
    assert (row.status, row.text) == (MessageStatus.COMPLETE, "One. Two 😀.")


async def test_reply_cut_off_at_its_length_limit_says_so_and_is_kept(room: Room) -> None:
    room.engine.script = Script(tokens=("And ", "then "), finish_reason="length")
    outcome, _ = await run(room)
    assert (outcome.status, outcome.code, outcome.is_retryable) == (MessageStatus.COMPLETE, "cut_off", False)
    assert outcome.text == "And then "


FAILURES: dict[str, tuple[Script, str, bool, str]] = {
    "refuses": (Script(status=400), "engine_refused", False, ""),
    "is overloaded itself": (Script(status=503), "engine_refused", True, ""),
    "never answers": (Script(hangs=True), "timeout_first_token", True, ""),
    "falls silent": (Script(tokens=("One. ", "two"), hang_at=1), "timeout_between_tokens", True, "One. "),
    "never ends": (Script(tokens=("w. ",) * 400, gap_s=0.1), "timeout_whole", True, "w. "),
    "dies at once": (Script(die_at=0), "engine_broken", True, ""),
    "dies after a token": (Script(tokens=("One. ", "two"), die_at=1), "engine_broken", True, "One. "),
    "dies in mid-sentence": (Script(tokens=("One. ", "and ", "two"), die_at=2), "engine_broken", True, "One. and "),
    "reports an error": (Script(tokens=("One. ", "two"), error_at=1), "engine_broken", True, "One. "),
    "sends garbage": (Script(tokens=("One. ", "two"), garbage_at=1), "engine_broken", True, "One. "),
    "says nothing": (Script(tokens=()), "empty_reply", True, ""),
    "says only white space": (Script(tokens=(" ", "\n\n")), "empty_reply", True, ""),
}


@pytest.mark.parametrize(("script", "code", "is_retryable", "text"), FAILURES.values(), ids=FAILURES.keys())
async def test_engine_that_fails_leaves_the_text_and_a_code(
    room: Room, settings: Settings, script: Script, code: str, is_retryable: bool, text: str
) -> None:
    settings.RAPPORT_FIRST_TOKEN_S = settings.RAPPORT_BETWEEN_TOKENS_S = 0.4
    settings.RAPPORT_WHOLE_REPLY_S = 1.0
    room.engine.script = script
    outcome, sink = await run(room)
    assert (outcome.status, outcome.code, outcome.is_retryable) == (MessageStatus.FAILED, code, is_retryable)
    assert outcome.text == sink.text
    assert outcome.text.startswith(text) if code == "timeout_whole" else outcome.text == text
    assert outcome.completion is None or code == "empty_reply"
    await until(lambda: room.engine.running == 0)


async def test_version_that_nobody_serves_fails_retryably(room: Room) -> None:
    await redis_here().delete(ENDPOINTS_KEY)
    policies.directory._rows.clear()
    outcome, sink = await run(room)
    assert (outcome.status, outcome.code, outcome.is_retryable) == (MessageStatus.FAILED, "engine_unreachable", True)
    assert sink.told == []


async def test_engine_that_is_gone_fails_retryably(room: Room) -> None:
    await room.engine.__aexit__()
    outcome, _ = await run(room)
    assert (outcome.code, outcome.is_retryable) == ("engine_unreachable", True)
    await room.engine.__aenter__()


async def test_full_queue_fails_retryably_and_leaves_no_place_taken(room: Room, settings: Settings) -> None:
    settings.RAPPORT_ENGINE_QUEUE = 0
    for other in ("a", "b"):
        assert await admission._admit(other, slots=2) == 0
    outcome, sink = await run(room)
    assert (outcome.status, outcome.code, outcome.is_retryable) == (MessageStatus.FAILED, "overloaded", True)
    assert sink.told == []
    assert await redis_here().zcard(admission._QUEUE) == 0


async def test_spent_budget_asks_no_engine(room: Room) -> None:
    room.conversation.site.daily_token_budget = 0
    await sync_to_async(room.conversation.site.save)()
    outcome, _ = await run(room)
    assert (outcome.status, outcome.code, outcome.is_retryable) == (MessageStatus.FAILED, "budget", False)
    assert room.engine.asked == []


async def test_used_tokens_are_charged_to_the_site(room: Room) -> None:
    outcome, _ = await run(room)
    assert outcome.completion is not None
    used = (outcome.completion.prompt_tokens or 0) + (outcome.completion.completion_tokens or 0)
    assert used == 13
    assert not await has_token_budget(room.conversation.site_id, budget=used)
    assert await has_token_budget(room.conversation.site_id, budget=used + 1)


CUT_SHORT = {
    "engine died": Script(tokens=("One. ", "Two. ", "Three. ", "Four. "), die_at=3),
    "engine fell silent": Script(tokens=("One. ", "Two. ", "Three. ", "Four. "), hang_at=3),
    "refused by the screen": Script(tokens=("One. ", "Two. ", "HARM. ", "Four. "), hang_at=3),
    "no usage came": Script(tokens=("One. ", "Two. ", "Three. "), sends_usage=False),
}


@pytest.mark.parametrize("script", CUT_SHORT.values(), ids=CUT_SHORT.keys())
async def test_reply_that_was_cut_short_charges_what_came_and_the_prompt(room: Room, script: Script) -> None:
    room.engine.script = script
    claim = await claimed(room)
    used = estimate_prompt_tokens((await run_db(prepare, claim)).prompt) + 3
    await RunningReply(claim, sink=Sink()).run()
    assert used > 3
    assert not await has_token_budget(room.conversation.site_id, budget=used)
    assert await has_token_budget(room.conversation.site_id, budget=used + 1)


async def test_stopped_reply_keeps_what_came_and_a_reply_that_never_began_costs_nothing(room: Room) -> None:
    room.engine.script = Script(tokens=("One. ", "Two. ", "Three. "), hang_at=2)
    claim, sink = await claimed(room), Sink()
    running = RunningReply(claim, sink=sink)
    sink.on_delta = lambda text: running.stop(Stop()) if "Two" in text else None
    await finish(claim, await running.run())
    made = await sync_to_async(Generation.objects.get)(message_id=claim.message_id)
    assert (len(made.token_ids), made.completion_tokens, made.prompt_tokens) == (2, 2, None)
    assert made.logprob_gap
    redis_sync().flushdb()
    room.engine.script = Script(hangs=True)
    await run(room, "Again.")
    assert await has_token_budget(room.conversation.site_id, budget=1)


async def test_refused_words_are_not_kept_as_token_ids_either(room: Room) -> None:
    room.engine.script = Script(tokens=("Fine. ", "Now HARM ", "them. "))
    outcome, _ = await run(room)
    assert outcome.status == MessageStatus.BLOCKED
    assert (outcome.token_ids, outcome.completion_tokens) == ((), 3)


async def test_claim_that_was_refused_ends_with_its_reason_and_asks_nobody(room: Room) -> None:
    claim = replace(await claimed(room), refusal="busy")
    outcome = await RunningReply(claim, sink=Sink()).run()
    assert (outcome.status, outcome.code, outcome.is_retryable) == (MessageStatus.FAILED, "busy", True)
    assert room.engine.asked == []


async def test_bug_of_our_own_is_an_ending_that_can_be_retried(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr(policies, "model_of", broken)
    outcome, _ = await run(room)
    assert (outcome.status, outcome.code, outcome.is_retryable) == (MessageStatus.FAILED, "internal_KeyError", True)
