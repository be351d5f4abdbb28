"""The visitor's page as a person uses it: what to click, where to look. Selectors live here and nowhere else."""

from __future__ import annotations

import contextlib
import re
from uuid import UUID

from playwright.sync_api import Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.flows.guest import STORIES
from tests.flows.product import RunningProduct, wait_for

RUNNING = {"queued", "running"}
ENDED = re.compile(r"^(complete|stopped|failed|interrupted|blocked)$")
REPLY_MS = 120_000  # for a whole reply on a machine that has other things to do
NOTE_WHAT_IS_SEEN = """
selectors => {
  window.__seen = [];
  new MutationObserver(() => {
    for (const [name, selector] of Object.entries(selectors)) {
      if (!window.__seen.includes(name) && document.querySelector(selector)) window.__seen.push(name);
    }
  }).observe(document.body, { childList: true, subtree: true, characterData: true, attributes: true });
}
"""


class ChatPage:
    """The chat of a site in one browser page."""

    def __init__(self, page: Page, product: RunningProduct, *, site: str = "demo", web: int = 0) -> None:
        self.page = page
        self.product = product
        self.address = f"{product.addresses[web]}/chat/{site}/"

    def open(self) -> ChatPage:
        self.page.goto(self.address)
        expect(self.page.get_by_role("checkbox").first).to_be_enabled()  # the greeting was answered
        return self

    # --- where to look ------------------------------------------------------------------------------------------

    @property
    def box(self) -> Locator:
        return self.page.get_by_role("textbox", name="Write a message")

    @property
    def own(self) -> Locator:
        return self.page.locator("article.row.visitor:not(.pending)")

    @property
    def pending(self) -> Locator:
        return self.page.locator("article.row.pending")

    @property
    def replies(self) -> Locator:
        return self.page.locator("article.row.reply")

    @property
    def reply(self) -> Locator:
        """The newest one."""
        return self.replies.last

    @property
    def card(self) -> Locator:
        return self.page.get_by_role("region", name="Support lines")

    @staticmethod
    def id_of(row: Locator) -> UUID:
        """The message that a row shows."""
        return UUID(row.get_attribute("data-message"))

    def button(self, name: str, *, inside: Locator | None = None) -> Locator:
        return (inside or self.page).get_by_role("button", name=name, exact=True)

    @staticmethod
    def text_of(row: Locator) -> str:
        """A row's own text to the letter, without author, notes and buttons."""
        return row.locator(".text").text_content() or ""

    def source_of(self, row: Locator) -> str:
        """An answer as it was written, by the page's own Copy: laid out, it has lost the marks of its layout."""
        self.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page.bring_to_front()
        self.button("Copy answer", inside=row).click()
        expect(self.said).to_contain_text("Copied.")
        return str(self.page.evaluate("navigator.clipboard.readText()"))

    @property
    def said(self) -> Locator:
        """The one region whose changes a screen reader speaks."""
        return self.page.get_by_role("status")

    # --- what to do ---------------------------------------------------------------------------------------------

    def send(self, text: str) -> None:
        self.box.fill(text)
        self.box.press("Enter")

    def begin_story(self, *, characters: int = 80) -> Locator:
        """Ask the storyteller until a reply runs and shows so many characters; returns its row."""
        ended = []
        for story in STORIES:
            before = self.replies.count()
            self.send(story)
            row = self.replies.nth(before)
            self.page.wait_for_function(
                """([selector, at, characters]) => {
                  const row = document.querySelectorAll(selector)[at];
                  return row && ((row.querySelector('.text')?.textContent.length ?? 0) >= characters
                    || !['queued', 'running'].includes(row.dataset.status));
                }""",
                arg=["article.row.reply", before, characters],
                timeout=REPLY_MS,
            )
            status = row.get_attribute("data-status")
            if status == "running":
                return row
            ended.append(f"{status} after {len(self.text_of(row))} characters")
        raise AssertionError(f"every story ended before it was seen to run: {', '.join(ended)}")

    def stopped_story(self, *, characters: int = 40) -> Locator:
        """The row of a reply that the visitor stopped after so many characters: of the first story that let itself."""
        for _ in STORIES:
            row = self.begin_story(characters=characters)
            self.stop()
            if row.get_attribute("data-status") == "stopped":
                return row
        raise AssertionError("every story ended before it could be stopped")

    def lose_line(self) -> None:
        """Take the network away, and wait until the page has noticed.

        The browser only holds back what an open socket sends: a message sent before that would still go out later.
        """
        self.page.context.set_offline(True)
        self.page.evaluate("window.dispatchEvent(new Event('online'))")  # a short probe finds out
        expect(self.page.get_by_text("Reconnecting", exact=False)).to_be_visible()

    def taste(self, text: str) -> None:
        """Send a message and stop the reply once it has begun to speak."""
        before = self.replies.count()
        self.send(text)
        expect(self.replies.nth(before).locator(".text")).not_to_be_empty(timeout=REPLY_MS)
        self.stop()

    def stop(self) -> None:
        """Press Stop for as long as the newest reply runs; it may end by itself before the click lands."""
        while self.reply.get_attribute("data-status") in RUNNING:
            with contextlib.suppress(PlaywrightTimeout):
                self.button("Stop").click(timeout=1_000)
                break
        self.until_ended()

    def another_answer(self, *, button: str, than: str) -> int:
        """Ask for a sibling until one shows other words than these; returns how many there are then.

        The safety check may end one before its first word, and offers to try again.
        """
        for siblings in range(2, 6):
            self.button(button).click()
            expect(self.reply).not_to_have_attribute("data-status", "blocked")
            wait_for(
                lambda: (
                    self.text_of(self.reply) not in {"", than} or self.reply.get_attribute("data-status") == "blocked"
                ),
                timeout_s=60,
                what="another answer begins",
            )
            if self.reply.get_attribute("data-status") != "blocked":
                return siblings
            button = "Try again"
        raise AssertionError("the safety check ended four answers, one after another")

    def note_what_is_seen(self, **selectors: str) -> None:
        """From now on `has_seen(name)` says whether something that matches was ever on the page, however shortly."""
        self.page.evaluate(NOTE_WHAT_IS_SEEN, selectors)

    def has_seen(self, name: str) -> bool:
        return bool(self.page.evaluate("name => window.__seen.includes(name)", name))

    def until_ended(self) -> None:
        expect(self.reply).to_have_attribute("data-status", ENDED, timeout=REPLY_MS)
