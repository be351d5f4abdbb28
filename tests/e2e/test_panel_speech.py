"""What screen readers are told of an answer: two announcements at most, or each sentence by choice (A11)."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.chat_page import ChatPage
from tests.e2e.conftest import OpenPage
from tests.flows.product import RunningProduct

pytestmark = [pytest.mark.browser, pytest.mark.engine]
NUMBER_OF_AN_ITEM = re.compile(r"^\d+[.)] ")
LONG = 800  # characters: some 200 tokens

# Everything that a live region of the page gains, as a screen reader would be told.
NOTE_ANNOUNCEMENTS = """() => {
  window.__said = [];
  const isLive = (node) => node.closest?.(
    '[role=status], [role=alert], [aria-live=polite], [aria-live=assertive], [role=log]:not([aria-live=off])');
  new MutationObserver((changes) => {
    for (const { target, type, addedNodes } of changes) {
      const live = isLive(target instanceof Element ? target : target.parentElement);
      if (!live) continue;
      if (type === 'characterData') window.__said.push(target.data);
      for (const node of addedNodes) window.__said.push(node.textContent);
    }
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""


def said(page: Page) -> list[str]:
    found: list[str] = page.evaluate("window.__said")
    return found


def said_of_the_last(page: Page) -> list[str]:
    """What was said since the newest answer began; a story that ended too early was read out too."""
    found = said(page)
    return found[len(found) - found[::-1].index("The AI is answering.") :]


def test_answer_of_200_tokens_is_announced_twice_and_the_log_is_silent(
    product: RunningProduct, open_page: OpenPage, stories: str
) -> None:
    chat = ChatPage(open_page(), product, site=stories).open()
    expect(chat.page.get_by_role("log")).to_have_attribute("aria-live", "off")
    expect(chat.said).to_have_count(1)
    for _ in range(3):  # the small model may make a short end of a story
        chat.page.evaluate(NOTE_ANNOUNCEMENTS)
        before = chat.page.evaluate("window.__said.length")
        reply = chat.begin_story(characters=LONG // 2)
        while reply.get_attribute("data-status") == "running" and len(chat.text_of(reply)) < LONG:
            chat.page.wait_for_timeout(100)
        chat.stop()
        expect(chat.said).to_contain_text(["The AI is answering."])
        chat.page.wait_for_timeout(300)
        heard = said(chat.page)[before:]
        stories_told = sum(text == "The AI is answering." for text in heard)
        assert len(heard) <= 2 * stories_told, heard
        if len(chat.text_of(reply)) >= LONG:
            return
    raise AssertionError("no story was long enough")


def test_sentence_mode_reads_each_sentence_once_while_the_answer_streams(
    product: RunningProduct, open_page: OpenPage, stories: str
) -> None:
    chat = ChatPage(open_page(), product, site=stories).open()
    chat.button("Chat settings and your data").click()
    chat.page.get_by_label("With a screen reader").check()
    chat.page.keyboard.press("Escape")
    chat.page.evaluate(NOTE_ANNOUNCEMENTS)
    reply = chat.begin_story(characters=400)
    while_running = said_of_the_last(chat.page)
    chat.stop()
    assert len(while_running) >= 2, while_running
    assert len(set(while_running)) == len(while_running)
    text = " ".join(chat.text_of(reply).split())
    heard = [" ".join(sentence.split()) for sentence in while_running]
    if reply.get_attribute("data-status") == "stopped":
        assert text.startswith(NUMBER_OF_AN_ITEM.sub("", heard[0])[:20])  # laid out, the number is no text
    chat.page.reload()
    chat.button("Chat settings and your data").click()
    expect(chat.page.get_by_label("With a screen reader")).to_be_checked()  # the choice is kept
