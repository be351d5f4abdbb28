"""The folder that the encoder process serves: what must lie in it, checked against its manifest before anything runs.

`training.recipes.encoder_export` writes it (manifest last); `networks.py` opens what is in it. A file that is missing
or differs from its hash ends the start with `BundleInvalid`, so a half-written export is never served.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rubric.encoder_values import Direction, Level
from rubric.errors import RubricError
from rubric.json_types import JsonObject, JsonValue

MANIFEST: Final = "manifest.json"
EMBED_MODEL: Final = "model.onnx"
SCREEN_MODEL: Final = "screen.onnx"
SCREEN_FACTS: Final = "screen.json"
SURFACE: Final = "surface.safetensors"
COVERAGE: Final = "coverage.safetensors"
TOKENIZER: Final = "tokenizer.json"
JUDGE_READ: Final = "judge_read.onnx"
JUDGE_CRITERION: Final = "judge_criterion.onnx"
JUDGE_LEVEL: Final = "judge_level.onnx"
JUDGE_FACTS: Final = "judge.json"
JUDGE_FILES: Final = (JUDGE_READ, JUDGE_CRITERION, JUDGE_LEVEL, JUDGE_FACTS)
FILES: Final = (EMBED_MODEL, SCREEN_MODEL, SCREEN_FACTS, SURFACE, COVERAGE, TOKENIZER, *JUDGE_FILES)
FORMAT: Final = 4


class BundleInvalid(RubricError):
    """The folder is not a whole export; `make run` makes it anew when it is removed."""

    def __init__(self, folder: Path, problem: str) -> None:
        super().__init__(f"{folder} is no encoder export: {problem}.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Thresholds:
    """From which probabilities on a text is at a level; both in (0, 1]."""

    watch: float  # of the probability of any crisis
    high: float  # of the probability of the level high alone

    def level_of(self, *, any_crisis: float, high: float) -> Level:
        """The level of one window; high wins where both are reached."""
        if high >= self.high:
            return Level.HIGH
        return Level.WATCH if any_crisis >= self.watch else Level.NONE


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """A checked folder and the facts of its manifest."""

    folder: Path
    encoder_version: str  # "encoder-<hash12>"
    screen_version: str  # "screen-<hash12>"
    judge_version: str  # "judge-<hash12>"
    thresholds: dict[Direction, Thresholds]
    mix: tuple[float, float]  # how much the network's and the surface's opinion weigh

    def path(self, name: str) -> Path:
        """Where one of FILES lies."""
        return self.folder / name


def file_sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def load_bundle(folder: Path) -> Bundle:
    """Check every file's hash and read the thresholds. Raises BundleInvalid."""
    manifest = _read_object(folder, MANIFEST)
    if manifest.get("format") != FORMAT:
        raise BundleInvalid(folder, f"its format is not {FORMAT}")
    hashes = manifest.get("files")
    if not isinstance(hashes, dict):
        raise BundleInvalid(folder, "its manifest lists no files")
    for name in FILES:
        path = folder / name
        if not path.is_file():
            raise BundleInvalid(folder, f"{name} is missing")
        if file_sha256(path) != hashes.get(name):
            raise BundleInvalid(folder, f"{name} differs from its hash")
    return Bundle(
        folder=folder,
        encoder_version=str(manifest.get("encoder_version")),
        screen_version=str(manifest.get("screen_version")),
        judge_version=str(manifest.get("judge_version")),
        thresholds=read_thresholds(folder),
        mix=read_mix(folder),
    )


def read_thresholds(folder: Path) -> dict[Direction, Thresholds]:
    """The thresholds in a folder's `screen.json`, by direction. Raises BundleInvalid."""
    stored = _read_object(folder, SCREEN_FACTS).get("thresholds")
    if not isinstance(stored, dict):
        raise BundleInvalid(folder, f"{SCREEN_FACTS} has no thresholds")
    return {"visitor": _thresholds(folder, stored.get("visitor")), "reply": _thresholds(folder, stored.get("reply"))}


def read_mix(folder: Path) -> tuple[float, float]:
    """The two weights in a folder's `screen.json`, network first. Raises BundleInvalid."""
    stored = _read_object(folder, SCREEN_FACTS).get("mix")
    if isinstance(stored, dict):
        network, surface = stored.get("network"), stored.get("surface")
        if isinstance(network, float) and isinstance(surface, float) and network >= 0 and surface >= 0:
            return network, surface
    raise BundleInvalid(folder, f"{SCREEN_FACTS} does not say how to mix")


def _thresholds(folder: Path, stored: JsonValue) -> Thresholds:
    if isinstance(stored, dict):
        watch, high = stored.get("watch"), stored.get("high")
        if isinstance(watch, float) and isinstance(high, float) and 0 < watch <= 1 and 0 < high <= 1:
            return Thresholds(watch=watch, high=high)
    raise BundleInvalid(folder, f"{SCREEN_FACTS} has thresholds outside (0, 1]")


def _read_object(folder: Path, name: str) -> JsonObject:
    try:
        value = json.loads((folder / name).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BundleInvalid(folder, f"{name} cannot be read ({type(error).__name__})") from error
    if not isinstance(value, dict):
        raise BundleInvalid(folder, f"{name} is not an object")
    return value
