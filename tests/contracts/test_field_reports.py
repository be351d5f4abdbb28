"""docs/field-reports.md claims a test for every kind of fault; this holds the claim."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "field-reports.md").read_text()
CLAIMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
WANTED = [
    *("A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "A12", "A13", "A16"),
    *(f"B{number}" for number in (*range(1, 13), 14, 15, 17, 18, 19, 27)),
]


@pytest.mark.parametrize("report", WANTED)
def test_every_kind_has_a_row_with_a_test(report: str) -> None:
    rows = [row for row in PAGE.splitlines() if re.match(rf"\| (?:\w+, )?{report}\b", row)]
    assert len(rows) == 1
    assert "::test_" in rows[0]


@pytest.mark.parametrize(("file", "name"), CLAIMED)
def test_every_claimed_test_exists(file: str, name: str) -> None:
    assert re.search(rf"^ *(?:async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE)
