"""What staff do: once, in order, audited, and told to the visitor."""

import pytest

from chat.models import Alert, AuditEntry, Message
from chat.models.conversations import ConversationState, MessageKind
from chat.protocol import ProtocolError
from chat.services.errors import VerbRefused
from chat.services.staff import ClientIdTaken, acknowledge_alert, post_note, post_staff_message, record_reveal
from tests.factories import make_conversation, make_message, make_user

pytestmark = pytest.mark.django_db


def test_staff_message_takes_the_next_seq_and_is_stored_once() -> None:
    conversation, user = make_conversation(), make_user()
    make_message(conversation)
    first = post_staff_message(conversation.pk, user=user, client_id="c1", text="  I am here now. ")
    again = post_staff_message(conversation.pk, user=user, client_id="c1", text="  I am here now. ")
    conversation.refresh_from_db()
    assert first == again
    assert (first.kind, first.seq, first.text, first.author) == (MessageKind.STAFF, 2, "I am here now.", user)
    assert conversation.last_seq == 2
    assert AuditEntry.objects.filter(verb="staff.post").count() == 1


def test_followers_are_told_after_the_commit(
    django_capture_on_commit_callbacks: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr("chat.events.publish", lambda _id, frame, is_for_visitor=True: told.append(frame))
    conversation = make_conversation()
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        post_staff_message(conversation.pk, user=make_user(), client_id="c1", text="Hello.")
        assert not told
    assert len(told) == 1
    assert '"message.changed"' in told[0]


def test_another_persons_client_id_is_not_taken_over() -> None:
    conversation = make_conversation()
    make_message(conversation, client_id="c1")
    post_staff_message(conversation.pk, user=make_user(), client_id="c2", text="One.")
    for client_id in ("c1", "c2"):
        with pytest.raises(ClientIdTaken):
            post_staff_message(conversation.pk, user=make_user(), client_id=client_id, text="Two.")
    assert Message.objects.count() == 2


def test_closed_conversation_takes_notes_but_no_staff_message() -> None:
    conversation, user = make_conversation(state=ConversationState.CLOSED), make_user()
    with pytest.raises(VerbRefused, match="closed"):
        post_staff_message(conversation.pk, user=user, client_id="c1", text="Too late.")
    assert post_note(conversation.pk, user=user, client_id="c2", text="Seen.").kind == MessageKind.NOTE


@pytest.mark.parametrize("text", ["", "  \n ", "a\x00b", "\ud83d", "x" * 8_001])
def test_text_that_cannot_be_kept_is_refused(text: str) -> None:
    conversation = make_conversation()
    with pytest.raises(ProtocolError):
        post_staff_message(conversation.pk, user=make_user(), client_id="c1", text=text)
    assert Message.objects.count() == 0


def test_first_acknowledgement_stays() -> None:
    alert = Alert.objects.create(kind="crisis", conversation=make_conversation())
    first, second = make_user(), make_user()
    acknowledge_alert(alert.pk, user=first)
    acknowledge_alert(alert.pk, user=second)
    alert.refresh_from_db()
    assert alert.acknowledged_by == first
    assert AuditEntry.objects.filter(verb="alert.acknowledge").count() == 1


def test_a_look_behind_redaction_is_written_down() -> None:
    conversation, lead = make_conversation(), make_user("lead")
    record_reveal(conversation.pk, user=lead)
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.actor_id) == ("conversation.reveal", lead.pk)
