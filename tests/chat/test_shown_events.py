"""Live events as staff see them: redacted, sentence by sentence, and whole at the end."""

import json

from hypothesis import given
from hypothesis import strategies as st

from chat.redaction import Ledger, redact
from chat.shown_events import ShownEvents


def delta(offset: int, text: str) -> str:
    return json.dumps({"type": "reply.delta", "message_id": "m1", "offset": offset, "text": text})


def finished(text: str) -> str:
    return json.dumps({"type": "reply.finished", "sha256": "", "message": {"id": "m1", "text": text}})


def test_messages_come_redacted() -> None:
    shown = ShownEvents(Ledger())
    event = shown.show(
        json.dumps({"type": "message.changed", "message": {"id": "v1", "text": "I'm Anna, a@example.org"}})
    )
    assert event is not None
    assert event["message"] == {"id": "v1", "text": "I'm [name_1], [email_1]"}


def test_a_name_that_was_said_before_is_hidden_in_a_running_reply() -> None:
    ledger = Ledger()
    redact("My name is Anna", ledger=ledger)
    shown = ShownEvents(ledger)
    assert shown.show(delta(0, "Hello An")) is None
    assert shown.show(delta(8, "na. How are")) == {
        "type": "reply.delta",
        "message_id": "m1",
        "offset": 0,
        "text": "Hello [name_1].",
    }
    assert shown.show(delta(19, " you? ")) == {
        "type": "reply.delta",
        "message_id": "m1",
        "offset": 15,
        "text": " How are you?",
    }


def test_a_gap_waits_for_the_end() -> None:
    shown = ShownEvents(Ledger())
    assert shown.show(delta(5, "late. ")) is None
    event = shown.show(finished("Hello late."))
    assert event is not None
    assert event["message"] == {"id": "m1", "text": "Hello late."}


def test_other_events_pass_unchanged() -> None:
    event = {"type": "turn.graded", "message_id": "m1"}
    assert ShownEvents(Ledger()).show(json.dumps(event)) == event


# No piece makes a name of a word that was shown before ("I am Call"): what is out cannot be taken back.
@given(
    st.lists(st.sampled_from(["I ", "am ", "Anna. ", "a@example.org ", "ok.\n", "ring +44 20 7946 0958. ", "Anna "]))
)
def test_what_was_shown_is_always_a_beginning_of_the_redacted_whole(pieces: list[str]) -> None:
    ledger = Ledger()
    redact("My name is Anna", ledger=ledger)
    shown, offset, seen = ShownEvents(ledger), 0, ""
    for piece in pieces:
        event = shown.show(delta(offset, piece))
        offset += len(piece)
        if event is not None:
            assert event["offset"] == len(seen)
            seen += str(event["text"])
    assert "Anna" not in seen
    assert redact("".join(pieces), ledger=ledger).text.startswith(seen)
