"""What anybody can use: no serious finding of axe, no sideways scrolling on small screens or at twice the size."""

from collections.abc import Callable
from uuid import UUID

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from chat.models import Conversation, PolicyVersion, TurnRubric, TurnScore
from tests.e2e.chat_page import ChatPage
from tests.e2e.conftest import DESK, PHONE, OpenPage
from tests.e2e.staff_pages import StaffPages
from tests.factories import make_message, make_reply
from tests.flows.guest import Guest
from tests.flows.product import RunningProduct

pytestmark = pytest.mark.browser
NARROW = {"width": 320, "height": 640}
TWICE = {"width": 640, "height": 450}  # a window of 1280 by 900 at 200 %
LONG_WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 3
Shot = Callable[[Page, str], None]


def fill(conversation_id: UUID) -> None:
    """Two turns: an ordinary one with a grade, and one with a word that fits no line."""
    conversation = Conversation.objects.get(pk=conversation_id)
    said = make_message(conversation, "I did not sleep well. Can we talk about my week?")
    reply = make_reply(said, "That sounds tiring. What was the hardest part of it?")
    versions = {kind: PolicyVersion.objects.get(kind=kind, state="live") for kind in ("generator", "judge")}
    dimensions = ("cognitive", "affective", "proactive")
    rubric = TurnRubric.objects.create(
        message=said,
        generator=versions["generator"],
        weights={"cognitive": 0.5, "affective": 0.3, "proactive": 0.2},
        criteria=[
            {"id": f"{one}-{number}", "text": f"Says back what happened, {one}.", "dimension": one, "polarity": "want"}
            for one in dimensions
            for number in range(2)
        ],
        context_sha256="0" * 64,
    )
    judgements = [
        {"criterion_id": f"{one}-{number}", "level": 0.5, "none_reason": None, "evidence": [0, 11]}
        for one in dimensions
        for number in range(2)
    ]
    TurnScore.objects.create(reply=reply, rubric=rubric, judge=versions["judge"], judgements=judgements, reward=0.5)
    make_reply(make_message(conversation, LONG_WORD), f"https://example.org/{LONG_WORD}")


@pytest.fixture
def guest(product: RunningProduct) -> Guest:
    """A visitor with a small conversation."""
    guest = Guest(product)
    product.rows(lambda: fill(guest.conversation))
    return guest


def visitors_page(page: Page, product: RunningProduct, guest: Guest) -> ChatPage:
    page.add_init_script(f"localStorage.setItem('rapport:demo:token', {guest.token!r})")
    chat = ChatPage(page, product)
    page.goto(chat.address)
    expect(chat.own).to_have_count(2)
    return chat


def serious_findings(page: Page) -> list[str]:
    """What axe calls serious or critical, as short lines; what still fades in is waited for."""
    page.evaluate("Promise.allSettled(document.getAnimations().map((animation) => animation.finished))")
    found = Axe().run(page).response["violations"]
    return [
        f"{one['impact']} {one['id']}: {node['html'][:120]}"
        for one in found
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_the_visitors_page(
    product: RunningProduct, open_page: OpenPage, guest: Guest, scheme: str, shot: Shot
) -> None:
    page = open_page(color_scheme=scheme)
    chat = visitors_page(page, product, guest)
    assert serious_findings(page) == []
    shot(page, f"{scheme}-chat")
    chat.send("I want to kill myself tonight.")
    expect(chat.card).to_be_visible()
    assert serious_findings(page) == []
    shot(page, f"{scheme}-card")
    page.get_by_role("button", name="SOS").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert serious_findings(page) == []
    shot(page, f"{scheme}-help")
    page.keyboard.press("Escape")
    chat.button("Chat settings and your data").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert serious_findings(page) == []
    shot(page, f"{scheme}-settings")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_the_staffs_pages(
    product: RunningProduct, open_page: OpenPage, guest: Guest, scheme: str, shot: Shot
) -> None:
    page = open_page(viewport=DESK, color_scheme=scheme)
    page.goto(f"{product.addresses[0]}/staff/login/")
    assert serious_findings(page) == []
    shot(page, f"{scheme}-login")
    staff = StaffPages(page, product).log_in("demo-lead")
    expect(page.locator(".inbox-row").first).to_be_visible()
    assert serious_findings(page) == []
    shot(page, f"{scheme}-inbox")
    staff.open_transcript(guest.conversation)
    expect(staff.turn(2)).to_be_visible()
    assert serious_findings(page) == []
    shot(page, f"{scheme}-transcript")


def scrolls_sideways(page: Page) -> bool:
    sideways: bool = page.evaluate(
        """() => [document.scrollingElement, ...document.querySelectorAll('dialog[open], .log, main')]
          .some((part) => part.scrollWidth > part.clientWidth + 1)"""
    )
    return sideways


@pytest.fixture(params=["narrow", "twice"])
def small(request: pytest.FixtureRequest, open_page: OpenPage) -> Page:
    """A page 320 pixels wide, and one at twice the size."""
    return open_page(viewport=NARROW) if request.param == "narrow" else open_page(viewport=TWICE, device_scale_factor=2)


def test_visitors_page_never_scrolls_sideways(product: RunningProduct, small: Page, guest: Guest, shot: Shot) -> None:
    chat = visitors_page(small, product, guest)
    assert not scrolls_sideways(small)
    shot(small, "chat")
    chat.send("I want to kill myself tonight.")
    expect(chat.card).to_be_visible()
    assert not scrolls_sideways(small)
    shot(small, "card")
    for name in ("SOS", "Chat settings and your data"):
        small.get_by_role("button", name=name).click()
        expect(small.get_by_role("dialog")).to_be_visible()
        assert not scrolls_sideways(small)
        shot(small, name.split()[0])
        small.keyboard.press("Escape")
    expect(chat.box).to_be_in_viewport()


def test_staffs_pages_never_scroll_sideways(product: RunningProduct, small: Page, guest: Guest, shot: Shot) -> None:
    small.goto(f"{product.addresses[0]}/staff/login/")
    assert not scrolls_sideways(small)
    staff = StaffPages(small, product).log_in("demo-lead")
    expect(small.locator(".inbox-row").first).to_be_visible()
    assert not scrolls_sideways(small)
    shot(small, "inbox")
    staff.open_transcript(guest.conversation)
    expect(staff.turn(2)).to_be_visible()
    assert not scrolls_sideways(small)
    shot(small, "transcript")


def test_keyboard_alone_reaches_help_and_sends(product: RunningProduct, open_page: OpenPage) -> None:
    chat = ChatPage(open_page(viewport=PHONE), product).open()
    page = chat.page
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="SOS")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Get help now")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="SOS")).to_be_focused()
    chat.box.focus()
    page.keyboard.type("What is a good name for a cat?")
    page.keyboard.press("Enter")
    expect(chat.own).to_have_count(1)
