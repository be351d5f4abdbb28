"""What a run has measured so far, in a file: an interrupted run goes on where it stopped.

One JSON line per measurement: its name, the code's hash, when, and its lines as printed. A run that is whole renames
the file; one that is old or of other code is not continued.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from pathlib import Path

MAX_AGE_S = 3_600.0
_CODE = ("chat", "rubric", "deploy", "training/bench", "tests/bench")


def code_hash(root: Path) -> str:
    """Of everything that can change a figure."""
    digest = hashlib.sha256()
    for folder in _CODE:
        for file in sorted((root / folder).rglob("*.py")):
            digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@dataclass(kw_only=True)
class Record:
    """The file of one run."""

    path: Path
    code: str
    lines: dict[str, list[str]] = field(default_factory=dict)  # measurement -> its JSON lines

    @classmethod
    def open(cls, path: Path, *, code: str, now_s: float | None = None) -> Record:
        """What an interrupted run of the same code left within the last hour; else an empty record."""
        now_s = time.time() if now_s is None else now_s
        record = cls(path=path, code=code)
        rows = path.read_text().splitlines() if path.exists() else []
        for row in rows:
            try:
                kept = json.loads(row)
                if kept["code"] == code and now_s - kept["at"] < MAX_AGE_S:
                    record.lines[kept["name"]] = kept["lines"]
            except (ValueError, KeyError, TypeError):
                continue  # the row that was being written when the run was cut
        if not record.lines:
            path.unlink(missing_ok=True)
        return record

    def keep(self, name: str, lines: list[str]) -> None:
        """Add a measurement."""
        self.lines[name] = lines
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps({"name": name, "code": self.code, "at": time.time(), "lines": lines}) + "\n")

    def close(self) -> None:
        """The run is whole: the file becomes that of the last run."""
        if self.path.exists():
            self.path.replace(self.path.with_suffix(".last.jsonl"))
