"""The crisis suite keeps its promises: enough rows of each kind, families in one file only, nothing twice.

Reads the files of training/bench/safety_suite as text; nothing of the screen is loaded.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path

import pytest

SUITE = Path(__file__).resolve().parents[3] / "training" / "bench" / "safety_suite"
FILES = ("tuning", "counted_before", "held_out")
PAIRS = tuple(combinations(FILES, 2))
KINDS = ("crisis", "look_alike")
LEAST_ROWS = {"tuning": 75, "counted_before": 85, "held_out": 90}
LEAST_HELD_OUT_FAMILIES = 14
FAMILIES_IN_STEPS = (
    "denial_after_disclosure",
    "disclosure_in_steps",
    "asking_for_a_friend",
    "topic_change_after_telling",
    "steps_to_nothing",
)
ALLOWED_KEYS = {"id", "kind", "family", "turns", "note"}
GRAM_WORDS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One suite row; `keys` are the names its JSON object carried."""

    id: str
    kind: str
    family: str
    turns: tuple[str, ...]
    keys: frozenset[str]


def read_rows(file: str) -> list[Row]:
    parsed = [json.loads(line) for line in (SUITE / f"{file}.jsonl").read_text(encoding="utf-8").splitlines()]
    return [
        Row(id=p["id"], kind=p["kind"], family=p["family"], turns=tuple(p["turns"]), keys=frozenset(p)) for p in parsed
    ]


ROWS = {file: read_rows(file) for file in FILES}
ALL_ROWS = list(chain.from_iterable(ROWS.values()))


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower().replace("’", "").replace("'", ""))


def plain(text: str) -> str:
    """Text by its words alone, so that punctuation cannot hide a repeat; emoji-only turns keep their signs."""
    return " ".join(words(text)) or text.strip()


def grams(rows: Iterable[Row]) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for turn in chain.from_iterable(row.turns for row in rows):
        turn_words = words(turn)
        found.update(tuple(turn_words[i : i + GRAM_WORDS]) for i in range(len(turn_words) - GRAM_WORDS + 1))
    return found


def repeated(values: Iterable[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("kind", KINDS)
def test_each_file_holds_enough_rows_of_each_kind(file: str, kind: str) -> None:
    assert sum(row.kind == kind for row in ROWS[file]) >= LEAST_ROWS[file]


def test_all_files_together_hold_250_rows_of_each_kind() -> None:
    counts = Counter(row.kind for row in ALL_ROWS)
    assert set(counts) == set(KINDS)
    assert min(counts.values()) >= 250


def test_what_is_held_out_has_at_least_14_families_of_each_kind() -> None:
    for kind in KINDS:
        assert len({row.family for row in ROWS["held_out"] if row.kind == kind}) >= LEAST_HELD_OUT_FAMILIES


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_no_family_lies_in_two_files(pair: tuple[str, str]) -> None:
    one, other = ({row.family for row in ROWS[file]} for file in pair)
    assert one
    assert other
    assert not one & other


def test_a_family_has_one_kind_and_between_6_and_14_rows() -> None:
    by_family = Counter((row.family, row.kind) for row in ALL_ROWS)
    assert not repeated(family for family, _ in by_family)
    assert [family for family, count in by_family.items() if not 6 <= count <= 14] == []


def test_ids_are_unique_and_name_the_kind() -> None:
    assert repeated(row.id for row in ALL_ROWS) == []
    assert [row.id for row in ALL_ROWS if not re.fullmatch(rf"{row.kind[0]}-\d{{3}}", row.id)] == []


def test_rows_carry_known_keys_only() -> None:
    assert [row.id for row in ALL_ROWS if not ALLOWED_KEYS - {"note"} <= row.keys <= ALLOWED_KEYS] == []


def test_no_row_is_without_turns_and_no_turn_is_empty() -> None:
    assert [row.id for row in ALL_ROWS if not row.turns or not all(turn.strip() for turn in row.turns)] == []


def test_turns_fit_one_message_without_stray_space() -> None:
    assert [row.id for row in ALL_ROWS if any(turn != turn.strip() or len(turn) > 8000 for turn in row.turns)] == []


def test_families_that_need_steps_have_two_to_four_turns() -> None:
    steps = [row for row in ALL_ROWS if row.family in FAMILIES_IN_STEPS]
    assert {row.family for row in steps} == set(FAMILIES_IN_STEPS)
    assert [row.id for row in steps if not 2 <= len(row.turns) <= 4] == []


def test_look_alikes_have_several_turns_too() -> None:
    # Otherwise a screen could pass by counting turns.
    for file in FILES:
        assert sum(row.kind == "look_alike" and len(row.turns) > 1 for row in ROWS[file]) >= 3


def test_no_line_is_written_twice() -> None:
    assert repeated(plain(turn) for row in ALL_ROWS for turn in row.turns) == []


def test_no_text_is_shared_between_crisis_and_look_alike() -> None:
    crisis, look_alike = (grams(row for row in ALL_ROWS if row.kind == kind) for kind in KINDS)
    assert crisis
    assert look_alike
    assert not crisis & look_alike


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_rows_of_two_files_share_no_five_words(pair: tuple[str, str]) -> None:
    one, other = (grams(ROWS[file]) for file in pair)
    assert one
    assert other
    assert not one & other


def test_the_data_card_states_the_counts_of_the_files() -> None:
    card = (SUITE / "README.md").read_text(encoding="utf-8")
    for file in FILES:
        cells = []
        for kind in KINDS:
            families = [row.family for row in ROWS[file] if row.kind == kind]
            cells.append(f"{len(families)} in {len(set(families))} families")
        assert f"| `{file}.jsonl` | {' | '.join(cells)} |" in card
