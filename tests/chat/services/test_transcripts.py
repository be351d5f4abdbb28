"""The transcript page's turns: complete, redacted, in a fixed number of queries."""

from typing import Any

import pytest

from chat.models import Conversation, Feedback, Message, SafetyVerdict, TurnRubric, TurnScore
from chat.models.conversations import MessageKind
from chat.models.learning import VersionKind, VersionState
from chat.models.priorities import ScoreRole
from chat.services.transcript_views import TurnView
from chat.services.transcripts import turns_of
from tests.factories import make_conversation, make_message, make_reply, make_user, make_version

pytestmark = pytest.mark.django_db
CRITERIA = [{"id": "C1", "text": "Names what Anna fears", "dimension": "cognitive", "polarity": "want", "weight": 1.0}]
WEIGHTS = {"cognitive": 0.5, "affective": 0.3, "proactive": 0.2}


def turns(conversation: Conversation, *, is_revealed: bool = False, **filters: Any) -> list[TurnView]:
    rows = list(conversation.messages.filter(kind=MessageKind.VISITOR, **filters).order_by("seq"))
    return turns_of(conversation, rows, is_revealed=is_revealed)


def grade(said: Message, reply: Message, judgements: list[dict[str, Any]]) -> None:
    generator = make_version(VersionKind.GENERATOR, state=VersionState.RETIRED)
    judge = make_version(VersionKind.JUDGE, state=VersionState.RETIRED)
    rubric = TurnRubric.objects.create(
        message=said, generator=generator, weights=WEIGHTS, criteria=CRITERIA, context_sha256="0", latency_ms=12.5
    )
    TurnScore.objects.create(
        reply=reply, rubric=rubric, judge=judge, judgements=judgements, reward=0.7, by_dimension={"cognitive": 0.7}
    )


def test_turn_carries_everything_that_hangs_on_it() -> None:
    conversation = make_conversation()
    said = make_message(conversation, "My name is Anna and I fear the exam.")
    policy = make_version()
    reply = make_reply(
        said,
        "Anna, the exam sounds frightening.",
        generation={"policy": policy, "first_token_ms": 120.0, "total_ms": 900.0, "completion_tokens": 9},
    )
    other = make_reply(said, "Hm.", sibling_index=1, is_selected=False, status="failed", failure_code="timeout_whole")
    note = make_message(conversation, "Call Anna back.", kind=MessageKind.NOTE, author=make_user(display_name="Robin"))
    SafetyVerdict.objects.create(
        message=said, direction="visitor", screen_version="screen-1", level="watch", own_level="watch", score=0.4
    )
    Feedback.objects.create(message=reply, visitor=conversation.visitor, value=1)
    Feedback.objects.create(message=reply, visitor=conversation.visitor, value=-1)
    grade(
        said,
        reply,
        [
            {"criterion_id": "C1", "level": 0.75, "none_reason": None, "evidence": [6, 14]},
            {"criterion_id": "C2", "level": None, "none_reason": "no_answer", "evidence": None},
            {"criterion_id": "C3", "level": 0.5, "none_reason": None, "evidence": None, "quote_unfound": True},
        ],
    )
    (turn,) = turns(conversation)
    assert turn.redacted
    assert turn.text == "My name is [name_1] and I fear the exam."
    assert [(one.direction, one.level, one.score, one.version) for one in turn.safety] == [
        ("visitor", "watch", 0.4, "screen-1")
    ]
    assert turn.rubric is not None
    assert turn.rubric.weights == WEIGHTS
    assert turn.rubric.criteria[0].text == "Names what [name_1] fears"
    first, second = turn.replies
    assert (first.id, first.text) == (reply.pk, "[name_1], the exam sounds frightening.")
    assert (first.policy, first.first_token_ms, first.tokens, first.feedback) == (policy.name, 120.0, 9, -1)
    assert first.score is not None
    start, end = first.score.judgements[0].evidence or (0, 0)
    assert first.text[start:end] == "the exam"
    assert first.score.judgements[1].level is None
    assert first.score.judgements[1].none_reason == "no_answer"
    assert [one.quote_unfound for one in first.score.judgements] == [False, False, True]
    assert (second.id, second.code, second.selected, second.score) == (other.pk, "timeout_whole", False, None)
    assert [(one.id, one.text, one.author) for one in turn.notes] == [(note.pk, "Call [name_1] back.", "Robin")]


def test_revealed_turn_is_the_text_itself() -> None:
    conversation = make_conversation()
    make_message(conversation, "My name is Anna.")
    (turn,) = turns(conversation, is_revealed=True)
    assert (turn.text, turn.redacted) == ("My name is Anna.", False)


def test_name_from_an_earlier_page_is_hidden_on_a_later_one() -> None:
    conversation = make_conversation()
    make_message(conversation, "My name is Anna.")
    make_message(conversation, "Anna cannot sleep.")
    (later,) = turns(conversation, seq=2)
    assert later.text == "[name_1] cannot sleep."


def test_staff_and_safety_messages_stand_at_the_turn_before_them() -> None:
    conversation = make_conversation()
    early = make_message(conversation, "Welcome.", kind=MessageKind.STAFF, author=make_user())
    first = make_message(conversation, "One.")
    between = make_message(conversation, "Card.", kind=MessageKind.SAFETY, parent=first)
    second = make_message(conversation, "Two.")
    late = make_message(conversation, "Note.", kind=MessageKind.NOTE, author=make_user())
    assert [[note.id for note in turn.notes] for turn in turns(conversation)] == [[early.pk, between.pk], [late.pk]]
    assert [[note.id for note in turn.notes] for turn in turns(conversation, seq=first.seq)] == [[early.pk, between.pk]]
    assert [[note.id for note in turn.notes] for turn in turns(conversation, seq=second.seq)] == [[late.pk]]


def test_newest_rubric_and_only_training_scores_are_shown() -> None:
    conversation = make_conversation()
    said = make_message(conversation)
    reply = make_reply(said)
    grade(said, reply, [])
    generator = make_version(VersionKind.GENERATOR, state=VersionState.RETIRED)
    TurnRubric.objects.create(
        message=said,
        generator=generator,
        weights=WEIGHTS,
        criteria=[],
        context_sha256="0",
        is_fallback=True,
        fallback_reason="invalid",
    )
    examiner = make_version(VersionKind.JUDGE, state=VersionState.RETIRED)
    TurnScore.objects.create(reply=reply, judge=examiner, role=ScoreRole.EXAMINER, reward=0.1)
    (turn,) = turns(conversation)
    assert turn.rubric is not None
    assert (turn.rubric.generator, turn.rubric.is_fallback) == (generator.name, True)
    assert turn.replies[0].score is not None
    assert turn.replies[0].score.reward == 0.7


def test_hidden_candidates_are_not_replies() -> None:
    conversation = make_conversation()
    said = make_message(conversation)
    make_reply(said, is_shown=False)
    assert turns(conversation)[0].replies == ()


def test_number_of_queries_does_not_grow_with_the_page(django_assert_num_queries: Any) -> None:
    short, long = make_conversation(), make_conversation()
    for conversation, length in ((short, 2), (long, 20)):
        for _ in range(length):
            said = make_message(conversation)
            grade(said, make_reply(said, generation={"policy": None}), [])
            make_message(conversation, "Note.", kind=MessageKind.NOTE, author=make_user())
    for conversation in (short, long):
        rows = list(conversation.messages.filter(kind=MessageKind.VISITOR).order_by("seq"))
        with django_assert_num_queries(11):
            turns_of(conversation, rows, is_revealed=False)


def test_no_messages_give_no_turns() -> None:
    assert turns_of(make_conversation(), [], is_revealed=False) == []
