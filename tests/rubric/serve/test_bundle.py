"""Only a whole export is opened: every file there, every hash right, thresholds in range."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rubric import Level
from rubric.serve.bundle import FILES, BundleInvalid, Thresholds, file_sha256, load_bundle

LEVELS = {"watch": 0.3, "high": 0.7}


@pytest.fixture
def folder(tiny_bundle: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_bundle, tmp_path / "copy"))


def test_a_whole_export_is_opened(folder: Path) -> None:
    opened = load_bundle(folder)
    assert (opened.encoder_version, opened.screen_version) == ("encoder-tiny", "screen-tiny")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(BundleInvalid, match=name):
        load_bundle(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_is_named(folder: Path, name: str) -> None:
    with (folder / name).open("ab") as stream:
        stream.write(b" ")
    with pytest.raises(BundleInvalid, match=f"{name} differs"):
        load_bundle(folder)


def _set(folder: Path, change: Callable[[dict[str, object]], None]) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_another_format_is_refused(folder: Path) -> None:
    _set(folder, lambda manifest: manifest.update(format=99))
    with pytest.raises(BundleInvalid, match="format"):
        load_bundle(folder)


def test_a_manifest_without_files_is_refused(folder: Path) -> None:
    _set(folder, lambda manifest: manifest.update(files=None))
    with pytest.raises(BundleInvalid, match="lists no files"):
        load_bundle(folder)


def test_an_export_that_was_cut_off_has_no_manifest_and_is_refused(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    with pytest.raises(BundleInvalid, match="manifest"):
        load_bundle(folder)


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"thresholds": {}, "mix": {"network": 1.0, "surface": 1.0}},
        {"thresholds": {"visitor": {"watch": 0.0, "high": 0.5}}, "mix": {"network": 1.0, "surface": 1.0}},
        {"thresholds": {"visitor": LEVELS, "reply": LEVELS}},
        {"thresholds": {"visitor": LEVELS, "reply": LEVELS}, "mix": {"network": -1.0, "surface": 1.0}},
    ],
)
def test_facts_out_of_range_are_refused(folder: Path, facts: dict[str, object]) -> None:
    (folder / "screen.json").write_text(json.dumps(facts))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["screen.json"] = file_sha256(folder / "screen.json")
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleInvalid, match=r"screen\.json"):
        load_bundle(folder)


@pytest.mark.parametrize(
    ("any_crisis", "high", "level"),
    [
        (0.1, 0.0, Level.NONE),
        (0.3, 0.1, Level.WATCH),
        (0.9, 0.69, Level.WATCH),
        (0.9, 0.7, Level.HIGH),
        (0.1, 0.7, Level.HIGH),
    ],
)
def test_a_level_begins_at_its_threshold(any_crisis: float, high: float, level: Level) -> None:
    assert Thresholds(watch=0.3, high=0.7).level_of(any_crisis=any_crisis, high=high) is level
