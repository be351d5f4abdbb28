"""Writing and reading on the panel: the composer, the drafts, the log that follows, what keys do."""

from uuid import UUID

import pytest
from playwright.sync_api import Page, expect

from chat.models import Conversation, WidgetSite
from tests.e2e.chat_page import ChatPage
from tests.e2e.conftest import OpenPage
from tests.factories import make_message, make_reply
from tests.flows.guest import Guest
from tests.flows.product import RunningProduct

pytestmark = [pytest.mark.browser, pytest.mark.engine]


@pytest.fixture
def chat(product: RunningProduct, open_page: OpenPage) -> ChatPage:
    """The demo site's chat on a phone."""
    return ChatPage(open_page(), product).open()


def come_back(chat: ChatPage, guest: Guest) -> ChatPage:
    """The page of a visitor who was here before."""
    chat.page.add_init_script(f"localStorage.setItem('rapport:demo:token', {guest.token!r})")
    chat.page.goto(chat.address)
    return chat


def fill_with_turns(conversation_id: UUID, turns: int) -> None:
    conversation = Conversation.objects.get(pk=conversation_id)
    for number in range(turns):
        make_reply(make_message(conversation, f"Question {number}"), f"Answer {number}. " * 30)


def test_beginning_that_is_pressed_is_sent_as_it_stands(chat: ChatPage) -> None:
    chat.button("Something is worrying me").focus()
    chat.page.keyboard.press("Enter")
    expect(chat.own.locator(".text")).to_have_text("Something is worrying me")
    expect(chat.box).to_be_focused()  # the buttons went, the focus did not
    chat.stop()
    expect(chat.button("Something is worrying me")).to_have_count(0)


def test_sites_own_greeting_and_beginnings_stand_on_its_page(product: RunningProduct, open_page: OpenPage) -> None:
    texts = {"greeting": "Ahoy, <b>sailor</b>.", "suggestions": ["I lost my anchor"]}
    slug = product.make_site("harbour")
    product.rows(lambda: WidgetSite.objects.filter(slug=slug).update(texts=texts))
    chat = ChatPage(open_page(), product, site=slug).open()
    expect(chat.page.get_by_text("Ahoy, <b>sailor</b>.")).to_be_visible()
    expect(chat.button("I lost my anchor")).to_be_visible()


def test_draft_is_kept_for_its_conversation(chat: ChatPage) -> None:
    chat.box.fill("Half a thought")
    chat.page.reload()
    expect(chat.box).to_have_value("Half a thought")
    chat.button("Chat settings and your data").click()
    chat.button("End this chat").click()
    chat.button("Start a new chat").click()
    expect(chat.box).to_have_value("")  # another conversation
    chat.box.fill("Another thought")
    chat.page.reload()
    expect(chat.box).to_have_value("Another thought")


def test_enter_inside_an_input_method_chooses_a_word_and_sends_nothing(chat: ChatPage) -> None:
    line = chat.page.context.new_cdp_session(chat.page)
    chat.box.focus()
    line.send("Input.imeSetComposition", {"text": "こんにちは", "selectionStart": 5, "selectionEnd": 5})
    chat.page.evaluate(
        """() => document.activeElement.dispatchEvent(
          new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true, cancelable: true }))"""
    )
    line.send("Input.insertText", {"text": "こんにちは"})
    expect(chat.box).to_have_value("こんにちは")
    expect(chat.own).to_have_count(0)
    expect(chat.pending).to_have_count(0)


def test_box_grows_with_its_text_and_counts_near_the_limit(chat: ChatPage) -> None:
    def height() -> float:
        return float(chat.box.evaluate("box => box.getBoundingClientRect().height"))

    low = height()
    chat.box.press("a")
    for _ in range(4):
        chat.box.press("Shift+Enter")
    assert height() > low + 50
    expect(chat.own).to_have_count(0)
    chat.box.fill("x" * 8_000)
    assert height() <= 0.35 * 844
    expect(chat.page.get_by_text("0 characters left")).to_be_visible()
    chat.box.fill("x" * 8_003)
    expect(chat.page.get_by_text("3 characters too many")).to_be_visible()
    expect(chat.button("Send")).to_be_disabled()
    chat.box.fill("short")
    expect(chat.page.get_by_text("characters left")).to_have_count(0)
    assert height() == low


def test_escape_stops_a_running_answer_but_not_from_within_the_help(
    product: RunningProduct, open_page: OpenPage, stories: str
) -> None:
    chat = ChatPage(open_page(), product, site=stories).open()
    for _ in range(3):
        reply = chat.begin_story(characters=40)
        chat.page.get_by_role("button", name="SOS").click()
        expect(chat.page.get_by_role("dialog")).to_be_visible()
        chat.page.keyboard.press("Escape")
        expect(chat.page.get_by_role("dialog")).to_have_count(0)
        was_running = reply.get_attribute("data-status") == "running"
        chat.page.keyboard.press("Escape")
        chat.until_ended()
        if was_running and reply.get_attribute("data-status") == "stopped":
            return
    raise AssertionError("no story could be stopped by Escape")


def from_end(page: Page) -> float:
    return float(page.locator(".log").evaluate("log => log.scrollHeight - log.scrollTop - log.clientHeight"))


def test_log_follows_at_its_end_and_leaves_a_reader_further_up_in_peace(
    product: RunningProduct, chat: ChatPage
) -> None:
    guest = Guest(product)
    product.rows(lambda: fill_with_turns(guest.conversation, 6))
    page = come_back(chat, guest).page
    expect(chat.replies).to_have_count(6)
    page.wait_for_function("() => document.querySelectorAll('.formatted').length === 6")
    assert from_end(page) < 2
    page.locator(".log").evaluate("log => { log.scrollTop -= 40; }")
    chat.send("Which birds sing at night?")
    expect(chat.own).to_have_count(7)
    expect(chat.reply.locator(".text")).not_to_be_empty()
    chat.stop()
    assert from_end(page) <= 64

    page.locator(".log").evaluate("log => { log.scrollTop = 100; }")
    page.wait_for_timeout(100)
    conversation = product.rows(lambda: Conversation.objects.get(pk=guest.conversation))
    with guest.page() as other:  # the same visitor writes elsewhere
        other.say("And which by day?")
        expect(page.get_by_role("button", name="New messages")).to_be_visible()
        assert page.locator(".log").evaluate("log => log.scrollTop") == 100
        page.get_by_role("button", name="New messages").click()
        expect(page.get_by_role("button", name="New messages")).to_have_count(0)
        assert from_end(page) < 2
    assert conversation.pk == guest.conversation


def test_copy_takes_the_whole_answer_as_it_was_written_and_says_so(product: RunningProduct, chat: ChatPage) -> None:
    guest = Guest(product)
    written = "Two things:\n\n1. **rest**\n2. [read](https://example.org)"
    product.rows(
        lambda: make_reply(make_message(Conversation.objects.get(pk=guest.conversation), "What now?"), written)
    )
    come_back(chat, guest)
    expect(chat.reply.locator("ol li")).to_have_count(2)
    expect(chat.reply.get_by_role("link")).to_have_attribute("rel", "noopener noreferrer nofollow")
    assert chat.source_of(chat.reply) == written


def test_answer_that_ends_is_laid_out_where_it_stood(
    product: RunningProduct, open_page: OpenPage, stories: str
) -> None:
    chat = ChatPage(open_page(), product, site=stories).open()
    chat.page.evaluate(
        """() => {
          window.__heights = [];
          const look = () => {
            const text = document.querySelector('article.row.reply .text');
            if (text) window.__heights.push([text.matches('.formatted'), text.getBoundingClientRect().height]);
            requestAnimationFrame(look);
          };
          look();
        }"""
    )
    chat.stopped_story(characters=200)
    expect(chat.reply.locator(".formatted")).to_be_visible()
    chat.page.wait_for_timeout(100)
    heights = chat.page.evaluate("window.__heights")
    last_plain = next(height for is_laid_out, height in reversed(heights) if not is_laid_out)
    laid_out = next(height for is_laid_out, height in heights if is_laid_out)
    assert abs(laid_out - last_plain) <= 3 * 1.6 * 16, (last_plain, laid_out)
