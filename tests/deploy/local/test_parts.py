"""An export is made anew when anything changes that it is made from."""

import ast
from pathlib import Path

import pytest

from deploy.local import parts
from deploy.local.place import ROOT
from deploy.local.steps import Part, files_below

RECIPES = ROOT / "training" / "recipes"


def hashed() -> set[Path]:
    return {path for top in parts.ENCODER_FILES for path in files_below(top)}


def recipes_used_by(module: Path) -> set[Path]:
    """The module and every recipe that it imports, through all of them."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("training.recipes."):
                waiting.append(RECIPES / f"{(node.module or '').removeprefix('training.recipes.')}.py")
    return found


def test_every_recipe_that_the_export_runs_is_in_its_key() -> None:
    assert recipes_used_by(RECIPES / "encoder_export.py") <= hashed()


def test_what_the_screen_and_the_judge_learned_is_in_its_key() -> None:
    weights = ROOT / "rubric" / "serve" / "weights"
    assert {path for path in weights.iterdir() if path.is_file()} <= hashed()


@pytest.mark.parametrize("name", ["judge.safetensors", "judge.json"])
def test_other_weights_of_the_judge_are_another_export(tmp_path: Path, name: str) -> None:
    def key() -> str:
        return Part(kind="encoder", title="", files=(tmp_path,), size_mb=0, build=lambda _: None).key

    keys = {key()}
    for content in (b"1", b"2"):
        (tmp_path / name).write_bytes(content)
        keys.add(key())
    assert len(keys) == 3
