"""Reload in mid-answer (A2), and what is written without a network (A10)."""

import pytest
from playwright.sync_api import expect

from chat.models import Message
from chat.models.conversations import MessageKind
from tests.e2e.chat_page import ChatPage
from tests.e2e.conftest import OpenPage
from tests.e2e.watch import Watch
from tests.flows.product import RunningProduct

pytestmark = [pytest.mark.browser, pytest.mark.engine]
TEXT = "I will write this on the train, where there is no network."
# Milliseconds since the navigation began, once a running reply shows text again.
PREFIX_SHOWN = """() => {
  const text = document.querySelector('article.row.reply[data-status=running] .text')?.textContent ?? '';
  return text.length > 0 ? { afterMs: performance.now(), text } : false;
}"""


def test_reload_in_mid_answer_shows_the_beginning_at_once_and_the_whole_in_the_end(
    product: RunningProduct, open_page: OpenPage, stories: str
) -> None:
    chat = ChatPage(open_page(), product, site=stories).open()
    after_ms: list[float] = []
    while not after_ms or (min(after_ms) >= 1_000 and len(after_ms) < 3):  # a busy machine may be slow once
        if after_ms:
            chat.stop()
        before = chat.text_of(chat.begin_story(characters=160))
        chat.page.reload(wait_until="commit")
        seen = chat.page.wait_for_function(PREFIX_SHOWN, polling="raf").json_value()
        assert seen["text"].startswith(before)
        after_ms.append(seen["afterMs"])
    assert min(after_ms) < 1_000
    chat.until_ended()
    reply_id = chat.id_of(chat.reply)
    stored = product.rows(lambda: Message.objects.get(pk=reply_id))
    assert chat.source_of(chat.reply) == stored.text
    assert stored.text.startswith(seen["text"])
    assert stored.status == "blocked" or len(stored.text) > len(seen["text"])  # the small model may be withheld


def test_unsent_message_survives_a_reload_and_a_double_click_sends_it_once(
    product: RunningProduct, open_page: OpenPage, watch: Watch
) -> None:
    watch.expect("ERR_INTERNET_DISCONNECTED")
    chat = ChatPage(open_page(), product).open()
    chat.lose_line()
    chat.send(TEXT)
    expect(chat.pending.get_by_text("Not sent")).to_be_visible()
    assert not product.rows(lambda: Message.objects.filter(text=TEXT).exists())

    chat.page.goto("about:blank")
    chat.page.context.set_offline(False)
    chat.page.goto(chat.address)
    expect(chat.pending.get_by_text("Not sent")).to_be_visible()
    assert chat.text_of(chat.pending) == TEXT
    chat.button("Retry").dblclick()
    expect(chat.own).to_have_count(1)
    expect(chat.pending).to_have_count(0)
    expect(chat.reply).to_be_visible()
    stored = Message.objects.filter(text=TEXT, kind=MessageKind.VISITOR)
    assert product.rows(stored.count) == 1


def test_message_written_offline_goes_out_by_itself_when_the_network_is_back(
    product: RunningProduct, open_page: OpenPage, watch: Watch
) -> None:
    watch.expect("ERR_INTERNET_DISCONNECTED")
    text = "This one waits for the tunnel to end."
    chat = ChatPage(open_page(), product).open()
    chat.lose_line()
    chat.send(text)
    expect(chat.pending).to_have_count(1)
    chat.page.context.set_offline(False)
    expect(chat.own).to_have_count(1)
    expect(chat.pending).to_have_count(0)
    assert product.rows(lambda: Message.objects.filter(text=text).count()) == 1
