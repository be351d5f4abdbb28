"""The lines of `make bench-judge`: their shape, their bars, and that the docs explain every one."""

import json

import pytest

from deploy.local.place import ROOT
from rubric import Interval
from training.bench.judge_rows import GOALS, PARTS, not_measured, row

PAGE = (ROOT / "docs" / "judges.md").read_text()


def interval(estimate: float, low: float, high: float) -> Interval:
    return Interval(estimate=estimate, low=low, high=high)


def test_a_line_has_the_agreed_fields() -> None:
    assert json.loads(row("pairs.judge", interval(0.78123, 0.75, 0.81), n=1657, note="3 ungraded").as_json()) == {
        "goal": "pairs.judge",
        "what": f"{GOALS['pairs.judge'].what}; 3 ungraded",
        "value": 0.7812,
        "bar": ">= 0.75",
        "pass": True,
        "n": 1657,
        "interval": [0.75, 0.81],
    }


@pytest.mark.parametrize(
    ("key", "found", "is_met"),
    [
        ("pairs.judge", interval(0.7499, 0.7, 0.8), False),
        ("pairs.judge_matched", interval(0.6, 0.501, 0.7), True),
        ("pairs.judge_matched", interval(0.6, 0.5, 0.7), False),  # chance must lie outside
        ("probes.judge_injection", interval(0.021, 0, 0.1), False),
        ("calibration.levels", interval(0.08, 0, 0.1), True),
        ("counsel.judge", interval(0.1, 0, 0.2), True),  # reported
    ],
)
def test_a_bar_holds_the_value_or_its_lower_end(key: str, found: Interval, is_met: bool) -> None:
    assert row(key, found, n=10).is_met is is_met


def test_what_was_not_measured_passes_nothing_and_says_why() -> None:
    line = json.loads(not_measured("pairs.judge", "no data").as_json())
    assert (line["value"], line["pass"], line["interval"], line["n"]) == (None, None, None, 0)
    assert line["what"].endswith("not measured: no data")
    assert row("pairs.judge", None, n=4).as_json() == not_measured("pairs.judge", "nothing graded").as_json()


def test_every_row_belongs_to_a_part_and_is_explained() -> None:
    assert {goal.part for goal in GOALS.values()} == set(PARTS)
    assert [key for key in GOALS if f"`{key}`" not in PAGE] == []


def test_bars_are_those_of_the_docs() -> None:
    lines = {line.split("|")[1].strip(): line for line in PAGE.splitlines() if line.startswith("| `")}
    missing = [key for key, goal in GOALS.items() if goal.bar_text not in lines.get(f"`{key}`", "")]
    assert missing == []
