"""One browser for these tests; every page is watched for scripts that should not run and for the page's own errors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from chat.models import Message
from chat.models.conversations import MessageKind
from deploy.local.machine import find_browser
from tests.e2e.watch import Watch
from tests.flows.guest import STORYTELLER
from tests.flows.product import RunningProduct

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
    "--host-resolver-rules=MAP shop.test 127.0.0.1",  # a host page whose name is not this machine's own
)
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
PATIENCE_MS = 30_000
OpenPage = Callable[..., Page]
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Stopped when these tests end: its loop must not run below other tests'."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(autouse=True)
def _rests(product: RunningProduct) -> Iterator[None]:
    """The engine works for the visitors of this test alone, unless the test lets the worker go on."""
    product.until_well(timeout_s=120)
    began = timezone.now()
    with product.frozen("worker"):
        product.until_engine_rests()
        yield
        replies = Message.objects.filter(kind=MessageKind.REPLY, created_at__gte=began, scores=None)
        product.rows(lambda: replies.update(is_excluded=True))


@pytest.fixture
def watch() -> Watch:
    """What went wrong on the pages of this test; `open_page` attaches every page."""
    return Watch()


@pytest.fixture
def open_page(browser: Browser, watch: Watch) -> Iterator[OpenPage]:
    """`open_page(viewport=PHONE, ...)`: a page of a browser profile of its own. At the end all of them are checked."""
    contexts: list[BrowserContext] = []

    def open_one(*, viewport: dict[str, int] | None = None, **options: object) -> Page:
        context = browser.new_context(
            viewport=viewport or PHONE,  # type: ignore[arg-type]
            locale="en-GB",
            **options,  # type: ignore[arg-type]
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        watch.over(context)
        return context.new_page()

    yield open_one
    try:
        watch.check()
    finally:
        for context in contexts:
            context.close()


@pytest.fixture
def stories(product: RunningProduct) -> str:
    """The slug of a site on which replies are long enough to be interrupted."""
    return product.make_site("stories", system_prompt=STORYTELLER)


@pytest.fixture
def shot(request: pytest.FixtureRequest) -> Callable[[Page, str], None]:
    """`shot(page, "greeting")` keeps a picture where TEST_SHOTS names a folder."""
    folder = os.environ.get("TEST_SHOTS")

    def take(page: Page, name: str) -> None:
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(folder) / f"{request.node.name[5:45]}-{name}.png")

    return take
