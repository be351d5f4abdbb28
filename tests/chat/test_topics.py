"""Topics: known ones, for whom they are."""

from uuid import uuid4

import pytest

from chat.topics import TopicUnknown, open_topic, register_topic
from tests.factories import make_conversation, make_user

pytestmark = pytest.mark.django_db


def test_reviewers_follow_conversations_and_the_inbox() -> None:
    conversation, user = make_conversation(), make_user()
    topic = open_topic(f"conversation:{conversation.pk}", user)
    assert topic.group == f"conversation.{conversation.pk.hex}"
    assert open_topic("inbox", user).group == "inbox"


@pytest.mark.parametrize(
    "name",
    ["", "conversation", "conversation:", "conversation:x", "inbox:1", "nothing:1", "run:1", "a" * 500, "\x00", "../x"],
)
def test_what_is_not_there_is_unknown(name: str) -> None:
    with pytest.raises(TopicUnknown):
        open_topic(name, make_user())


def test_missing_conversation_and_missing_right_look_the_same() -> None:
    conversation = make_conversation()
    with pytest.raises(TopicUnknown):
        open_topic(f"conversation:{uuid4()}", make_user())
    for role in ("trainer", "promoter", ""):
        with pytest.raises(TopicUnknown):
            open_topic(f"conversation:{conversation.pk}", make_user(role))


def test_apps_above_register_their_own() -> None:
    register_topic("thing", lambda user, key: key == "1-2")
    assert open_topic("thing:1-2", make_user()).group == "thing.12"
    with pytest.raises(TopicUnknown):
        open_topic("thing:2", make_user())
