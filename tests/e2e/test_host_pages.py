"""The widget on other people's pages: whatever policy, style or router they have, and what it leaves alone there."""

import hashlib
import hmac
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from chat.models import Visitor, WidgetSite
from tests.e2e.conftest import DESK, PHONE, OpenPage
from tests.e2e.host_pages import HostPage, HostServer, host_server, snippet
from tests.e2e.test_accessible import serious_findings
from tests.e2e.watch import Watch
from tests.flows.product import RunningProduct, wait_for

pytestmark = pytest.mark.browser
FOREIGN_NAME = "shop.test"  # resolved to this machine by the browser's flags; not a secure context, as localhost is
SAME_SITE = "127.0.0.1"  # as the product's own: here this browser lets frames keep something, elsewhere it refuses
Shot = Callable[[Page, str], None]


@pytest.fixture(scope="module")
def hosts() -> Iterator[HostServer]:
    with host_server() as server:
        yield server


@pytest.fixture(scope="module")
def shop(product: RunningProduct, hosts: HostServer) -> str:
    """The slug of a site that the host pages under `localhost` and `shop.test` may show."""
    return product.make_site("shop", origins=[hosts.origin(), hosts.origin(FOREIGN_NAME)])


@pytest.fixture
def plain(product: RunningProduct, hosts: HostServer, shop: str) -> str:
    """The address of a page without any policy."""
    hosts.put("/", head=snippet(product, shop))
    hosts.put_style("")
    return hosts.origin() + "/"


def test_before_the_first_opening_nothing_is_kept_framed_or_connected(
    open_page: OpenPage, plain: str, product: RunningProduct
) -> None:
    page = open_page(viewport=DESK)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    sockets: list[str] = []
    page.on("websocket", lambda socket: sockets.append(socket.url))
    host = HostPage(page)
    host.gather("ready")
    host.go(plain)
    host.until_told("ready")
    page.wait_for_load_state("networkidle")
    assert [url for url in asked if url.startswith(product.addresses[0])] == [f"{product.addresses[0]}/widget.js"]
    assert (sockets, host.frames.count(), page.context.cookies()) == ([], 0, [])
    assert page.context.storage_state()["origins"] == []
    host.open().until_greeted()
    assert len(sockets) == 1
    assert page.context.cookies() == []
    assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]


@pytest.mark.parametrize("policy", ["strict", "isolated"])
def test_page_with_a_policy_shows_the_widget_and_reports_no_violation(
    open_page: OpenPage, product: RunningProduct, hosts: HostServer, shop: str, policy: str
) -> None:
    ours = product.addresses[0]
    headers = {
        "strict": {
            "Content-Security-Policy": f"default-src 'none'; style-src 'self'; img-src 'self'; script-src {ours}; "
            f"frame-src {ours}; require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'none'"
        },
        "isolated": {
            "Cross-Origin-Embedder-Policy": "require-corp",
            "Cross-Origin-Opener-Policy": "same-origin",
        },
    }[policy]
    more = "crossorigin" if policy == "isolated" else ""
    hosts.put("/guarded", head=snippet(product, shop, more=more), headers=headers)
    host = HostPage(open_page(viewport=DESK)).go(hosts.origin() + "/guarded").open().until_greeted()
    assert host.launcher.evaluate("(button) => getComputedStyle(button).borderRadius") == "50%"
    box = host.card.bounding_box()
    assert box is not None
    assert (box["width"], box["height"]) == (400, 680)


def test_page_that_is_no_secure_context_shows_the_widget(
    open_page: OpenPage, plain: str, hosts: HostServer, product: RunningProduct
) -> None:
    host = HostPage(open_page(viewport=DESK)).go(hosts.origin(FOREIGN_NAME) + "/")
    assert host.page.evaluate("isSecureContext") is False
    host.open().until_greeted()


def test_page_that_resets_every_style_and_covers_everything_keeps_the_launcher(
    open_page: OpenPage, plain: str, hosts: HostServer, shot: Shot
) -> None:
    hosts.put_style(
        "* { all: unset !important; display: block !important; z-index: 2147483647 !important }"
        "main { position: fixed !important; inset: 0 !important; background: beige !important }"
    )
    host = HostPage(open_page(viewport=DESK)).go(plain)
    box = host.launcher.bounding_box()
    assert box is not None
    assert (box["width"], box["height"]) == (56, 56)
    assert (box["x"], box["y"]) == (1280 - 76, 900 - 76)
    host.open()
    shot(host.page, "reset")


def test_two_widgets_live_beside_each_other(
    open_page: OpenPage, product: RunningProduct, hosts: HostServer, shop: str
) -> None:
    second = product.make_site("help-desk", origins=[hosts.origin()])
    head = snippet(product, shop, more='data-label="Shop"') + snippet(product, second, more='data-label="Help"')
    hosts.put("/two", head=head)
    page = open_page(viewport=DESK)
    one, other = HostPage(page, label="Shop"), HostPage(page, label="Help")
    one.go(hosts.origin() + "/two")
    expect(other.launcher).to_be_visible()
    one.open()
    assert "/chat/shop/" in str(one.frames.nth(0).get_attribute("src"))
    one.call("open", second)
    other.until_open()
    expect(one.card).to_be_hidden()
    assert one.frames.count() == 2
    one.call("close")
    expect(other.card).to_be_hidden()


def test_single_page_application_keeps_one_widget_and_its_conversation(
    open_page: OpenPage, product: RunningProduct, plain: str, shop: str
) -> None:
    host = HostPage(open_page(viewport=DESK)).go(plain).open().until_greeted()
    host.box.fill("half a sentence")
    page = host.page
    page.evaluate(
        """() => {
          history.pushState({}, "", "/elsewhere");
          const next = document.createElement("body");
          next.textContent = "another view";
          document.body.replaceWith(next);
        }"""
    )
    expect(host.box).to_have_value("half a sentence")
    script = f"{product.addresses[0]}/widget.js"
    page.evaluate(
        """([src, site]) => new Promise((done) => {
          const script = Object.assign(document.createElement("script"), { src, onload: done });
          script.dataset.site = site;
          document.body.append(script);
        })""",
        [script, shop],
    )
    expect(host.launcher).to_have_count(1)
    expect(host.frames).to_have_count(1)
    page.evaluate("document.documentElement.replaceChildren(document.createElement('body'))")
    expect(host.launcher).to_have_count(1)
    host.until_open()


def test_calls_from_before_the_script_came_are_made_up_for(
    open_page: OpenPage, product: RunningProduct, hosts: HostServer, shop: str
) -> None:
    hosts.put("/queue", head=snippet(product, shop))
    host = HostPage(open_page(viewport=DESK))
    host.gather("ready", "open")
    host.page.add_init_script("rapport('open')")
    host.page.goto(hosts.origin() + "/queue")
    host.until_open()
    assert [host.told("ready"), host.told("open")] == [[{"site": shop}], [{"site": shop}]]


@pytest.mark.parametrize(
    ("slug", "code", "sentence"),
    [
        ("closed-shop", "origin_not_allowed", "is not among the origins of the site closed-shop"),
        ("no-such-shop", "unknown_site", "No active site has the slug no-such-shop"),
    ],
)
def test_page_that_may_not_show_the_chat_reads_in_the_console_what_to_do(
    open_page: OpenPage,
    product: RunningProduct,
    hosts: HostServer,
    watch: Watch,
    shot: Shot,
    slug: str,
    code: str,
    sentence: str,
) -> None:
    product.make_site("closed-shop", origins=["https://elsewhere.example"])
    hosts.put("/refused", head=snippet(product, slug))
    for part in ("Rapport", "the server responded with a status"):
        watch.expect(part)
    host = HostPage(open_page(viewport=DESK))
    host.gather("error")
    host.go(hosts.origin() + "/refused").launcher.click()
    host.until_told("error")
    assert host.told("error") == [{"site": slug, "code": code}]
    assert any(f"Rapport {slug}: {code}" in fault and sentence in fault for fault in watch.faults)
    expect(host.panel.get_by_role("heading", name="The chat cannot be shown on this page")).to_be_visible()
    expect(host.panel.get_by_text("Emergency number")).to_be_visible()
    shot(host.page, code)
    host.page.keyboard.press("Escape")
    expect(host.card).to_be_hidden()
    expect(host.launcher).to_be_focused()


def test_chat_that_does_not_come_is_said_beside_the_launcher_and_tried_again(
    open_page: OpenPage, plain: str, watch: Watch, shot: Shot
) -> None:
    watch.expect("Rapport")
    watch.expect("net::ERR_FAILED")
    host = HostPage(open_page(viewport=DESK))
    host.gather("error")
    host.page.route("**/widget-panel.js*", lambda route: route.abort())
    host.go(plain).launcher.click()
    expect(host.page.get_by_role("alert")).to_contain_text("Please try again later. In danger?")
    assert [facts["code"] for facts in host.told("error")] == ["unreachable"]
    shot(host.page, "failed")
    host.page.unroute("**/widget-panel.js*")
    host.open()
    expect(host.page.get_by_role("alert")).to_be_hidden()


def signed(product: RunningProduct, slug: str, visitor_id: str) -> dict[str, str]:
    """What the host site's own server would hand to its page."""
    secret = product.rows(lambda: WidgetSite.objects.get(slug=slug).identity_secret)
    return {"id": visitor_id, "signature": hmac.new(secret.encode(), visitor_id.encode(), hashlib.sha256).hexdigest()}


def visitors(product: RunningProduct, slug: str) -> list[str]:
    """The site's visitors, by the host site's ids; "" is somebody nobody named."""
    rows = Visitor.objects.filter(site__slug=slug).order_by("created_at")
    found: list[str] = product.rows(lambda: list(rows.values_list("external_id", flat=True)))
    return found


def test_named_visitor_has_a_conversation_of_their_own_and_reset_forgets_it(
    open_page: OpenPage, product: RunningProduct, hosts: HostServer
) -> None:
    slug = product.make_site("members", origins=[hosts.origin(SAME_SITE)])
    hosts.put("/members", head=snippet(product, slug))
    host = HostPage(open_page(viewport=DESK))
    host.gather("reset")
    host.go(hosts.origin(SAME_SITE) + "/members")
    host.call("identify", signed(product, slug, "member-7"))
    host.open().until_greeted()
    assert visitors(product, slug) == ["member-7"]
    host.call("identify", signed(product, slug, "member-8"))
    host.until_greeted()
    wait_for(lambda: len(visitors(product, slug)) == 2, timeout_s=30, what="the second member came in")
    host.call("reset")
    host.until_told("reset")
    expect(host.frames).to_have_count(0)
    expect(host.launcher).to_be_focused()
    host.open().until_greeted()
    assert visitors(product, slug) == ["member-7", "member-8", ""]


def test_page_without_a_name_never_shows_the_conversation_of_a_named_visitor(
    open_page: OpenPage, product: RunningProduct, hosts: HostServer
) -> None:
    slug = product.make_site("lounge", origins=[hosts.origin(SAME_SITE)])
    hosts.put("/lounge", head=snippet(product, slug))
    host = HostPage(open_page(viewport=DESK)).go(hosts.origin(SAME_SITE) + "/lounge")
    host.call("identify", signed(product, slug, "guest-1"))
    host.open().until_greeted()
    host.page.reload()
    host.open().until_greeted()
    assert visitors(product, slug) == ["guest-1", ""]


def test_reset_before_any_opening_forgets_what_an_earlier_page_view_left(
    open_page: OpenPage, product: RunningProduct, hosts: HostServer
) -> None:
    slug = product.make_site("kiosk", origins=[hosts.origin(SAME_SITE)])
    hosts.put("/kiosk", head=snippet(product, slug))
    host = HostPage(open_page(viewport=DESK))
    host.gather("reset")
    host.go(hosts.origin(SAME_SITE) + "/kiosk").open().until_greeted()
    host.page.reload()
    sockets: list[str] = []
    host.page.on("websocket", lambda socket: sockets.append(socket.url))
    host.call("reset")
    host.until_told("reset")
    assert (sockets, host.frames.count()) == ([], 0)
    expect(host.card).to_be_hidden()
    host.open().until_greeted()
    assert visitors(product, slug) == ["", ""]


def test_wrong_signature_is_told_to_the_host_page(
    open_page: OpenPage, product: RunningProduct, plain: str, shop: str, watch: Watch
) -> None:
    watch.expect("Rapport")
    watch.expect("the server responded with a status of 403")
    host = HostPage(open_page(viewport=DESK))
    host.gather("error")
    host.go(plain)
    host.call("identify", {"id": "member-7", "signature": "0" * 64})
    host.open()
    host.until_told("error")
    assert host.told("error")[0] == {"site": shop, "code": "identity_invalid"}


LISTENERS = """(async () => {
  const count = (target) => Object.values(getEventListeners(target)).flat().length;
  return [window, document, document.documentElement, document.body, visualViewport].map(count);
})()"""


def listeners(page: Page) -> object:
    """How many listeners hang on what every script of the page shares."""
    client = page.context.new_cdp_session(page)
    answer = client.send(
        "Runtime.evaluate",
        {"expression": LISTENERS, "includeCommandLineAPI": True, "awaitPromise": True, "returnByValue": True},
    )
    client.detach()
    return answer["result"]["value"]


@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_destroy_leaves_no_node_no_listener_and_no_style_behind(
    open_page: OpenPage, product: RunningProduct, hosts: HostServer, shop: str, viewport: dict[str, int]
) -> None:
    hosts.put("/bare")
    hosts.put_style("")
    page = open_page(viewport=viewport)
    page.goto(hosts.origin() + "/bare")
    before = (listeners(page), page.evaluate("document.documentElement.outerHTML"))
    page.evaluate(
        """(src) => new Promise((done) => {
          const script = Object.assign(document.createElement("script"), { src, onload: done });
          document.head.append(script);
          script.remove();
        })""",
        f"{product.addresses[0]}/widget.js",
    )
    host = HostPage(page)
    host.call("init", {"site": shop, "position": "left"})
    host.open()
    host.call("destroy")
    expect(host.frames).to_have_count(0)
    assert (listeners(page), page.evaluate("document.documentElement.outerHTML")) == before
    host.call("init", {"site": shop})
    host.open()


def test_keyboard_alone_opens_and_closes_and_the_focus_comes_back(open_page: OpenPage, plain: str) -> None:
    page = open_page(viewport=DESK)
    host = HostPage(page).go(plain)
    page.keyboard.press("Tab")
    expect(page.locator("#own")).to_be_focused()
    page.keyboard.press("Tab")
    expect(host.launcher).to_be_focused()
    expect(host.launcher).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Enter")
    host.until_open()
    expect(host.launcher).to_have_attribute("aria-expanded", "true")
    expect(host.box).to_be_focused()
    page.keyboard.press("Escape")
    expect(host.card).to_be_hidden()
    expect(host.launcher).to_be_focused()
    page.evaluate("() => { document.querySelector('#own').onclick = () => rapport('open') }")
    page.locator("#own").press("Enter")
    host.until_open()
    expect(host.box).to_be_focused()
    host.call("close")
    expect(page.locator("#own")).to_be_focused()


def test_phone_gives_the_panel_the_whole_screen_and_the_page_back_as_it_was(
    open_page: OpenPage, product: RunningProduct, hosts: HostServer, shop: str
) -> None:
    hosts.put("/long", head=snippet(product, shop), body='<div class="long"></div>')
    hosts.put_style(".long { height: 4000px }")
    page = open_page(viewport=PHONE, has_touch=True, is_mobile=True)
    host = HostPage(page).go(hosts.origin() + "/long")
    page.evaluate("document.body.style.setProperty('overflow-y', 'auto', 'important'); scrollTo(0, 700)")
    styles = "[document.documentElement.getAttribute('style'), document.body.getAttribute('style'), scrollY]"
    before = page.evaluate(styles)
    host.open()
    assert host.card.bounding_box() == {"x": 0, "y": 0, "width": 390, "height": 844}
    expect(host.launcher).to_be_hidden()
    expect(host.card).to_have_attribute("aria-modal", "true")
    page.mouse.wheel(0, 500)
    assert page.evaluate("scrollY") == 700
    host.call("close")
    expect(host.card).to_be_hidden()
    assert page.evaluate(styles) == before


def test_replies_to_a_closed_panel_are_counted_and_no_word_leaves_it(
    open_page: OpenPage, product: RunningProduct, plain: str, shot: Shot
) -> None:
    host = HostPage(open_page(viewport=DESK))
    host.gather("open", "close", "unread", "message")
    host.go(plain).open().until_greeted()
    host.page.evaluate("window.heard = []; addEventListener('message', (event) => heard.push(event.data))")
    host.box.fill("Good morning, my name is Wilhelmina.")
    host.box.press("Enter")
    expect(host.panel.locator("article.row.visitor:not(.pending)")).to_be_visible()
    host.call("close")
    expect(host.badge).to_have_text("1", timeout=120_000)
    expect(host.launcher).to_have_accessible_name("Chat (1)")
    shot(host.page, "unread")
    assert host.told("unread") == [{"site": "shop", "count": 1}]
    assert host.told("message")[-1] == {"site": "shop", "sent": 1, "received": 1}
    heard = host.page.evaluate("JSON.stringify(heard)")
    said = host.replies.last.locator(".text").text_content() or ""
    assert "Wilhelmina" not in heard
    assert not [word for word in re.findall(r"\w{6,}", said) if word in heard and word not in "received message"]
    host.open()
    expect(host.badge).to_be_hidden()
    assert host.told("unread")[-1] == {"site": "shop", "count": 0}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_a_host_page_with_the_widget(
    open_page: OpenPage, plain: str, scheme: str, shot: Shot
) -> None:
    host = HostPage(open_page(viewport=DESK, color_scheme=scheme)).go(plain)
    assert serious_findings(host.page) == []
    shot(host.page, f"{scheme}-closed")
    host.open().until_greeted()
    assert serious_findings(host.page) == []
    shot(host.page, f"{scheme}-open")


def test_demonstration_shop_shows_the_widget(open_page: OpenPage, product: RunningProduct, shot: Shot) -> None:
    host = HostPage(open_page(viewport=DESK), label="Chat with us")
    host.go(f"{product.addresses[0]}/widget/demo/")
    assert serious_findings(host.page) == []
    host.open().until_greeted()
    shot(host.page, "shop")
