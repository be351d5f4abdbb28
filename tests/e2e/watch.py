"""Watches pages: scripts that a text smuggled in, violations of the content policy, errors in the console."""

from __future__ import annotations

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Error, Page

# `tests/fakes/hostile.py` sets __ran; the policy's own event tells what the browser refused to do.
SCRIPT = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.__violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


class Watch:
    """Collects what went wrong; `faults` is empty when all is well."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._pages: list[Page] = []
        self._expected: list[str] = []

    def over(self, context: BrowserContext) -> None:
        context.add_init_script(SCRIPT)
        context.on("page", self._follow)

    def expect(self, part: str) -> None:
        """Console errors that hold this text belong to the test (a network that was taken away)."""
        self._expected.append(part)

    def check(self) -> None:
        """Fails where any page ran a foreign script, broke the policy or complained."""
        for page in self._pages:
            if page.is_closed():
                continue
            assert page.evaluate("window.__ran") is None, f"a text became a script on {page.url}"
            violations = page.evaluate("window.__violations")
            assert not violations, f"{page.url}: {violations}"
        faults = [fault for fault in self.faults if not any(part in fault for part in self._expected)]
        assert not faults, faults

    def _follow(self, page: Page) -> None:
        self._pages.append(page)
        page.on("console", self._hear)
        page.on("pageerror", self._note_error)
        page.on("dialog", self._refuse)

    def _refuse(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.type}")
        dialog.dismiss()

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.faults.append(f"console: {message.text} {message.location.get('url', '')}")

    def _note_error(self, error: Error) -> None:
        self.faults.append(f"page error: {error.name} {error.message}")
