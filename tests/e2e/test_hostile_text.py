"""Sixty texts that try to become a script, on every page that shows what people or models wrote (A14, B28)."""

from uuid import UUID

import pytest
from playwright.sync_api import expect

from chat.models import Alert, Conversation, Feedback, PolicyVersion, Rating, TurnRubric, TurnScore, User, Visitor
from chat.models.conversations import MessageKind
from tests.e2e.chat_page import ChatPage
from tests.e2e.conftest import DESK, OpenPage
from tests.e2e.staff_pages import StaffPages
from tests.e2e.watch import Watch
from tests.factories import make_message, make_reply
from tests.fakes.hostile import HOSTILE_MARKDOWN, HOSTILE_TEXTS
from tests.flows.guest import Guest
from tests.flows.product import RunningProduct

pytestmark = pytest.mark.browser
SHOWN_ON_ADMIN = ("message", "feedback", "rating", "turnrubric", "turnscore", "conversation", "alert", "visitor")

WRITTEN = (*HOSTILE_TEXTS, *HOSTILE_MARKDOWN)
LAID_OUT = {
    "a",
    "blockquote",
    "code",
    "div",
    "em",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "s",
    "span",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
}


def fill(conversation_id: UUID) -> None:
    """A conversation in which visitor, model, rubric, judge and staff all wrote hostile texts."""
    conversation = Conversation.objects.get(pk=conversation_id)
    versions = {kind: PolicyVersion.objects.get(kind=kind, state="live") for kind in ("generator", "judge")}
    author = User.objects.create_user(
        username=f"hostile-{conversation_id.hex[:6]}", password="x", role="reviewer", display_name=HOSTILE_TEXTS[14]
    )
    for number, text in enumerate(HOSTILE_TEXTS):
        said = make_message(conversation, text)
        reply = make_reply(said, HOSTILE_TEXTS[-1 - number])
        Feedback.objects.create(
            message=reply, visitor=conversation.visitor, value=-1, reasons=[text[:40]], comment=text
        )
        rubric = TurnRubric.objects.create(
            message=said,
            generator=versions["generator"],
            weights={"cognitive": 0.5, "affective": 0.3, "proactive": 0.2},
            criteria=[
                {"id": "c1", "text": text, "dimension": "cognitive", "polarity": "want"},
                {"id": "a1", "text": text, "dimension": "affective", "polarity": "avoid"},
            ],
            context_sha256="0" * 64,
            is_fallback=True,
            fallback_reason=text[:200],
        )
        judgements = [
            {"criterion_id": "c1", "level": 0.5, "none_reason": None, "evidence": [0, 3]},
            {"criterion_id": "a1", "level": None, "none_reason": text[:40], "evidence": None},
        ]
        TurnScore.objects.create(
            reply=reply, rubric=rubric, judge=versions["judge"], judgements=judgements, is_partial=True
        )
    for text in HOSTILE_MARKDOWN:
        make_reply(make_message(conversation, text), text)
    for text in HOSTILE_TEXTS[:20]:
        make_message(conversation, text, kind=MessageKind.STAFF, author=author)
        make_message(conversation, text, kind=MessageKind.NOTE, author=author)
    Rating.objects.create(conversation=conversation, stars=1, comment=HOSTILE_TEXTS[0])
    Alert.objects.create(kind="crisis", conversation=conversation)
    Visitor.objects.filter(pk=conversation.visitor_id).update(external_id=HOSTILE_TEXTS[14])


@pytest.fixture(scope="module")
def guest(product: RunningProduct) -> Guest:
    """A visitor whose conversation is full of them."""
    guest = Guest(product)
    product.rows(lambda: fill(guest.conversation))
    return guest


def test_visitors_page_shows_them_as_text(product: RunningProduct, open_page: OpenPage, guest: Guest) -> None:
    page = open_page()
    page.add_init_script(f"localStorage.setItem('rapport:demo:token', {guest.token!r})")
    chat = ChatPage(page, product)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "evil" in request.url else None)
    page.goto(chat.address)
    expect(chat.own).to_have_count(len(WRITTEN))
    assert [chat.text_of(row) for row in chat.own.all()] == list(WRITTEN)
    expect(page.locator("article.row.staff")).to_have_count(20)
    # The answers are laid out; what is dangerous in them stands there as it was written.
    expect(page.locator("article.row.reply .formatted")).to_have_count(len(WRITTEN))
    answers = [chat.text_of(row) for row in chat.replies.all()][: len(HOSTILE_TEXTS)]
    assert [text.split() for text in answers] == [text.split() for text in reversed(HOSTILE_TEXTS)]
    kinds = set(page.locator(".log .text *").evaluate_all("nodes => nodes.map((node) => node.localName)"))
    assert kinds <= LAID_OUT, kinds - LAID_OUT
    links = page.locator(".log .text a").evaluate_all("links => links.map((link) => link.protocol)")
    assert set(links) <= {"https:", "http:", "mailto:"}
    assert asked == [], "a text made the page fetch something"


def test_text_that_was_typed_is_shown_as_text(product: RunningProduct, open_page: OpenPage) -> None:
    chat = ChatPage(open_page(), product).open()
    text = HOSTILE_TEXTS[16]
    chat.send(text)
    expect(chat.own.locator(".text")).to_have_text(text)
    assert chat.page.locator(".log img, .log script, .log iframe").count() == 0


@pytest.mark.parametrize("account", ["demo-reviewer", "demo-lead"])
def test_transcript_shows_them_as_text(
    product: RunningProduct, open_page: OpenPage, guest: Guest, account: str
) -> None:
    staff = StaffPages(open_page(viewport=DESK), product).log_in(account).open_transcript(guest.conversation)
    if account == "demo-lead":
        staff.page.get_by_role("button", name="Show unredacted text").click()
    more = staff.page.get_by_role("button", name="Show more turns")
    expect(staff.turn(1)).to_be_visible()
    while more.count():
        shown = staff.page.locator("article.turn").count()
        more.click()
        expect(staff.page.locator("article.turn").nth(shown)).to_be_visible()
    expect(staff.page.locator("article.turn")).to_have_count(len(WRITTEN))
    for turn in staff.page.locator("article.turn").all()[:3]:
        expect(turn.locator(".criterion")).to_have_count(2)
    assert staff.page.locator(".turn img, .turn script, .turn iframe, .turn svg").count() == 0


@pytest.mark.parametrize("table", SHOWN_ON_ADMIN)
def test_admin_shows_them_as_text(
    product: RunningProduct, open_page: OpenPage, guest: Guest, watch: Watch, table: str
) -> None:
    watch.expect("/favicon.ico")  # the browser asks for one, Django's admin has none
    page = open_page(viewport=DESK)
    StaffPages(page, product).log_in("demo-admin")
    answer = page.goto(f"{product.addresses[0]}/admin/chat/{table}/")
    assert answer is not None
    assert answer.status == 200
    first = page.locator("#result_list tbody th a").first
    expect(first).to_be_visible()
    first.click()
    expect(page.locator("#content")).to_be_visible()
