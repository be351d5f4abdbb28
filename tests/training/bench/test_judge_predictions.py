"""Out-of-fold predictions are read strictly: a file that is not what it promises measures nothing."""

from pathlib import Path

import pytest

from tests.fakes.judges import EVEN, shares_of, write_lines
from training.bench.judge_predictions import missing_note, read_epitome_folds, read_folds
from training.data.reading import DataFileInvalid

LINE = {"conversation": "a-001", "turn": 3, "side": "worse", "fold": 0, "mechanisms": EVEN}


def test_levels_come_as_means_in_the_order_of_the_criteria(tmp_path: Path) -> None:
    shares = [(0.5, 0, 0, 0, 0.5), shares_of(0.75)]
    write_lines(tmp_path / "judge" / "folds.jsonl", [{**LINE, "levels": shares}])
    folds = read_folds(tmp_path, "judge")
    assert folds is not None
    assert folds["a-001.3/worse"].expected == (0.5, 0.75)


def test_predictions_that_are_not_there_are_none_and_the_command_is_named(tmp_path: Path) -> None:
    assert read_folds(tmp_path, "examiner") is None
    assert read_epitome_folds(tmp_path, "judge") is None
    assert "training.recipes.examiner" in missing_note("examiner")


@pytest.mark.parametrize(
    "change",
    [
        {"side": "better"},
        {"turn": 0},
        {"levels": [[0.5, 0.5]]},
        {"levels": [[2, -1, 0, 0, 0]]},
        {"mechanisms": [[0.9, 0.9, 0.9]] * 3},
        {"quality": "NaN"},
    ],
)
def test_a_bad_line_refuses_the_file(tmp_path: Path, change: dict[str, object]) -> None:
    write_lines(tmp_path / "judge" / "folds.jsonl", [{**LINE, **change}])
    with pytest.raises(DataFileInvalid):
        read_folds(tmp_path, "judge")


def test_a_reply_predicted_twice_refuses_the_file(tmp_path: Path) -> None:
    write_lines(tmp_path / "judge" / "folds.jsonl", [LINE, {**LINE, "fold": 1}])
    with pytest.raises(DataFileInvalid):
        read_folds(tmp_path, "judge")


def test_epitome_goes_by_pair_and_groups_by_post(tmp_path: Path) -> None:
    write_lines(tmp_path / "examiner" / "epitome.jsonl", [{"pair": "post1.reply2", "fold": 4, "mechanisms": EVEN}])
    folds = read_epitome_folds(tmp_path, "examiner")
    assert folds is not None
    assert folds["post1.reply2"].group == "post1"
