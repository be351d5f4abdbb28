"""The checker that authors use: each kind of problem is said, and a good file has none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric.corpus.checking import check_files
from tests.rubric.corpus.conversations import BANK_IDS, Line, fields, row, turn

OPENING = "Nobody tells you how loud a flat is when it is empty."


def balanced() -> Line:
    """Half of the better replies are the longer ones."""
    turns = [turn(number) for number in range(6)]
    for number in range(3):
        turns[number]["reply"] = (
            f"It was never only about kettle {number}, and I would hear gladly what else went that day."
        )
    return fields(turns=turns)


def problems_of(tmp_path: Path, *lines: Line) -> str:
    path = tmp_path / "a-01.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    rows = {"a-001": row(), "a-002": row(id="a-002")}
    return "\n".join(check_files([path], rows=rows, bank_ids=BANK_IDS))


def test_a_good_file_has_no_problem(tmp_path: Path) -> None:
    assert problems_of(tmp_path, balanced()) == ""


def test_a_file_that_cannot_be_read_is_one_problem(tmp_path: Path) -> None:
    assert "line 1: author" in problems_of(tmp_path, fields(author="E"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"id": "a-099"}, "not in the matrix"),
        ({"split": "dev"}, "split differs"),
        ({"turns": [*(turn(number) for number in range(5)), turn(5) | {"need": "repair"}]}, "a repair is not planned"),
        ({"turns": [turn(number) for number in range(7)]}, "7 turns, the matrix says 6"),
        ({"profile": {"id": "p-b-001", "age": 40, "life": "x", "note": "y"}}, "must be p-a-001"),
    ],
)
def test_what_differs_from_the_plan_is_said(tmp_path: Path, changed: dict[str, object], said: str) -> None:
    assert said in problems_of(tmp_path, balanced() | changed)


def test_faults_of_a_turn_are_said(tmp_path: Path) -> None:
    line = balanced()
    turns = line["turns"]
    turns[0] |= {"reply": "word " * 120}
    turns[1] |= {"worse": turns[1]["worse"] | {"text": turns[1]["reply"]}}
    turns[2] |= {"own": [["proactive", "want", turns[2]["reply"], 1, 0]]}
    turns[3]["criteria"] |= {"p-009": [1, 0]}
    said = problems_of(tmp_path, line)
    assert "turn 1: the reply is over" in said
    assert "turn 2: the worse reply is the reply" in said
    assert "turn 3: an own criterion copies" in said
    assert "turn 4: not in the bank: p-009" in said


def test_likeness_between_conversations_and_a_lopsided_file_are_said(tmp_path: Path) -> None:
    twin = fields(id="a-002", profile={"id": "p-a-002", "age": 40, "life": "x", "note": "y"})
    said = problems_of(tmp_path, fields(), twin)
    assert "a-001 and a-002 open with the same three words" in said
    assert "a-002 repeats a reply" in said
    assert "In 100% of 12 pairs the better reply is the shorter" in said


def test_too_few_pairs_are_said(tmp_path: Path) -> None:
    turns = [turn(number) for number in range(6)]
    for each in turns[:2]:
        each |= {"worse": None, "own": [["proactive", "avoid", "Tells the person to buy a new kettle.", 0, None]]}
        each["criteria"] = {name: [levels[0], None] for name, levels in each["criteria"].items()}
    assert "4 turns have a worse reply" in problems_of(tmp_path, fields(turns=turns))
