"""The lines of `make bench-chat`: their shape, their bars, and that every goal of the docs has some."""

import json
import re

import pytest

from deploy.local.place import ROOT
from training.bench.chat_goals import AIMS, GOALS, Aim, Line, at_least, at_most
from training.bench.figures import Figure

PAGE = (ROOT / "docs" / "performance.md").read_text()
PROMISED = (*(f"G{number}" for number in range(1, 12)), "G14", "G15", "leak", "idle", "slow")


def line(value: float, aim: Aim) -> dict[str, object]:
    content: dict[str, object] = json.loads(
        Line(aim=aim, figure=Figure(value=value, low=value - 1, high=value + 1, n=5)).as_json()
    )
    return content


def test_a_line_has_the_agreed_fields() -> None:
    aim = Aim(key="G3.p50", what="added time", bar=at_most(5, "ms"), stretch=at_most(3, "ms"))
    assert line(3.14159, aim) == {
        "goal": "G3",
        "what": "added time",
        "value": 3.142,
        "bar": "<= 5 ms",
        "pass": True,
        "n": 5,
        "interval": [2.142, 4.142],
        "stretch": "<= 3 ms",
    }


def test_a_line_without_a_stretch_names_none() -> None:
    assert "stretch" not in line(1.0, Aim(key="G8.transactions", what="", bar=at_most(2)))


@pytest.mark.parametrize(
    ("bar", "value", "passes"),
    [
        (at_most(5, "ms"), 5.0, True),
        (at_most(5, "ms"), 5.01, False),
        (at_least(98, "%"), 98.0, True),
        (at_least(98, "%"), 97.9, False),
        (None, 1e9, True),
    ],
)
def test_a_bar_is_met_up_to_its_number(bar: object, value: float, passes: bool) -> None:
    aim = Aim(key="G5.rate", what="", bar=bar)  # type: ignore[arg-type]
    assert line(value, aim)["pass"] is passes


def test_a_value_that_only_rounds_to_its_bar_misses_it() -> None:
    assert line(2.00001, Aim(key="G1.ping", what="", bar=at_most(2.0, "x")))["pass"] is False


def test_bars_are_written_with_their_units() -> None:
    shown = [str(limit) for limit in (at_most(2.0, "x"), at_least(10_000), at_most(0.6, "GB"))]
    assert shown == ["<= x2", ">= 10,000", "<= 0.6 GB"]


@pytest.mark.parametrize("goal", PROMISED)
def test_every_promised_goal_has_a_line_with_a_bar(goal: str) -> None:
    assert any(aim.bar for aim in AIMS.values() if aim.goal == goal)
    assert goal in GOALS


@pytest.mark.parametrize("key", sorted(AIMS))
def test_every_line_is_explained(key: str) -> None:
    assert f"`{key}`" in PAGE


def test_the_page_explains_no_line_that_is_not_there() -> None:
    named = set(re.findall(r"^\| `((?:G\d+|leak|idle|slow)\.\w+)`", PAGE, re.MULTILINE))
    assert named == set(AIMS)
