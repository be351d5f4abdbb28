"""What the first redactor finds, what it leaves, and that its spans fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.redaction import REDACTOR_VERSION, Ledger, redact


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("write to jo.smith+x@mail.example.co.uk please", "write to [email_1] please"),
        ("see https://example.org/a?b=c) and www.example.com", "see [link_1]) and [link_2]"),
        ("call +44 20 7946 0958 or (020) 7946-0958", "call [phone_1] or [phone_2]"),
        ("my patient number is 84736251", "my patient number is [phone_1]"),
        ("passport AB1234567", "passport [number_1]"),
        ("My name is Anna Berg and Anna is tired", "My name is [name_1] [name_2] and [name_1] is tired"),
        ("I'm Tomás.", "I'm [name_1]."),
        ("hi, I’m Ana-Maria", "hi, I’m [name_1]"),
        ("call me Jo", "call me [name_1]"),
    ],
)
def test_finds_become_marks(text: str, expected: str) -> None:
    assert redact(text).text == expected


@pytest.mark.parametrize(
    "text",
    [
        "I'm so tired of it all.",
        "I'm Sorry about yesterday",
        "On 2024-05-06 and 6.5.2024 I slept 8 hours, 10,000 steps, room 1204",
        "Call 988 or 116 123 now",
        "",
        "👩‍👩‍👧 मैं थक गया हूँ",
    ],
)
def test_what_finds_nobody_is_left_alone(text: str) -> None:
    redacted = redact(text)
    assert redacted.text == text
    assert redacted.spans == ()
    assert redacted.version == REDACTOR_VERSION


def test_same_value_has_the_same_mark_throughout_a_conversation() -> None:
    ledger = Ledger()
    first = redact("My name is Anna, anna@example.org", ledger=ledger)
    second = redact("Hello Anna, write to bob@example.org or ANNA@example.org", ledger=ledger)
    assert first.text == "My name is [name_1], [email_1]"
    assert second.text == "Hello [name_1], write to [email_2] or [email_1]"


@given(st.text(max_size=200))
def test_spans_rebuild_the_original(text: str) -> None:
    redacted = redact(text)
    rebuilt, position = "", 0
    for span in redacted.spans:
        rebuilt += text[position : span.start] + span.mark
        position = span.end
    assert rebuilt + text[position:] == redacted.text


@given(st.data())
def test_evidence_moves_with_the_text(data: st.DataObject) -> None:
    text = "Hi Anna, my name is Anna, mail a@example.org today."
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    redacted = redact(text)
    placed_start, placed_end = redacted.place(start, end)
    assert 0 <= placed_start <= placed_end <= len(redacted.text)
    touches_a_mark = any(start < span.end and span.start < end for span in redacted.spans)
    if not touches_a_mark:
        assert redacted.text[placed_start:placed_end] == text[start:end]


def test_evidence_that_touches_a_mark_takes_it_in_whole() -> None:
    text = "I hear you, a@example.org, truly."
    redacted = redact(text)
    start, end = redacted.place(text.index("you"), text.index("example") + 3)
    assert redacted.text[start:end] == "you, [email_1]"
