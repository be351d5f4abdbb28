"""Other people's pages: a tiny server with headers as a test wants them, and what a visitor sees there."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import FrameLocator, Locator, Page, expect

from tests.flows.product import RunningProduct

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>A host page</title><link rel="stylesheet" href="/page.css">{head}</head>
<body><header><h1>A host page</h1></header><main><p>Words of the host page.</p>
<button type="button" id="own">Ask us</button>{body}</main></body></html>"""


class HostServer:
    """Serves pages by path; the same server is reached under several names, which are several origins."""

    def __init__(self, server: ThreadingHTTPServer, pages: dict[str, tuple[str, Mapping[str, str]]]) -> None:
        self._pages = pages
        self._port = server.server_address[1]

    def origin(self, name: str = "localhost") -> str:
        return f"http://{name}:{self._port}"

    def put(self, path: str, *, head: str = "", body: str = "", headers: Mapping[str, str] | None = None) -> None:
        self._pages[path] = (PAGE.format(head=head, body=body), headers or {})

    def put_style(self, rules: str) -> None:
        """The host page's own style sheet, `/page.css`."""
        self._pages["/page.css"] = (rules, {"Content-Type": "text/css"})


@contextmanager
def host_server() -> Iterator[HostServer]:
    """A server on a free port, until the block ends."""
    pages: dict[str, tuple[str, Mapping[str, str]]] = {}

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text, headers = pages.get(urlsplit(self.path).path, ("", {}))
            content = text.encode()
            self.send_response(200)
            for name, value in ({"Content-Type": "text/html; charset=utf-8"} | dict(headers)).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Says nothing: the test's output is for the test."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    host = HostServer(server, pages)
    host.put_style("")
    pages["/favicon.ico"] = ("", {"Content-Type": "image/x-icon"})
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def snippet(product: RunningProduct, site: str, *, more: str = "") -> str:
    """The one line that embeds the widget."""
    return f'<script async src="{product.addresses[0]}/widget.js" data-site="{site}" {more}></script>'


class HostPage:
    """A host page in a browser, with the widget of one site on it. Selectors live here and nowhere else."""

    def __init__(self, page: Page, *, label: str = "Chat") -> None:
        self.page = page
        self._label = label

    def go(self, address: str) -> HostPage:
        self.page.goto(address)
        expect(self.launcher).to_be_attached()
        return self

    # --- where to look ------------------------------------------------------------------------------------------

    @property
    def launcher(self) -> Locator:
        return self.page.locator(f"section[aria-label='{self._label}'] > button")

    @property
    def badge(self) -> Locator:
        return self.launcher.locator("b")

    @property
    def card(self) -> Locator:
        return self.page.locator(f"section > .card[aria-label='{self._label}']")

    @property
    def frames(self) -> Locator:
        return self.page.locator("iframe")

    @property
    def panel(self) -> FrameLocator:
        return self.card.frame_locator("iframe")

    @property
    def box(self) -> Locator:
        return self.panel.get_by_role("textbox", name="Write a message")

    @property
    def replies(self) -> Locator:
        return self.panel.locator("article.row.reply")

    # --- what to do ---------------------------------------------------------------------------------------------

    def open(self) -> HostPage:
        self.launcher.click()
        return self.until_open()

    def until_open(self) -> HostPage:
        expect(self.card).to_be_visible()
        expect(self.box).to_be_visible()
        return self

    def until_greeted(self) -> HostPage:
        """The panel has its conversation."""
        expect(self.panel.get_by_role("checkbox").first).to_be_enabled()
        return self

    def call(self, *call: object) -> None:
        self.page.evaluate("(call) => { rapport(...call) }", list(call))

    def gather(self, *events: str) -> None:
        """Collects these events in `window.told`, from before the page's first script."""
        self.page.add_init_script(
            f"""window.told = [];
            window.rapport = window.rapport || function () {{ (rapport.q = rapport.q || []).push(arguments) }};
            for (const name of {list(events)!r})
              rapport("on", name, (event) => told.push([name, event.detail]));"""
        )

    def told(self, event: str) -> list[dict[str, Any]]:
        """The facts of each of these events so far."""
        facts: list[dict[str, Any]] = self.page.evaluate(
            "(event) => told.filter(([name]) => name === event).map(([, facts]) => facts)", event
        )
        return facts

    def until_told(self, event: str) -> None:
        self.page.wait_for_function("(event) => told.some(([name]) => name === event)", arg=event)
