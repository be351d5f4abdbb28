"""The main flow on real parts: ten turns of an ordinary conversation, what is stored of them, how they are graded."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

import pytest
from django.conf import settings
from django.db.models import QuerySet
from tokenizers import Tokenizer

from chat.context import said_before
from chat.grading import stored_rubric
from chat.models import Alert, Feedback, Generation, Message, SafetyVerdict, TurnRubric, TurnScore, WidgetSite
from chat.models.conversations import MessageKind, MessageOrigin, MessageStatus
from chat.models.safety import AlertKind
from chat.prompting import Prompt, build_prompt, default_system_prompt
from chat.services.texts import sha256_of
from rubric import Judgement, Sampling, Score, reward_of
from tests.flows.engine_watch import generate, look_at
from tests.flows.guest import Event, Guest
from tests.flows.product import RunningProduct

pytestmark = [pytest.mark.flow, pytest.mark.engine, pytest.mark.database]
TURNS = (
    "Hello! I have a free weekend. What could I do with it?",
    "I like cooking and walking outside.",
    "What can I cook with rice and tomatoes?",
    "How long does rice take?",
    "Good. And which walk would you choose, a lake or a forest?",
    "I think I will take the forest. What should I put in my bag?",
    "My sister comes along. She likes birds.",
    "Which birds live in a forest?",
    "That sounds nice. When should we start in the morning?",
    "Thank you, that was a pleasant talk.",
)
GRADED_AT_LEAST = 2
ENOUGH_CHARACTERS = 300  # of a small model that likes to repeat itself
# What the small model says may be withheld; that is an answer too.
ANSWERED = {MessageStatus.COMPLETE, MessageStatus.STOPPED, MessageStatus.BLOCKED}


@dataclass(slots=True)
class Talk:
    """A conversation that was held: who, what was acknowledged, how each reply ended, and every event."""

    guest: Guest
    accepted: list[Event] = field(default_factory=list)
    finished: list[Event] = field(default_factory=list)
    seen: list[Event] = field(default_factory=list)

    @property
    def messages(self) -> QuerySet[Message]:
        return Message.objects.filter(conversation=self.guest.conversation).order_by("seq")

    @property
    def replies(self) -> QuerySet[Message]:
        return self.messages.filter(kind=MessageKind.REPLY)


@pytest.fixture(scope="module")
def talk(product: RunningProduct) -> Talk:
    """Ten turns, each sent when the reply before it has ended; a reply that goes on and on is stopped."""
    talk = Talk(Guest(product))
    with talk.guest.page() as page:
        for text in TURNS:
            talk.accepted.append(page.say(text))
            talk.finished.append(page.read(most_characters=ENOUGH_CHARACTERS))
        talk.seen = page.seen
    return talk


@pytest.mark.timeout(600)
def test_ten_turns_are_stored_in_order_and_answered(product: RunningProduct, talk: Talk) -> None:
    rows = product.rows(lambda: list(talk.messages))
    assert [row.kind for row in rows] == [MessageKind.VISITOR, MessageKind.REPLY] * 10
    assert [row.text for row in rows[::2]] == list(TURNS)
    assert [row.parent_id for row in rows[1::2]] == [row.pk for row in rows[::2]]
    assert {row.status for row in rows[1::2]} <= ANSWERED
    assert sum(row.status == MessageStatus.BLOCKED for row in rows[1::2]) <= 2
    assert MessageStatus.COMPLETE in {row.status for row in rows[1::2]}
    assert all(row.text or row.status == MessageStatus.BLOCKED for row in rows)
    assert all(row.sha256 == sha256_of(row.text) for row in rows)


def test_deltas_make_up_exactly_the_text_that_is_stored(product: RunningProduct, talk: Talk) -> None:
    for row in product.rows(lambda: list(talk.replies)):
        deltas = [one for one in talk.seen if one["type"] == "reply.delta" and one["message_id"] == str(row.pk)]
        assert len(deltas) > 1 or len(row.text) < 200  # it came piece by piece
        assert "".join(delta["text"] for delta in deltas) == row.text
        assert [delta["offset"] for delta in deltas] == [
            sum(len(earlier["text"]) for earlier in deltas[:number]) for number in range(len(deltas))
        ]


def test_every_message_has_its_verdict_and_every_reply_its_whole_record(product: RunningProduct, talk: Talk) -> None:
    said = talk.messages.filter(kind=MessageKind.VISITOR)
    assert product.rows(SafetyVerdict.objects.filter(message__in=said).count) == 10
    for made in product.rows(lambda: list(Generation.objects.filter(message__in=talk.replies))):
        assert made.engine_model.startswith("policy-")
        assert made.seed is not None
        assert (made.temperature, made.top_p, made.repetition_penalty) == (0.7, 1.0, 1.0)
        assert made.finished_at is not None
        if made.finish_reason:
            assert made.logprob_kind == "processed"
            assert len(made.token_ids) == len(made.token_logprobs)
            assert made.completion_tokens is not None
            assert 0 <= made.completion_tokens - len(made.token_ids) <= 1 or made.logprob_gap


def prompt_of(product: RunningProduct, made: Generation) -> Prompt:
    """The prompt of a stored reply, put together again from rows alone."""
    reply = made.message
    site = WidgetSite.objects.get(conversations=reply.conversation_id)
    tokenizer = Tokenizer.from_file(str(product.model_folder / "hf" / "tokenizer.json"))
    return build_prompt(
        said_before(reply.conversation_id, context_to_seq=made.context_to_seq, answered=reply.parent_id),
        system=site.system_prompt or default_system_prompt(),
        budget_tokens=settings.RAPPORT_CONTEXT_TOKENS,
        count=lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids),
    )


def test_every_stored_reply_rebuilds_its_exact_prompt(product: RunningProduct, talk: Talk) -> None:
    for made in product.rows(
        lambda: list(Generation.objects.filter(message__in=talk.replies).select_related("message"))
    ):
        prompt = product.rows(partial(prompt_of, product, made))
        assert made.prompt_sha256 == prompt.sha256
        assert made.prompt_version == prompt.version
        assert made.context_from_seq == prompt.context_from_seq


def test_rebuilt_prompt_and_seed_begin_the_same_text_again(product: RunningProduct, talk: Talk) -> None:
    """The beginning only: what else the engine computes at the same time moves the last digits, and one drawn token
    that falls otherwise changes all that follow."""
    complete = talk.replies.filter(status=MessageStatus.COMPLETE)
    made = product.rows(lambda: Generation.objects.select_related("message").get(message=complete.first()))
    prompt = product.rows(lambda: prompt_of(product, made))
    sampling = Sampling(max_tokens=made.max_tokens or 0, temperature=made.temperature or 0.0, seed=made.seed)
    with product.frozen("worker"):
        again = generate(product.endpoint(), prompt.transcript, sampling)
    assert again.text.strip()[:24] == made.message.text.strip()[:24]


@pytest.mark.timeout(600)
def test_at_least_two_turns_are_graded_to_the_end_and_the_rest_is_counted(product: RunningProduct, talk: Talk) -> None:
    scores = TurnScore.objects.filter(reply__in=talk.replies)
    product.rows.until(
        lambda: scores.count() >= GRADED_AT_LEAST, timeout_s=420, what=f"{GRADED_AT_LEAST} of ten turns are graded"
    )
    with product.frozen("worker"):  # nothing moves while it is counted
        count_every_turn(product, talk)
        # The rest stays ungraded: the tests that follow need the engine for themselves.
        product.rows(lambda: talk.replies.filter(scores=None).update(is_excluded=True))


def count_every_turn(product: RunningProduct, talk: Talk) -> None:
    turns = [message["id"] for message in talk.accepted]
    rubrics = product.rows(lambda: list(TurnRubric.objects.filter(message__in=turns)))
    scores = product.rows(
        lambda: list(TurnScore.objects.filter(reply__in=talk.replies).select_related("rubric", "judge", "reply"))
    )
    fallback = sum(row.is_fallback for row in rubrics)
    repaired = sum(not row.is_fallback and not row.is_raw_valid for row in rubrics)
    valid = sum(row.is_raw_valid and not row.is_fallback for row in rubrics)
    assert valid + repaired + fallback + (len(turns) - len(rubrics)) == 10
    unscored = sum(all(one["level"] is None for one in row.judgements) for row in scores)
    partial = sum(row.is_partial for row in scores) - unscored
    full = sum(row.reward is not None for row in scores)
    assert full + partial + unscored == len(scores) >= GRADED_AT_LEAST
    assert len(scores) <= len(rubrics)
    for row in scores:
        assert row.rubric is not None
        check_grade(row, row.rubric)
        check_judge(row)
    # The worker counts in a process of its own; every web process serves the sum.
    names = [f'rapport_scores_total{{outcome="{outcome}"}}' for outcome in ("full", "partial", "unscored")]
    here, there = (sum(product.metric(name, web=web) for name in names) for web in range(2))
    assert here == there >= len(scores)


def check_grade(row: TurnScore, stored: TurnRubric) -> None:
    """What the rows say fits together, and the reward is the one that the rule gives."""
    rubric = stored_rubric(stored)
    judgements = tuple(Judgement.from_json(one) for one in row.judgements)
    score = Score(judgements=judgements, judge="", prompt_sha256="", attempts=row.attempts, latency_ms=0.0)
    assert sum(stored.weights.values()) == pytest.approx(1.0)
    assert {one.criterion_id for one in judgements} == {criterion.id for criterion in rubric.criteria}
    reward = reward_of(score, rubric)
    assert row.is_partial == score.partial(rubric) == (row.reward is None)
    if reward is not None:
        assert row.reward == pytest.approx(reward.value)


def check_judge(row: TurnScore) -> None:
    """The encoder process graded: a level for every criterion, evidence inside the reply."""
    assert row.judge.config == {"implementation": "encoder"}
    for one in row.judgements:
        assert one["level"] is not None
        assert one["evidence"] is None or 0 <= one["evidence"][0] < one["evidence"][1] <= len(row.reply.text)


@pytest.fixture
def second(product: RunningProduct, without_grading: None) -> Iterator[tuple[Guest, Event]]:
    """A conversation of one finished turn, whose siblings and thumbs the tests change."""
    guest = Guest(product)
    with guest.page() as page:
        yield guest, page.taste("Which colours go well with green?")


def test_regenerating_keeps_every_sibling_and_its_rating(product: RunningProduct, second: tuple[Guest, Event]) -> None:
    guest, finished = second
    first = finished["message"]["id"]
    with guest.page() as page:
        page.send(type="feedback.set", message_id=first, value=-1, reasons=["repetitive"], comment="Too short.")
        page.until("message.changed")
        for count in (2, 3):
            page.send(type="reply.regenerate", message_id=first)
            again = page.begin_and_stop(page.until("reply.started")["message_id"])["message"]
            assert (again["sibling_count"], again["sibling_index"], again["selected"]) == (count, count - 1, True)
        page.send(type="reply.select", message_id=first)
        while not (changed := page.until("message.changed")["message"])["selected"] or changed["id"] != first:
            pass
        assert changed["feedback"] == -1
        page.send(type="feedback.set", message_id=first, value=1, reasons=[], comment="")
        while page.until("message.changed", timeout_s=10)["message"]["feedback"] != 1:
            pass
        assert page.taste("And which go with blue?")["message"]["text"]

    siblings = product.rows(lambda: list(Message.objects.filter(parent=finished["message"]["parent"])))
    assert {row.sibling_index: row.origin for row in siblings} == {
        0: MessageOrigin.SERVED,
        1: MessageOrigin.REGENERATED,
        2: MessageOrigin.REGENERATED,
    }
    assert [str(row.pk) for row in siblings if row.is_selected] == [first]
    thumbs = Feedback.objects.filter(message=first).order_by("id").values_list("value", "reasons", "comment")
    assert product.rows(lambda: list(thumbs)) == [(-1, ["repetitive"], "Too short."), (1, [], "")]
    # Roles still alternate: the next reply's context holds the chosen sibling and no other.
    last = product.rows(
        lambda: (
            Generation.objects.select_related("message")
            .filter(message__conversation=guest.conversation)
            .latest("created_at")
        )
    )
    prompt = product.rows(lambda: prompt_of(product, last))
    assert prompt.sha256 == last.prompt_sha256
    assert [one.role.value for one in prompt.transcript.utterances] == ["system", "user", "assistant", "user"]
    assert prompt.transcript.utterances[2].text == finished["message"]["text"]


@pytest.mark.usefixtures("without_grading")
def test_crisis_turn_shows_the_card_and_calls_people_instead_of_the_model(product: RunningProduct) -> None:
    guest = Guest(product)
    work = look_at(product.endpoint())
    with guest.page() as page:
        message = page.say("I want to kill myself tonight. I have the pills in my hand.")
        card = page.until("safety.card", timeout_s=10)
        assert card["level"] == "high"
        assert all(resource["name"] for resource in card["resources"])
        assert len(card["resources"]) >= 2
        page.hear(1.0)
        assert not [event for event in page.seen if event["type"].startswith("reply.")]
        assert (
            look_at(product.endpoint()).finished_tokens - work.finished_tokens <= 1
        )  # the keeper asks for one at times

        kinds = Message.objects.filter(conversation=guest.conversation).order_by("seq").values_list("kind", "text")
        (_, said), (kind, safety_text) = product.rows(lambda: list(kinds))
        assert (said, kind) == (message["text"], "safety")
        shown = [event["message"]["text"] for event in page.seen if event["type"] == "message.changed"]
        assert shown == [said, safety_text]
        alert = product.rows(lambda: Alert.objects.get(conversation=guest.conversation))
        assert (alert.kind, alert.message_id) == (AlertKind.CRISIS, UUID(message["id"]))
        verdict = product.rows(lambda: SafetyVerdict.objects.get(message=message["id"]))
        assert (verdict.level, verdict.card, verdict.excluded_reason) == ("high", "high", "safety_high")

        # Afterwards the conversation goes on, watched: the card stands before the first word of the next reply.
        page.taste("Thank you. Can we talk about my garden?")
        shown = [event["type"] for event in page.seen]
        assert "safety.card" in shown[: shown.index("reply.delta")]
        replies = Message.objects.filter(conversation=guest.conversation, kind=MessageKind.REPLY)
        assert product.rows(lambda: replies.get().is_excluded)
