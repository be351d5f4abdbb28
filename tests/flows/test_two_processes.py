"""Two web processes, one conversation: sends that race, pages that follow, a process that dies (A2, A9)."""

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from chat.models import Generation, Message
from chat.models.conversations import MessageKind, MessageStatus
from chat.services.texts import sha256_of
from tests.flows.guest import Guest
from tests.flows.product import RunningProduct

pytestmark = [pytest.mark.flow, pytest.mark.engine, pytest.mark.usefixtures("without_grading")]
WEB_NAMES = ("web", "web-2")


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """Closes at the end whatever pages a test has entered into it."""
    with ExitStack() as stack:
        yield stack


@pytest.mark.database
def test_ten_sends_at_once_are_stored_once_in_order_and_all_answered(
    product: RunningProduct, opened: ExitStack
) -> None:
    guest = Guest(product)
    texts = [f"My number {number} favourite fruit is the apple. Which one is yours?" for number in range(10)]
    pages = [opened.enter_context(guest.page(web=number % 2)) for number in range(10)]
    for number, (page, text) in enumerate(zip(pages, texts, strict=True)):
        page.send(type="message.send", client_id=f"at-once-{number}", text=text)
    acknowledged = [page.until("message.accepted")["message"] for page in pages]
    assert [message["text"] for message in acknowledged] == texts

    rows = product.rows
    own = Message.objects.filter(conversation=guest.conversation)
    said = rows(lambda: list(own.filter(kind=MessageKind.VISITOR).order_by("seq")))
    assert sorted(message.text for message in said) == sorted(texts)
    assert {message["id"]: message["seq"] for message in acknowledged} == {str(one.pk): one.seq for one in said}

    generations = Generation.objects.filter(message__conversation=guest.conversation).select_related("message")
    newest = said[-1].seq
    rows.until(
        lambda: generations.filter(context_to_seq=newest, finished_at__isnull=False).exists(),
        timeout_s=120,
        what="the newest of ten messages is answered",
    )
    replies = rows(lambda: list(generations.order_by("created_at")))
    # What the small model says may be withheld; that is an answer too.
    assert {one.message.status for one in replies} <= {MessageStatus.COMPLETE, MessageStatus.BLOCKED}
    for earlier, later in itertools.pairwise(replies):
        assert earlier.finished_at is not None
        assert earlier.finished_at <= later.created_at
        assert earlier.context_to_seq < later.context_to_seq


@pytest.mark.database
def test_page_that_comes_in_mid_answer_elsewhere_finds_the_beginning_and_follows(
    product: RunningProduct, stories: str
) -> None:
    guest = Guest(product, site=stories)
    with guest.page(web=0) as first:
        reply_id = first.begin_story(characters=120)
    with guest.page(web=1) as reloaded:
        live = reloaded.welcome["live"]
        assert live["message_id"] == reply_id
        assert len(live["text"]) == live["offset"] > 0
        reloaded.until_shown(live["offset"] + 40)
        finished = reloaded.stop(reply_id)
        stored = product.rows(lambda: Message.objects.get(pk=reply_id))
        # The last events may overtake the coarse copy; what the page shows in the end is what is stored.
        assert reloaded.text_of(reply_id) == stored.text
        assert finished["sha256"] == sha256_of(stored.text)
        assert stored.text.startswith(live["text"])


def test_reply_of_a_killed_process_is_interrupted_with_its_text_and_retried_elsewhere(
    product: RunningProduct, stories: str
) -> None:
    guest = Guest(product, site=stories)
    with guest.page(web=1) as there, guest.page(web=0) as here:
        reply_id = there.begin_story(characters=120)
        here.until_shown(60)
        product.kill(WEB_NAMES[1])
        killed_s = time.monotonic()
        failed = here.until("reply.failed", timeout_s=30)
        finished = here.until("reply.finished", timeout_s=5)
        assert finished["at_s"] - killed_s < 10
        assert (failed["code"], failed["retryable"]) == ("interrupted", True)
        assert finished["message"]["status"] == "interrupted"
        stored = product.rows(lambda: Message.objects.get(pk=reply_id))
        followed = "".join(event["text"] for event in here.seen if event["type"] == "reply.delta")
        assert len(followed) >= 60
        assert stored.text.startswith(followed)

        here.send(type="reply.regenerate", message_id=reply_id)
        retried = here.until("reply.started")["message_id"]
        here.begin_and_stop(retried)
        siblings = product.rows(
            lambda: list(Message.objects.filter(parent=stored.parent).order_by("sibling_index").values_list("pk"))
        )
        assert [str(pk) for (pk,) in siblings] == [reply_id, retried]
