"""The run of `make bench-chat`: which parts are started, what is kept, what a failure does."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deploy import settings
from deploy.local.chat_bench import __main__ as bench
from deploy.local.chat_bench.plan import PLAN, Measurement, Part
from deploy.local.chat_bench.record import MAX_AGE_S, Record
from training.bench.chat_goals import AIMS, GOALS, Line
from training.bench.figures import of_rounds
from training.bench.turns import SCREEN_DEADLINE_S


def test_the_plan_answers_every_goal() -> None:
    assert {goal for part in PLAN for one in part.measurements for goal in one.goals} == set(GOALS)


def test_the_bench_counts_as_late_what_the_product_does_not_wait_for() -> None:
    assert SCREEN_DEADLINE_S == settings.RAPPORT_SCREEN_TIMEOUT_S


def test_measurements_have_names_of_their_own() -> None:
    names = [one.name for part in PLAN for one in part.measurements]
    assert len(names) == len(set(names))


def test_one_goal_starts_only_what_it_needs() -> None:
    parts = bench.parts_for(["G1"])
    assert [[one.name for one in measurements] for _, measurements in parts] == [["inbound"]]


def test_what_was_measured_is_not_measured_again() -> None:
    assert bench.parts_for(["G1"], done=["inbound"]) == []


def test_no_name_means_every_goal_and_a_wrong_one_is_told() -> None:
    assert bench.wanted_goals("") == GOALS
    assert bench.wanted_goals("G3, G1") == ("G3", "G1")
    with pytest.raises(ValueError, match="G99"):
        bench.wanted_goals("G99")


@contextlib.asynccontextmanager
async def nothing() -> AsyncIterator[None]:
    yield


async def well(_: object) -> list[Line]:
    return [Line(aim=AIMS["G1.ping"], figure=of_rounds([1.5]))]


async def badly(_: object) -> list[Line]:
    raise RuntimeError("no answer")


def small_plan() -> tuple[Part, ...]:
    return (
        Part(
            name="small",
            open=nothing,
            measurements=(
                Measurement(name="bad", goals=("G2",), measure=badly),
                Measurement(name="good", goals=("G1",), measure=well),
            ),
        ),
    )


async def test_one_failure_does_not_keep_the_others_from_being_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "PLAN", small_plan())
    record = Record(path=tmp_path / "run.jsonl", code="c")
    assert await bench.measure(["G1", "G2"], record) == ["bad"]
    bench.print_lines(["G1", "G2"], record)
    assert json.loads(capsys.readouterr().out)["value"] == 1.5


def test_an_interrupted_run_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    Record(path=path, code="c").keep("inbound", ["{}"])
    with path.open("a") as file:
        file.write('{"name": "half')
    assert Record.open(path, code="c").lines == {"inbound": ["{}"]}


def test_figures_of_other_code_or_of_long_ago_are_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    Record(path=path, code="c").keep("inbound", ["{}"])
    assert Record.open(path, code="c", now_s=10**10 + MAX_AGE_S).lines == {}
    Record(path=path, code="c").keep("inbound", ["{}"])
    assert Record.open(path, code="d").lines == {}
    assert not path.exists()


def test_a_whole_run_makes_room_for_the_next(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    record = Record(path=path, code="c")
    record.keep("inbound", ["{}"])
    record.close()
    assert Record.open(path, code="c").lines == {}
    assert (tmp_path / "run.last.jsonl").exists()
