"""Stop ends the engine's work, wherever the reply runs (field reports A3, B17)."""

import pytest

from chat.models import Message
from rubric import Endpoint
from tests.flows.engine_watch import Work, look_at, tokens_per_s
from tests.flows.guest import Guest
from tests.flows.product import RunningProduct

pytestmark = [pytest.mark.flow, pytest.mark.engine, pytest.mark.usefixtures("without_grading")]


def when_idle(product: RunningProduct, *, timeout_s: float) -> Work:
    """The engine's numbers once nothing runs on it; looked up again, since a slot is let go before it is counted."""
    product.until_engine_rests(timeout_s=timeout_s)
    return look_at(product.endpoint())


def speeds(endpoint: Endpoint, times: int) -> list[float]:
    return [tokens_per_s(endpoint) for _ in range(times)]


def test_stop_ends_the_engines_work_and_keeps_the_text(product: RunningProduct, stories: str) -> None:
    endpoint = product.endpoint()
    alone = speeds(endpoint, 2)
    before = when_idle(product, timeout_s=30.0)
    with Guest(product, site=stories).page() as page:
        reply_id = page.begin_story(characters=100)
        at_stop = look_at(endpoint)
        finished = page.stop(reply_id)
        after = when_idle(product, timeout_s=2.0)
    # The server counts a cancelled request when it lets go of it, with all that it generated for it.
    running = sum(at_stop.running_tokens)
    assert running > 0
    assert 0 <= after.finished_tokens - at_stop.finished_tokens - running <= 10
    assert after.finished_tokens > before.finished_tokens
    assert max(speeds(endpoint, 3)) > 0.7 * min(alone)
    assert finished["message"]["status"] == "stopped"
    stored = product.rows(lambda: Message.objects.get(pk=reply_id))
    assert stored.text == finished["message"]["text"] == page.text_of(reply_id)
    assert len(stored.text) >= 100


def test_stop_reaches_a_reply_in_another_process(product: RunningProduct, stories: str) -> None:
    guest = Guest(product, site=stories)
    with guest.page(web=0) as here, guest.page(web=1) as there:
        reply_id = here.begin_story(characters=60)
        there.send(type="reply.stop", message_id=reply_id)
        assert there.until("reply.finished")["message"]["status"] == "stopped"
        assert here.until("reply.finished")["message"]["status"] == "stopped"
        product.until_engine_rests(timeout_s=2.0)
        assert here.text_of(reply_id) == there.text_of(reply_id)


def test_stop_for_a_reply_that_ended_is_an_error_and_nothing_else(product: RunningProduct, stories: str) -> None:
    with Guest(product, site=stories).page() as page:
        reply_id = page.begin_story(characters=20)
        page.stop(reply_id)
        page.send(type="reply.stop", message_id=reply_id)
        assert page.until("error")["code"] == "not_running"
        assert page.is_open
