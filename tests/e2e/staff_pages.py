"""The staff's pages as a person uses them."""

from __future__ import annotations

from uuid import UUID

from playwright.sync_api import Locator, Page, expect

from tests.flows.product import RunningProduct


class StaffPages:
    """Somebody with an account, in a browser profile of their own."""

    def __init__(self, page: Page, product: RunningProduct) -> None:
        self.page = page
        self.product = product
        self.address = product.addresses[0]

    def log_in(self, account: str) -> StaffPages:
        self.page.goto(f"{self.address}/staff/login/")
        self.page.get_by_label("User name").fill(account)
        self.page.get_by_label("Password").fill(self.product.password(account))
        self.page.get_by_role("button", name="Log in").click()
        expect(self.page.get_by_role("heading", name="Conversations")).to_be_visible()
        return self

    def open_transcript(self, conversation: UUID) -> StaffPages:
        self.page.goto(f"{self.address}/staff/conversations/{conversation}/")
        expect(self.page.get_by_text("Live: new messages and grades appear by themselves.")).to_be_visible()
        return self

    def turn(self, number: int) -> Locator:
        return self.page.get_by_role("article", name=f"Turn {number}", exact=True)
