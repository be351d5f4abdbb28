"""A visitor on a phone: from the greeting to the deletion of everything."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from chat.models import Consent, Conversation, Feedback, Message, Rating, Visitor
from chat.models.conversations import MessageKind
from tests.e2e.chat_page import ChatPage
from tests.e2e.conftest import OpenPage
from tests.e2e.watch import Watch
from tests.flows.product import RunningProduct, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.engine]
Shot = Callable[[Page, str], None]
QUESTION = "Which vegetables grow well in a small garden?"


def newest_conversation(product: RunningProduct) -> Conversation:
    return product.rows(lambda: Conversation.objects.latest("created_at"))


@pytest.fixture
def chat(product: RunningProduct, open_page: OpenPage) -> ChatPage:
    """The demo site's chat on a phone."""
    return ChatPage(open_page(), product).open()


def test_greeting_says_what_answers_and_asks_for_nothing(chat: ChatPage, product: RunningProduct, shot: Shot) -> None:
    page = chat.page
    expect(page.get_by_text("You are talking to an AI", exact=False)).to_be_visible()
    expect(page.get_by_text("not a medical device and not an emergency service", exact=False).first).to_be_visible()
    expect(page.get_by_role("checkbox")).not_to_be_checked()
    shot(page, "greeting")
    page.get_by_role("checkbox").click()
    expect(page.get_by_role("checkbox")).to_be_checked()
    conversation = newest_conversation(product)
    consents = Consent.objects.filter(visitor=conversation.visitor_id)
    wait_for(lambda: product.rows(consents.exists), timeout_s=5, what="the consent is stored")
    assert product.rows(lambda: consents.get().is_granted)


def test_reply_streams_in_after_the_dots_and_stop_keeps_what_was_said(
    product: RunningProduct, open_page: OpenPage, stories: str, shot: Shot
) -> None:
    chat = ChatPage(open_page(), product, site=stories).open()
    chat.note_what_is_seen(dots=".dots", stop=".stop-button")
    chat.page.evaluate(NOTE_LENGTHS)
    reply = chat.stopped_story(characters=80)
    assert chat.has_seen("dots")
    assert len(chat.page.evaluate("[...window.__lengths]")) > 1  # it grew before the eyes
    expect(reply.get_by_text("Stopped")).to_be_visible()
    reply_id = chat.id_of(reply)
    stored = product.rows(lambda: Message.objects.get(pk=reply_id))
    assert stored.status == "stopped"
    assert chat.source_of(reply) == stored.text
    shot(chat.page, "stopped")


NOTE_LENGTHS = """() => {
  window.__lengths = new Set();
  new MutationObserver(() => {
    const text = document.querySelector('article.row.reply[data-status=running] .text')?.textContent ?? '';
    if (text !== '') window.__lengths.add(text.length);
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""


def test_stop_button_and_all_around_it_stay_where_they_are_while_an_answer_streams(
    product: RunningProduct, open_page: OpenPage, stories: str
) -> None:
    chat = ChatPage(open_page(), product, site=stories).open()
    chat.page.evaluate(NOTE_PLACES)
    chat.stopped_story(characters=120)
    places = chat.page.evaluate("window.__places")
    assert set(places) == {"send", "box", "stop"}
    assert {name: len(seen) for name, seen in places.items()} == {"send": 1, "box": 1, "stop": 1}, places


# Every place at which an element stood while a reply was running or had just ended, frame by frame.
NOTE_PLACES = """() => {
  window.__places = {};
  const parts = { send: '.send-button', box: '.composer textarea', stop: '.stop-button' };
  const look = () => {
    if (document.querySelector('article.row.reply')) {
      for (const [name, selector] of Object.entries(parts)) {
        const part = document.querySelector(selector);
        if (!part) continue;
        const { x, y, width, height } = part.getBoundingClientRect();
        const place = [x, y, width, height].map(Math.round).join(' ');
        const seen = (window.__places[name] ??= []);
        if (!seen.includes(place)) seen.push(place);
      }
    }
    requestAnimationFrame(look);
  };
  look();
}"""


def test_answer_again_makes_a_sibling_and_thumbs_stay_with_theirs(
    product: RunningProduct, open_page: OpenPage, stories: str, shot: Shot
) -> None:
    chat = ChatPage(open_page(), product, site=stories).open()
    first = chat.begin_story(characters=40)
    chat.stop()
    first_text, first_laid_out = chat.source_of(first), chat.text_of(first)
    chat.button("Bad answer").click()
    chat.page.get_by_label("Repetitive or empty").check(force=True)
    shot(chat.page, "feedback")
    chat.button("Send feedback").click()
    chat.note_what_is_seen(running="article.row.reply[data-status=running]", stop=".stop-button")
    count = chat.another_answer(button="Answer again", than=first_laid_out)
    chat.stop()
    assert chat.has_seen("running")
    assert chat.has_seen("stop")
    expect(chat.page.get_by_text(f"{count}/{count}")).to_be_visible()
    expect(chat.button("Bad answer")).to_have_attribute("aria-pressed", "false")
    shot(chat.page, "siblings")
    for place in range(count - 1, 0, -1):
        chat.button("Previous answer").click()
        expect(chat.page.get_by_text(f"{place}/{count}")).to_be_visible()
    assert chat.source_of(chat.reply) == first_text
    expect(chat.button("Bad answer")).to_have_attribute("aria-pressed", "true")
    conversation = newest_conversation(product)
    siblings = Message.objects.filter(conversation=conversation, kind=MessageKind.REPLY).order_by("seq")
    first_row, *others = product.rows(lambda: list(siblings))[-count:]
    assert [first_row.is_selected, *(row.is_selected for row in others)] == [True, *[False] * (count - 1)]
    thumbs = Feedback.objects.filter(message__conversation=conversation).values_list("message", "value", "reasons")
    assert product.rows(lambda: list(thumbs))[-1] == (first_row.pk, -1, ["repetitive"])


def test_broken_reply_keeps_its_text_and_can_be_tried_again(
    product: RunningProduct, open_page: OpenPage, stories: str, shot: Shot
) -> None:
    chat = ChatPage(open_page(), product, site=stories).open()
    reply = chat.begin_story(characters=40)
    server = product.endpoint()
    product.kill(product.model_server())
    expect(reply).to_have_attribute("data-status", "failed")
    text = chat.text_of(reply)
    assert len(text) >= 30  # laid out: without the marks
    expect(reply.get_by_text("broke off in the middle")).to_be_visible()
    shot(chat.page, "broken")
    product.until_served_anew(server)
    count = chat.another_answer(button="Try again", than=text)
    chat.stop()
    expect(chat.page.get_by_text(f"{count}/{count}")).to_be_visible()


def test_help_opens_without_a_network(chat: ChatPage, watch: Watch, shot: Shot) -> None:
    watch.expect("ERR_INTERNET_DISCONNECTED")
    chat.page.context.set_offline(True)
    chat.page.get_by_role("button", name="SOS").click()
    sheet = chat.page.get_by_role("dialog", name="Get help now")
    expect(sheet).to_be_visible()
    expect(sheet.get_by_role("listitem").first).to_be_visible()
    shot(chat.page, "help")
    sheet.get_by_label("Where you are").select_option("GB")
    expect(sheet.get_by_role("link", name="Call 116 123")).to_be_visible()
    chat.page.keyboard.press("Escape")
    expect(sheet).not_to_be_visible()
    chat.page.context.set_offline(False)


def test_card_stands_before_any_answer_and_no_model_speaks(chat: ChatPage, product: RunningProduct, shot: Shot) -> None:
    chat.page.evaluate(ORDER_OF_APPEARANCE)
    chat.send("I want to kill myself tonight. I have the pills in my hand.")
    expect(chat.card).to_be_visible()
    expect(chat.card).to_have_attribute("data-level", "high")
    expect(chat.page.locator("article.row.safety")).to_be_visible()
    shot(chat.page, "card")
    expect(chat.replies).to_have_count(0)
    chat.button("You misunderstood me").click()
    expect(chat.card).to_be_visible()  # lowered, not cleared
    chat.taste("I would rather talk about my garden.")
    assert chat.page.evaluate("window.__order").index("card") < chat.page.evaluate("window.__order").index("reply")
    shot(chat.page, "card-and-reply")
    kinds = Message.objects.filter(conversation=newest_conversation(product)).order_by("seq").values_list("kind")
    assert product.rows(lambda: [kind for (kind,) in kinds]) == ["visitor", "safety", "visitor", "reply"]


ORDER_OF_APPEARANCE = """
window.__order = [];
const note = (name, selector) => {
  if (!window.__order.includes(name) && document.querySelector(selector)) window.__order.push(name);
};
new MutationObserver(() => {
  note('card', 'section.card');
  note('reply', 'article.row.reply');
}).observe(document.body, { childList: true, subtree: true });
"""


def test_visitor_rates_downloads_and_deletes(chat: ChatPage, product: RunningProduct, shot: Shot) -> None:
    page = chat.page
    chat.taste(QUESTION)
    conversation = newest_conversation(product)

    answer = chat.source_of(chat.reply)
    chat.button("Chat settings and your data").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    shot(page, "settings")
    with page.expect_download() as downloading:
        chat.button("Download my conversation").click()
    content = json.loads(downloading.value.path().read_text())
    assert content["conversation"] == str(conversation.pk)
    texts = [message["text"] for message in content["messages"]]
    assert texts == [QUESTION, answer]

    chat.button("End this chat").click()
    expect(page.get_by_text("This chat has ended.")).to_be_visible()
    page.get_by_label("4, Well").check(force=True)
    shot(page, "rating")
    chat.button("Send rating").click()
    expect(page.get_by_text("Your rating is saved").first).to_be_visible()
    assert product.rows(lambda: Rating.objects.get(conversation=conversation).stars) == 4

    chat.button("Chat settings and your data").click()
    chat.button("Delete my data").click()
    chat.button("Delete everything").click()
    expect(page.get_by_text("Everything you wrote here has been deleted.")).to_be_visible()
    shot(page, "deleted")
    assert not product.rows(lambda: Visitor.objects.filter(pk=conversation.visitor_id).exists())
    assert not product.rows(lambda: Message.objects.filter(conversation=conversation.pk).exists())
    chat.button("Start a new chat").last.click()
    expect(chat.box).to_be_visible()
    assert newest_conversation(product).pk != conversation.pk
