"""The line and what is written without one: a page that was frozen, a patient banner, two tabs in step (A1, A10)."""

import pytest
from playwright.sync_api import expect

from chat.models import Conversation, Message
from chat.models.conversations import MessageKind
from tests.e2e.chat_page import ChatPage
from tests.e2e.conftest import DESK, OpenPage
from tests.e2e.staff_pages import StaffPages
from tests.e2e.watch import Watch
from tests.flows.product import RunningProduct

pytestmark = [pytest.mark.browser, pytest.mark.engine]
FROZEN_MS = 8_000


def test_page_that_was_frozen_shows_a_staff_reply_within_three_seconds_of_waking(
    product: RunningProduct, open_page: OpenPage
) -> None:
    chat = ChatPage(open_page(), product).open()
    conversation = product.rows(lambda: Conversation.objects.latest("created_at"))
    staff = StaffPages(open_page(viewport=DESK), product).log_in("demo-reviewer").open_transcript(conversation.pk)
    line = chat.page.context.new_cdp_session(chat.page)
    chat.page.evaluate("document.addEventListener('resume', () => { window.__woke = performance.now(); })")
    line.send("Page.setWebLifecycleState", {"state": "frozen"})
    staff.page.get_by_label("Write to the visitor, as yourself").fill("I am here now.")
    staff.page.get_by_role("button", name="Send", exact=True).click()
    expect(staff.page.get_by_text("Sent.")).to_be_visible()
    staff.page.wait_for_timeout(FROZEN_MS)
    line.send("Page.setWebLifecycleState", {"state": "active"})
    told = chat.page.locator("article.row.staff .text")
    expect(told).to_have_text("I am here now.", timeout=3_000)
    assert chat.page.evaluate("performance.getEntriesByType('navigation').length") == 1  # no reload brought it


def test_page_whose_line_died_in_its_sleep_comes_back_within_three_seconds_of_waking(
    product: RunningProduct, open_page: OpenPage, watch: Watch
) -> None:
    watch.expect("ERR_INTERNET_DISCONNECTED")
    page = open_page()
    # A line that died while nobody looked: it says nothing any more and does not even close.
    page.add_init_script(
        """
        window.__lines = [];
        window.WebSocket = class extends WebSocket {
          constructor(...args) { super(...args); window.__lines.push(this); }
          set onmessage(hear) { super.onmessage = (event) => { if (!this.isDead) hear(event); }; }
          send(data) { if (!this.isDead) super.send(data); }
        };
        """
    )
    chat = ChatPage(page, product).open()
    page.evaluate("window.__lines.at(-1).isDead = true")
    page.evaluate("document.dispatchEvent(new Event('resume'))")
    page.wait_for_function("() => window.__lines.length === 2", timeout=3_000)
    chat.send("Are you there again?")
    expect(chat.own).to_have_count(1)


def test_banner_waits_two_seconds_before_it_says_that_the_line_is_away(
    product: RunningProduct, open_page: OpenPage, watch: Watch
) -> None:
    watch.expect("ERR_INTERNET_DISCONNECTED")
    chat = ChatPage(open_page(), product).open()
    page = chat.page
    page.clock.install()
    page.context.set_offline(True)
    page.evaluate("window.dispatchEvent(new Event('online'))")  # a short probe finds out
    page.clock.run_for(1_300)
    banner = page.get_by_text("Reconnecting", exact=False)
    page.clock.run_for(1_500)
    expect(banner).to_have_count(0)
    page.clock.run_for(1_500)
    expect(banner).to_be_visible()
    chat.button("Try now").wait_for()
    page.context.set_offline(False)
    page.clock.resume()
    page.clock.run_for(35_000)
    expect(banner).to_have_count(0)


def test_two_tabs_show_the_same_and_neither_drafts_nor_sends_double(
    product: RunningProduct, open_page: OpenPage
) -> None:
    first = ChatPage(open_page(), product).open()
    second = ChatPage(first.page.context.new_page(), product).open()
    first.box.fill("I begin to write")
    expect(second.box).to_have_value("I begin to write")
    first.send("This is said once.")
    for tab in (first, second):
        expect(tab.own).to_have_count(1)
        expect(tab.own.locator(".text")).to_have_text("This is said once.")
        expect(tab.pending).to_have_count(0)
        expect(tab.box).to_have_value("")
    expect(second.reply.locator(".text")).not_to_be_empty()
    second.stop()
    first.until_ended()
    assert first.source_of(first.reply) == second.source_of(second.reply)
    stored = Message.objects.filter(text="This is said once.", kind=MessageKind.VISITOR)
    assert product.rows(stored.count) == 1


def test_message_that_waits_in_one_tab_is_sent_once_though_both_try(
    product: RunningProduct, open_page: OpenPage, watch: Watch
) -> None:
    watch.expect("ERR_INTERNET_DISCONNECTED")
    text = "Both tabs hold this."
    first = ChatPage(open_page(), product).open()
    first.lose_line()
    first.send(text)
    expect(first.pending.get_by_text("Not sent")).to_be_visible()
    first.page.goto("about:blank")
    first.page.context.set_offline(False)
    tabs = [first, ChatPage(first.page.context.new_page(), product)]
    for tab in tabs:
        tab.page.goto(tab.address)
        expect(tab.pending.get_by_text("Not sent")).to_be_visible()
    for tab in tabs:
        tab.page.evaluate("document.querySelectorAll('.row.pending .link')[0]?.click()")
    for tab in tabs:
        expect(tab.own).to_have_count(1)
        expect(tab.pending).to_have_count(0)
    tabs[0].stop()
    assert product.rows(lambda: Message.objects.filter(text=text).count()) == 1
