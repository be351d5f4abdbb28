"""The download holds all that the visitor may see, and nothing else."""

import pytest

from chat.models import Consent, Feedback, Rating
from chat.models.conversations import MessageKind
from chat.services.download import download_conversation
from tests.factories import make_conversation, make_message, make_reply, make_user

pytestmark = pytest.mark.django_db


def test_file_holds_what_was_shown_and_not_what_was_not() -> None:
    conversation = make_conversation()
    said = make_message(conversation, "I cannot sleep.")
    reply = make_reply(said, "Since when?")
    make_reply(said, "Hidden candidate.", is_shown=False, sibling_index=1)
    make_message(conversation, "A staff note.", kind=MessageKind.NOTE, author=make_user())
    make_message(conversation, "Hello from staff.", kind=MessageKind.STAFF, author=make_user(display_name="Robin"))
    Feedback.objects.create(message=reply, visitor=conversation.visitor, value=1)
    Rating.objects.create(conversation=conversation, stars=5, comment="ok")
    Consent.objects.create(visitor=conversation.visitor, purpose="improvement", version="v", is_granted=True)
    file = download_conversation(conversation)
    assert [message.text for message in file.messages] == ["I cannot sleep.", "Since when?", "Hello from staff."]
    assert [message.feedback for message in file.messages] == [0, 1, 0]
    assert file.messages[2].author == "Robin"
    assert [rating.stars for rating in file.ratings] == [5]
    assert [choice.granted for choice in file.consents] == [True]


def test_length_does_not_change_the_number_of_queries(django_assert_num_queries: object) -> None:
    short, long = make_conversation(), make_conversation()
    make_reply(make_message(short))
    for _ in range(10):
        make_reply(make_message(long))
    for conversation in (short, long):
        with django_assert_num_queries(7):  # type: ignore[operator]
            download_conversation(conversation)
