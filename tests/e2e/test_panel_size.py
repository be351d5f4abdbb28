"""What a visitor's browser really fetches before the first finished answer: at most 25 kB, in a widget too."""

import pytest
from playwright.sync_api import Frame, Page, expect

from tests.e2e.chat_page import ChatPage
from tests.e2e.conftest import DESK, OpenPage
from tests.e2e.host_pages import HostPage, host_server, snippet
from tests.e2e.watch import Watch
from tests.flows.product import RunningProduct

pytestmark = [pytest.mark.browser, pytest.mark.engine]
MOST_BYTES = 25 * 1024

FETCHED = """() => Object.fromEntries(performance.getEntriesByType('resource')
  .filter(({ name }) => name.includes('/static/front/'))
  .map(({ name, encodedBodySize }) => [name.split('/').at(-1), encodedBodySize]))"""


def fetched(page: Page | Frame) -> dict[str, int]:
    files: dict[str, int] = page.evaluate(FETCHED)
    return files


def test_page_fetches_at_most_25_kb_before_its_first_finished_answer_and_the_rest_after_it(
    product: RunningProduct, open_page: OpenPage, watch: Watch
) -> None:
    watch.expect("ERR_INTERNET_DISCONNECTED")
    chat = ChatPage(open_page(), product).open()
    page = chat.page
    page.get_by_role("button", name="SOS").click()
    expect(page.get_by_role("dialog").get_by_role("listitem").first).to_be_visible()
    page.keyboard.press("Escape")
    chat.send("Which bird sings first in the morning?")
    expect(chat.reply.locator(".text")).not_to_be_empty()
    before = fetched(page)
    assert set(before) == {"chat.js", "chat.css"} or chat.reply.get_attribute("data-status") != "running", before
    assert sum(size for name, size in before.items() if name in {"chat.js", "chat.css"}) <= MOST_BYTES, before
    chat.stop()
    expect(chat.reply.locator(".formatted")).to_be_visible()
    page.wait_for_function(
        "() => performance.getEntriesByType('resource').some((one) => one.name.includes('/sheets-'))"
    )
    page.context.set_offline(True)  # what came later is there without a line
    chat.button("Chat settings and your data").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.context.set_offline(False)


def test_widget_fetches_no_more_than_the_page_before_its_first_finished_answer(
    product: RunningProduct, open_page: OpenPage
) -> None:
    with host_server() as hosts:
        site = product.make_site("light", origins=[hosts.origin()])
        hosts.put("/", head=snippet(product, site))
        host = HostPage(open_page(viewport=DESK)).go(hosts.origin() + "/").open().until_greeted()
        host.box.fill("Which bird sings first in the morning?")
        host.box.press("Enter")
        expect(host.replies.locator(".text")).not_to_be_empty()
        panel = next(frame for frame in host.page.frames if frame.parent_frame)
        before = fetched(panel)
        assert set(before) == {"chat.js", "chat.css"} or host.replies.get_attribute("data-status") != "running", before
        assert sum(size for name, size in before.items() if name in {"chat.js", "chat.css"}) <= MOST_BYTES, before
