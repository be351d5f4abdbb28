"""How the bank is read: strictly, with the place of a fault, and with a version that follows content alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rubric.bank import Bank, Setting, load_bank, parse_bank
from rubric.criteria import Dimension, Polarity, Stage
from rubric.errors import BankInvalid
from rubric.states import Emotion, Need

GOOD: dict[str, Any] = {
    "id": "c-001",
    "dimension": "cognitive",
    "polarity": "want",
    "text": "Asks one question about “{cue}”",
    "stages": ["opening"],
    "emotions": ["fear", "anger"],
    "needs": [],
    "kind": "state",
    "setting": "support",
    "slot": "cue",
}


def line(**changes: object) -> str:
    fields = {**GOOD, **changes}
    return json.dumps({name: value for name, value in fields.items() if value is not ...})


def read(*lines: str, file: str = "cognitive.jsonl", retired_text: str = "# none\n") -> Bank:
    return parse_bank({file: "\n".join(lines) + "\n"}, retired_text=retired_text)


def test_a_good_line_is_read_and_written_alike() -> None:
    (entry,) = read(line()).criteria
    assert entry.to_json() == {**GOOD, "emotions": ["anger", "fear"]}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("", "not valid JSON"),
        ("[]", "not a JSON object"),
        ('{"id": "c-001", "id": "c-001"}', "a key is given twice"),
        (line(text=...), "text: missing"),
        (line(note="x"), "1 fields are unknown"),
        (line(id="c-1"), "id: "),
        (line(id="a-001"), "id: "),
        (line(id=1), "id: a text is expected"),
        (line(dimension="moral"), "dimension: an unknown value"),
        (line(polarity=None), "polarity: a text is expected"),
        (line(text="Too short"[:7], slot=...), "text: "),
        (line(text="Asks " + "x" * 136, slot=...), "text: "),
        (line(text="Asks  two spaces", slot=...), "text: "),
        (line(text="Asks in a\u200b hidden way", slot=...), "text: "),
        (line(stages="opening"), "stages: a list of texts is expected"),
        (line(stages=["begin"]), "stages: an unknown value"),
        (line(emotions=["fear", "fear"]), "emotions: a value is given twice"),
        (line(needs=[1]), "needs: a list of texts is expected"),
        (line(kind="general"), "kind: "),
        (line(kind="special"), "kind: an unknown value"),
        (line(emotions=[]), "kind: "),
        (line(setting="shop"), "setting: an unknown value"),
        (line(slot="name"), "slot: only cue is known"),
        (line(slot=...), "slot: the text and the field"),
        (line(text="Asks one open question"), "slot: the text and the field"),
        (line(text="Asks about {cue} and {name}"), "slot: the text and the field"),
        (line(text="Asks about {cue} and {cue}"), "slot: the text and the field"),
    ],
)
def test_a_bad_line_is_named_by_file_line_and_fault(bad: str, reason: str) -> None:
    with pytest.raises(BankInvalid) as caught:
        read(line(id="c-002"), bad)
    assert (caught.value.file, caught.value.line_number) == ("cognitive.jsonl", 2)
    assert caught.value.reason.startswith(reason)
    assert "cognitive.jsonl, line 2" in str(caught.value)


def test_a_criterion_in_the_file_of_another_dimension_is_refused() -> None:
    with pytest.raises(BankInvalid, match="another file"):
        read(line(), file="affective.jsonl")


def test_an_id_given_twice_or_again_after_retirement_is_refused() -> None:
    with pytest.raises(BankInvalid, match="given twice"):
        read(line(), line())
    with pytest.raises(BankInvalid, match="retired"):
        read(line(), retired_text="# gone\nc-001\n")


def test_the_list_of_retired_ids_holds_ids_and_comments_only() -> None:
    assert read(line(), retired_text="# gone\n\nc-900\n").retired == {"c-900"}
    with pytest.raises(BankInvalid, match=r"retired\.txt, line 2: not an id"):
        read(line(), retired_text="# gone\nc-9 \n")


def test_the_version_follows_content_and_no_order() -> None:
    one, two = line(), line(id="c-002", text="Names “{cue}” first")
    version = read(one, two).version
    assert len(version) == 64
    assert read(two, one).version == version
    assert read(line(emotions=["anger", "fear"]), two).version == version
    assert read(one, two, retired_text="c-900\n").version == version
    assert read(one).version != version
    assert read(one, line(id="c-002", text="Names “{cue}” last")).version != version
    assert read(one, line(id="c-002", text="Names “{cue}” first", polarity="avoid")).version != version


def test_the_bank_is_read_once_and_found_by_id() -> None:
    bank = load_bank()
    assert load_bank() is bank
    assert all(bank.by_id[entry.id] is entry for entry in bank.criteria)
    assert [entry.id for entry in bank.criteria] == sorted(bank.by_id)


def test_a_selection_keeps_to_every_part_that_is_asked_for() -> None:
    bank = read(
        line(),
        line(id="c-002", emotions=[], needs=["facts"], stages=[], setting="service"),
        line(id="c-003", emotions=[], kind="general", stages=[], polarity="avoid"),
    )

    def ids(**asked: Any) -> list[str]:
        return [entry.id for entry in bank.select(**asked)]

    assert ids() == ["c-001", "c-002", "c-003"]
    assert ids(dimension=Dimension.AFFECTIVE) == []
    assert ids(polarity=Polarity.AVOID) == ["c-003"]
    assert ids(setting=Setting.SERVICE) == ["c-002"]
    assert ids(stage=Stage.CLOSING) == ["c-002", "c-003"]
    assert ids(emotion=Emotion.FEAR, need=Need.FACTS) == ["c-001", "c-002", "c-003"]
    assert ids(emotion=Emotion.JOY, need=Need.HEARD) == ["c-003"]
