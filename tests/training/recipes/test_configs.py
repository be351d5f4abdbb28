"""Configurations of recipes: strict about keys, and closed to the examiner for every recipe but its own."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

from training.recipes import configs, examiner
from training.recipes.configs import ConfigInvalid, ExaminerRefused, read_config, read_table

RECIPES = Path(configs.__file__).parent
CONFIGS = RECIPES.parent / "configs"


@dataclass(frozen=True, kw_only=True)
class Part:
    rate: float
    sizes: tuple[int, int] = (1, 2)


@dataclass(frozen=True, kw_only=True)
class Whole:
    seed: int
    part: Part
    shares: dict[str, float]


def written(folder: Path, text: str) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(text, "utf-8")
    return path


GOOD = "seed: 3\npart: {rate: 1, sizes: [4, 5]}\nshares: {one: 0.5}\n"


def test_a_file_becomes_frozen_values(tmp_path: Path) -> None:
    read = read_config(written(tmp_path, GOOD), Whole, recipe="test")
    assert read == Whole(seed=3, part=Part(rate=1.0, sizes=(4, 5)), shares={"one": 0.5})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (GOOD + "more: 1\n", "'more'"),
        ("seed: 3\nshares: {one: 0.5}\n", "'part'"),
        (GOOD.replace("rate", "rats"), "'rats'"),
        (GOOD.replace("rate: 1", "rate: fast"), "rate"),
        (GOOD.replace("seed: 3", "seed: true"), "seed"),
        (GOOD.replace("[4, 5]", "[4]"), "sizes"),
        ("- 1\n", "no table"),
        ("a: [\n", "no YAML"),
    ],
)
def test_what_is_no_configuration_is_refused_by_name(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ConfigInvalid, match=named):
        read_config(written(tmp_path, text), Whole, recipe="test")


@pytest.mark.parametrize(
    "text",
    [
        "reward: {weights: rubric/examiner_weights/examiner.safetensors}\n",
        "rewards: [judge, Examiner]\n",
        "fit: {examiner: 0.5}\n",
        "judge: examiner-0123456789ab\n",
    ],
)
def test_no_recipe_but_its_own_may_name_the_examiner(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    for recipe in ("judge", "screen", "refresh"):
        with pytest.raises(ExaminerRefused) as caught:
            read_table(path, recipe=recipe)
        assert caught.value.recipe == recipe
    assert read_table(path, recipe="examiner")


def test_the_committed_configurations_hold_to_it() -> None:
    for path in CONFIGS.glob("*.yaml"):
        assert read_table(path, recipe=path.stem)
    assert read_config(examiner.CONFIG, examiner.ExaminerConfig, recipe="examiner").folds == 5


def imports_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return named | {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


def test_recipes_read_their_files_here_and_do_not_import_the_examiner() -> None:
    others = [path for path in RECIPES.glob("*.py") if not path.stem.startswith("examiner")]
    assert others
    for path in others:
        found = imports_of(path)
        assert "yaml" not in found or path.stem == "configs", path.name
        assert not any(name.startswith("rubric.examiner") for name in found), path.name
