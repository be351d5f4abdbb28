"""Something dies or hangs in mid-answer: nothing that was said is lost, and nobody has to repair anything."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator

import pytest
import redis

from chat.models import Alert, Generation, Message, SafetyVerdict
from chat.models.conversations import MessageKind
from chat.models.safety import AlertKind
from chat.services.texts import sha256_of
from tests.flows.engine_watch import look_at
from tests.flows.guest import Guest
from tests.flows.product import RunningProduct, wait_for

pytestmark = [pytest.mark.flow, pytest.mark.engine, pytest.mark.usefixtures("without_grading")]
QUESTION = "Which vegetables grow well in a small garden?"
BACK_S = 60.0


def stored(product: RunningProduct, message_id: str) -> Message:
    return product.rows(lambda: Message.objects.get(pk=message_id))


def test_killed_engine_ends_the_reply_with_its_text_and_is_served_again(product: RunningProduct, stories: str) -> None:
    with Guest(product, site=stories).page() as page:
        reply_id = page.begin_story(characters=100)
        server = product.endpoint()
        with product.hearing_what_is_wrong() as heard:
            product.kill(product.model_server())
            product.until_served_anew(server, timeout_s=BACK_S)
        assert "engine" in heard
        failed = page.until("reply.failed", timeout_s=20)
        finished = page.until("reply.finished", timeout_s=5)
        assert (failed["code"], failed["retryable"]) == ("engine_broken", True)
        assert finished["message"]["status"] == "failed"
        text = stored(product, reply_id).text
        assert len(text) >= 100
        assert text == page.text_of(reply_id) == finished["message"]["text"]
        page.send(type="reply.regenerate", message_id=reply_id)
        retried = page.until("reply.started")["message_id"]
        assert page.begin_and_stop(retried)["message"]["sibling_count"] == 2


def test_hanging_engine_runs_into_the_deadline_and_the_text_stays(product: RunningProduct, stories: str) -> None:
    with Guest(product, site=stories).page() as page:
        reply_id = page.begin_story(characters=100)
        with product.frozen(product.model_server()):
            failed = page.until("reply.failed", timeout_s=20)
            finished = page.until("reply.finished", timeout_s=5)
        assert (failed["code"], failed["retryable"]) == ("timeout_between_tokens", True)
        assert stored(product, reply_id).text == page.text_of(reply_id) == finished["message"]["text"]
        wait_for(lambda: look_at(product.endpoint()).busy_slots == 0, timeout_s=10, what="the engine let go of it")
        assert page.taste(QUESTION)["message"]["text"]


def test_redis_that_dies_twice_loses_neither_sockets_nor_text(product: RunningProduct, stories: str) -> None:
    guest = Guest(product, site=stories)
    with guest.page(web=0) as here, guest.page(web=1) as there:
        reply_id = here.begin_story(characters=60)
        for _ in range(2):  # the supervision is back within a second: twice makes two
            wait_for(lambda: redis_answers(product), timeout_s=BACK_S, what="Redis is back")
            product.kill("redis")
        here.until_shown(len(here.text_of(reply_id)) + 40)  # it speaks on while Redis is away
        wait_for(lambda: redis_answers(product), timeout_s=BACK_S, what="Redis is back")
        finished = here.end(reply_id)
        assert finished["message"]["text"] == here.text_of(reply_id) == stored(product, reply_id).text
        assert finished["sha256"] == sha256_of(finished["message"]["text"])
        assert here.is_open
        assert there.is_open
        wait_for(
            lambda: not {"redis", "engine"} & set(product.parts()), timeout_s=BACK_S, what="the engine is found again"
        )
        # The other process follows again: what it missed comes by itself, and what is said now arrives live.
        there.until_text(reply_id, finished["message"]["text"])
        again = here.begin_story(characters=40)
        there.until("reply.delta", message_id=again)
        here.stop(again)
        there.until("reply.finished")
        assert there.text_of(again) == stored(product, again).text


def redis_answers(product: RunningProduct) -> bool:
    try:
        with contextlib.closing(product.redis) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


def test_message_that_nobody_could_screen_shows_the_card_and_calls_staff(product: RunningProduct) -> None:
    guest = Guest(product)
    with guest.page() as page:
        product.kill("encoder")
        message = page.say(QUESTION)
        card = page.until("safety.card", timeout_s=10)
        assert card["level"] == "high"
        assert card["resources"]
        alerts = product.rows(lambda: list(Alert.objects.filter(conversation=guest.conversation)))
        assert [alert.kind for alert in alerts] == [AlertKind.SCREEN_DOWN]
        verdict = product.rows(lambda: SafetyVerdict.objects.get(message=message["id"]))
        assert (verdict.level, verdict.score) == ("high", None)
        own = Message.objects.filter(conversation=guest.conversation).order_by("seq")
        assert product.rows(lambda: list(own.values_list("kind", flat=True))) == ["visitor", "safety"]
        assert not product.rows(lambda: Generation.objects.filter(message__conversation=guest.conversation).exists())

        wait_for(lambda: "encoder" not in product.parts(), timeout_s=BACK_S, what="the encoder is back")
        assert page.taste(QUESTION)["message"]["text"]


@pytest.mark.database
def test_message_to_a_database_that_is_away_for_two_seconds_is_accepted(product: RunningProduct) -> None:
    with Guest(product).page(web=0) as here, Guest(product).page(web=1) as there:
        with database_away(product):
            for number, page in enumerate((here, there)):
                page.send(type="message.send", client_id=f"away-{number}", text=QUESTION)
                page.send(type="ping")
                page.until("pong", timeout_s=2)
            time.sleep(1.5)
            assert all(event["type"] != "message.accepted" for page in (here, there) for event in page.hear(0.2))
        for page in (here, there):
            accepted = page.until("message.accepted", timeout_s=20)["message"]
            assert page.stop(page.until("reply.delta")["message_id"])["message"]["text"]
            assert stored(product, accepted["id"]).kind == MessageKind.VISITOR


@contextlib.contextmanager
def database_away(product: RunningProduct) -> Iterator[None]:
    """PostgreSQL cuts every connection and takes none; SQLite is locked by somebody else."""
    if product.database is not None:
        with product.database.away():
            wait_for(lambda: "database" in product.parts(), timeout_s=10, what="/readyz says that the database is away")
            yield
        return
    file = product.itself.place.data / "db.sqlite3"
    with contextlib.closing(sqlite3.connect(file, isolation_level=None, timeout=20)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
