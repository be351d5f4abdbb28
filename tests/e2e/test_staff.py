"""Staff in the browser: inbox, live transcript, grades as stored, a word to the visitor, who may reveal."""

from collections.abc import Callable
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect

from chat.models import AuditEntry, Conversation, Message, TurnRubric, TurnScore
from tests.e2e.chat_page import ChatPage
from tests.e2e.conftest import DESK, OpenPage
from tests.e2e.staff_pages import StaffPages
from tests.e2e.watch import Watch
from tests.flows.product import RunningProduct, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.engine]
Shot = Callable[[Page, str], None]
MAIL = "ana.kovacs@example.org"
GRADE_S = 300.0


@pytest.mark.timeout(600)
def test_reviewer_follows_a_conversation_live_sees_its_grade_and_writes_to_the_visitor(
    product: RunningProduct, open_page: OpenPage, shot: Shot
) -> None:
    chat = ChatPage(open_page(), product).open()
    conversation = product.rows(lambda: Conversation.objects.latest("created_at"))
    staff = StaffPages(open_page(viewport=DESK), product).log_in("demo-reviewer")
    row = staff.page.get_by_role("link", name=str(conversation.pk)[:8])
    expect(row).to_be_visible()
    shot(staff.page, "inbox")
    row.click()
    expect(staff.page.get_by_text("Nobody has written anything here yet.")).to_be_visible()
    expect(staff.page.get_by_text("Live: new messages")).to_be_visible()

    # Everything below appears without a reload.
    chat.taste("Which trees are good for a small garden?")
    turn = staff.turn(1)
    expect(turn.locator(".said.visitor .text")).to_have_text("Which trees are good for a small garden?")
    reply_id = chat.id_of(chat.reply)
    expect(turn.locator(f"[data-message='{reply_id}'] .text")).to_have_text(chat.source_of(chat.reply))
    expect(turn.get_by_text("No priorities yet")).to_be_visible()

    with product.thawed("worker"):
        expect(turn.locator(".reward strong, .reward .tag")).to_be_visible(timeout=GRADE_S * 1000)
    shot(staff.page, "graded")
    check_grade(product, staff, reply_id)

    staff.page.get_by_label("Write to the visitor, as yourself").fill("Hello, I am a person. I read along.")
    staff.page.get_by_role("button", name="Send", exact=True).click()
    told = chat.page.locator("article.row.staff")
    expect(told.locator(".text")).to_have_text("Hello, I am a person. I read along.")
    expect(told).to_contain_text("Demo Reviewer")
    expect(chat.page.locator(".dots")).to_have_count(0, timeout=2_000)  # who has written is not writing
    expect(staff.page.locator(".said.staff .text")).to_have_text("Hello, I am a person. I read along.")
    shot(chat.page, "staff-message")


def check_grade(product: RunningProduct, staff: StaffPages, reply_id: UUID) -> None:
    """Bar, criteria and levels on the page are those of the rows."""
    score = product.rows(lambda: TurnScore.objects.select_related("rubric", "judge").get(reply=reply_id))
    rubric = score.rubric
    assert isinstance(rubric, TurnRubric)
    turn = staff.turn(1)
    for dimension, weight in rubric.weights.items():
        key = turn.locator(".weights-key li").filter(has_text=dimension.title())
        expect(key.locator("strong")).to_have_text(f"{round(weight * 100)} %")
        grown = turn.locator(f".weights-bar .{dimension}").evaluate("bar => Number(bar.style.flexGrow)")
        assert grown == pytest.approx(weight, abs=1e-6)
    expect(turn.locator(".criterion")).to_have_count(len(rubric.criteria))
    levels = {one["criterion_id"]: one["level"] for one in score.judgements}
    for criterion in rubric.criteria:
        line = turn.locator(".criterion").filter(has_text=criterion["text"])
        level = levels[criterion["id"]]
        expect(line.first).to_contain_text("not graded" if level is None else f"{level:.2f}")
    said = "partly graded" if score.reward is None else f"{score.reward:.2f}"
    expect(turn.locator(".reward")).to_contain_text(said)
    expect(turn.locator(".reward .judge")).to_contain_text(f"{score.judge.name}: no human evidence yet (0 of 200")


def test_only_a_lead_sees_behind_the_marks_and_it_is_written_down(
    product: RunningProduct, open_page: OpenPage, watch: Watch, shot: Shot
) -> None:
    watch.expect("403")
    chat = ChatPage(open_page(), product).open()
    chat.taste(f"You can write to {MAIL} about the garden club.")
    conversation = product.rows(lambda: Message.objects.get(text__contains=MAIL, kind="visitor").conversation_id)

    reviewer = StaffPages(open_page(viewport=DESK), product).log_in("demo-reviewer").open_transcript(conversation)
    expect(reviewer.turn(1)).to_be_visible()
    expect(reviewer.page.get_by_text(MAIL)).to_have_count(0)
    expect(reviewer.page.get_by_role("button", name="Show unredacted text")).to_have_count(0)
    turns = f"{product.addresses[0]}/api/staff/conversations/{conversation}/turns/?reveal=1"
    assert reviewer.page.request.get(turns).status == 403
    reveals = AuditEntry.objects.filter(verb="conversation.reveal", subject=f"conversation {conversation}")
    assert product.rows(reveals.count) == 0

    lead = StaffPages(open_page(viewport=DESK), product).log_in("demo-lead").open_transcript(conversation)
    expect(lead.turn(1)).to_be_visible()
    expect(lead.page.get_by_text(MAIL)).to_have_count(0)
    lead.page.get_by_role("button", name="Show unredacted text").click()
    expect(lead.turn(1).locator(".said.visitor .text")).to_contain_text(MAIL)
    shot(lead.page, "revealed")
    entry = wait_for(lambda: product.rows(reveals.first), timeout_s=5, what="the look is written down")
    assert entry.actor_name == "demo-lead"


def test_alert_of_a_crisis_reaches_the_inbox_and_somebody_takes_it(
    product: RunningProduct, open_page: OpenPage, shot: Shot
) -> None:
    staff = StaffPages(open_page(viewport=DESK), product).log_in("demo-reviewer")
    chat = ChatPage(open_page(), product).open()
    chat.send("I am going to kill myself. Goodbye.")
    expect(chat.card).to_be_visible()
    conversation = product.rows(lambda: Conversation.objects.latest("created_at"))
    link = staff.page.locator(f"a[href$='{conversation.pk}/'].button")
    alert = staff.page.locator(".alerts li").filter(has=link)
    expect(alert).to_contain_text("Possible crisis")
    shot(staff.page, "alert")
    alert.get_by_role("button", name="I look after this").click()
    expect(alert).to_have_count(0)
    taken = product.rows(lambda: conversation.alerts.select_related("acknowledged_by").get())
    assert taken.acknowledged_by is not None
    assert taken.acknowledged_by.username == "demo-reviewer"
