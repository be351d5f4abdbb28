"""The public data sets that recipes and benchmarks may read: licence, what they may train, and the manifest of a file.

None of them is copied into the repository. Weights trained on a source that may not train what ships are never
committed; `overlap` scans the repository for their text.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from training.data.reading import Keyed, Loader, load_file

FOLDER_VARIABLE = "RAPPORT_PUBLIC_DATA"
R = TypeVar("R", bound=Keyed)


class Use(StrEnum):
    """What a source is good for."""

    SHIP = "ship"  # may train what the project ships, with attribution
    CALIBRATE = "calibrate"  # numbers to calibrate by; trains nothing
    LOCAL = "local"  # tests and research; weights trained on it stay where they were trained
    BENCHMARK = "benchmark"  # only ever measured on


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A public data set."""

    name: str
    licence: str
    use: Use
    files: tuple[str, ...]  # below the folder of public data

    def paths(self, folder: Path) -> tuple[Path, ...]:
        """Where its files lie."""
        return tuple(folder / name for name in self.files)


def _source(name: str, *files: str, licence: str, use: Use) -> Source:
    return Source(name=name, licence=licence, use=use, files=tuple(f"{name}/{file}" for file in files))


_PARTS = ("train", "valid", "test")
SOURCES = (
    _source("esconv", *(f"esconv_{part}.jsonl.gz" for part in _PARTS), licence="CC BY-NC 4.0, academic", use=Use.LOCAL),
    _source("empathetic_dialogues", *(f"{part}.jsonl.gz" for part in _PARTS), licence="CC BY-NC 4.0", use=Use.LOCAL),
    _source(
        "epitome",
        *(f"{name}-reddit.csv.gz" for name in ("emotional-reactions", "interpretations", "explorations")),
        licence="non-commercial academic",
        use=Use.LOCAL,
    ),
    _source(
        "goemotions",
        *(f"{part}.tsv.gz" for part in ("train", "dev", "test")),
        licence="CC BY 4.0",
        use=Use.SHIP,
    ),
    _source("counsel_chat", "counsel_chat.csv.gz", licence="MIT", use=Use.SHIP),
    _source("empathic_reactions", "messages.csv.gz", licence="CC BY 4.0", use=Use.SHIP),
    Source(name="rlver_train", licence="MIT", use=Use.SHIP, files=("rlver/train_profile.jsonl.gz",)),
    Source(name="rlver_test", licence="MIT", use=Use.BENCHMARK, files=("rlver/test_profile.jsonl.gz",)),
    _source("sage", "turn_level_changes.jsonl.gz", licence="MIT", use=Use.CALIBRATE),
)


def source_named(name: str) -> Source:
    """Raises KeyError for no such source."""
    return {source.name: source for source in SOURCES}[name]


def public_data_folder() -> Path | None:
    """`RAPPORT_PUBLIC_DATA`, else `../shared/data` beside the checkout; None where neither is there."""
    named = os.environ.get(FOLDER_VARIABLE)
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"
    return folder if folder.is_dir() else None


@dataclass(frozen=True, kw_only=True, slots=True)
class FileManifest:
    """What a run wrote down about a file that it read."""

    source: str
    licence: str
    use: Use
    file: str
    sha256: str
    size_bytes: int
    rows: int


def manifest_of(path: Path, *, source: Source, loader: Loader[R]) -> FileManifest:
    """Hash and count a file. Raises DataFileInvalid where it cannot be read as a whole."""
    rows = len(load_file(path, loader))
    content = path.read_bytes()
    return FileManifest(
        source=source.name,
        licence=source.licence,
        use=source.use,
        file=path.name,
        sha256=hashlib.sha256(content).hexdigest(),
        size_bytes=len(content),
        rows=rows,
    )
