"""How the panel looks and reads to everybody: right to left, the site's own look, forced colours, less motion, zoom."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from chat.models import WidgetSite
from tests.e2e.chat_page import ChatPage
from tests.e2e.conftest import PHONE, OpenPage
from tests.e2e.test_accessible import scrolls_sideways, serious_findings
from tests.flows.product import RunningProduct

pytestmark = [pytest.mark.browser, pytest.mark.engine]
Shot = Callable[[Page, str], None]
SIZES = [PHONE, {"width": 320, "height": 568}, {"width": 1280, "height": 900}]


def make_looking(product: RunningProduct, slug: str, **changed: object) -> str:
    product.make_site(slug)
    product.rows(lambda: WidgetSite.objects.filter(slug=slug).update(**changed))
    return slug


def test_arabic_panel_reads_from_the_right_on_every_view(
    product: RunningProduct, open_page: OpenPage, shot: Shot
) -> None:
    slug = make_looking(product, "arabic", locales=["ar", "en"], country="")
    page = open_page(viewport={"width": 320, "height": 640})
    chat = ChatPage(page, product, site=slug)
    page.add_init_script("Object.defineProperty(navigator, 'languages', { get: () => ['ar-EG'] })")
    page.goto(chat.address)
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    expect(page.locator("html")).to_have_attribute("lang", "ar-EG")
    box = page.get_by_role("textbox", name="اكتب رسالة")
    expect(page.get_by_role("checkbox")).to_be_enabled()
    shot(page, "intro")
    assert serious_findings(page) == []
    assert not scrolls_sideways(page)
    send, words = page.locator(".send-button").bounding_box(), box.bounding_box()
    assert send is not None
    assert words is not None
    assert send["x"] < words["x"]  # the box begins at the right, Send stands at its end
    box.fill("I want to kill myself tonight.")
    box.press("Enter")
    card = page.get_by_role("region", name="خطوط الدعم")
    expect(card).to_be_visible()
    shot(page, "card")
    assert serious_findings(page) == []
    assert not scrolls_sideways(page)
    page.get_by_role("button", name="إعدادات المحادثة وبياناتك").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    shot(page, "settings")
    assert serious_findings(page) == []
    page.get_by_role("button", name="SOS").click()
    expect(page.get_by_role("dialog", name="احصل على المساعدة الآن")).to_be_visible()
    shot(page, "help")
    assert serious_findings(page) == []
    assert not scrolls_sideways(page)


def color_of(page: Page, selector: str, name: str) -> str:
    return str(page.locator(selector).first.evaluate(f"node => getComputedStyle(node).{name}"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sites_own_look_is_shown_and_can_be_read(
    product: RunningProduct, open_page: OpenPage, scheme: str, shot: Shot
) -> None:
    slug = make_looking(product, f"look-{scheme}", theme={"accent": "#7a1f5c", "radius": 4, "scheme": scheme})
    chat = ChatPage(open_page(), product, site=slug).open()
    page = chat.page
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--radius')") == "4px"
    accent = color_of(page, ".send-button", "backgroundColor")
    assert (accent == "rgb(122, 31, 92)") == (scheme == "light")  # in the dark it is made lighter
    chat.taste("Which tea helps one to sleep?")
    shot(page, "chat")
    assert serious_findings(page) == []


def test_look_that_cannot_be_read_is_left_out(product: RunningProduct, open_page: OpenPage) -> None:
    slug = make_looking(product, "faint", theme={"accent": "#ffd400"})
    chat = ChatPage(open_page(), product, site=slug).open()
    assert color_of(chat.page, ".send-button", "backgroundColor") == "rgb(23, 105, 106)"


def test_forced_colours_keep_every_control_and_state_visible(
    product: RunningProduct, open_page: OpenPage, shot: Shot
) -> None:
    chat = ChatPage(open_page(forced_colors="active"), product).open()
    page = chat.page
    shot(page, "intro")
    chat.taste("Which birds stay in winter?")
    chat.button("Good answer").click()
    for control in (".send-button", ".help-button", ".actions .icon-button", ".row.visitor .text", ".composer-box"):
        assert color_of(page, control, "borderTopStyle") != "none", control
    pressed = color_of(page, "[aria-pressed=true]", "backgroundColor")
    assert pressed != color_of(page, "[aria-pressed=false]", "backgroundColor")
    shot(page, "rated")


def test_reduced_motion_leaves_nothing_moving(product: RunningProduct, open_page: OpenPage) -> None:
    chat = ChatPage(open_page(reduced_motion="reduce"), product).open()
    chat.send("Which birds come back in spring?")
    lasting = chat.page.evaluate(
        "document.getAnimations().filter((one) => one.effect.getComputedTiming().endTime > 50).length"
    )
    assert lasting == 0
    chat.stop()


def place_of_help(page: Page) -> tuple[float, float]:
    place = page.get_by_role("button", name="SOS").bounding_box()
    assert place is not None
    return place["x"], place["y"]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size["width"]))
def test_help_stands_in_the_same_place_on_every_view(
    product: RunningProduct, open_page: OpenPage, size: dict[str, int], shot: Shot
) -> None:
    chat = ChatPage(open_page(viewport=size), product).open()
    page = chat.page
    place = place_of_help(page)
    shot(page, "intro")
    chat.taste("Which flowers like the shade?")
    assert place_of_help(page) == place
    shot(page, "chat")
    chat.button("Chat settings and your data").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert place_of_help(page) == place
    shot(page, "settings")
    page.get_by_role("button", name="SOS").click()
    expect(page.get_by_role("dialog", name="Get help now")).to_be_visible()
    shot(page, "help")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="SOS")).to_be_focused()
    chat.button("End this chat").click()
    expect(page.get_by_text("This chat has ended.")).to_be_visible()
    expect(page.get_by_role("radio").first).to_be_visible()
    assert place_of_help(page) == place
    shot(page, "ended")
    assert serious_findings(page) == []


def test_settings_take_the_focus_and_give_it_back(product: RunningProduct, open_page: OpenPage) -> None:
    chat = ChatPage(open_page(), product).open()
    chat.button("Chat settings and your data").focus()
    chat.page.keyboard.press("Enter")
    expect(chat.button("Close")).to_be_focused()
    chat.page.keyboard.press("Escape")
    expect(chat.page.get_by_role("dialog")).to_have_count(0)
    expect(chat.button("Chat settings and your data")).to_be_focused()


def test_phones_keyboard_leaves_head_and_box_in_sight(product: RunningProduct, open_page: OpenPage) -> None:
    chat = ChatPage(open_page(), product).open()
    chat.box.focus()
    chat.page.set_viewport_size({"width": 390, "height": 844 - 336})  # what a keyboard leaves
    expect(chat.box).to_be_in_viewport(ratio=1)
    expect(chat.button("Send")).to_be_in_viewport(ratio=1)
    expect(chat.page.get_by_role("button", name="SOS")).to_be_in_viewport(ratio=1)
