"""Parts of the set-up, each in a folder named by the hash of what it is made from. Standard library only.

`ensure` returns a part's folder and builds it where it is missing: aside first, renamed into place last, so a folder
that carries its name is whole. One builder at a time per part (a file lock): a second set-up waits for the first.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SKIPPED_FOLDERS = frozenset({"node_modules", "dist", "__pycache__", "coverage"})
HEARTBEAT_S = 15.0
LINES_SHOWN = 30


class StepFailed(Exception):
    """A step's command failed; the text holds its last lines and where the whole log lies."""

    def __init__(self, command: Sequence[str], *, exit_code: int, log: Path) -> None:
        last = "\n".join(f"    {line}" for line in log.read_text(errors="replace").splitlines()[-LINES_SHOWN:])
        super().__init__(f"`{' '.join(command)}` ended with {exit_code}:\n{last}\nThe whole log: {log}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What a part's builder is told: where to build now, where it will lie, and where to log."""

    aside: Path
    final: Path
    log: Path

    def run(self, *command: str, cwd: Path, env: Mapping[str, str] | None = None) -> None:
        """Runs one command of the step, its output in the step's log; raises StepFailed."""
        run_logged(command, log=self.log, cwd=cwd, env=env)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing the cache holds: `kind` names its folder, `facts` and `files` are what it is made from."""

    kind: str
    title: str
    facts: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    size_mb: int
    build: Callable[[Build], None]

    def folder(self, cache: Path) -> Path:
        """`env/main` lies in `env/main-<hash>`, `model` in `model/<hash>`."""
        name = self.key if "/" not in self.kind else f"{self.kind.rpartition('/')[2]}-{self.key}"
        return cache / self.kind.partition("/")[0] / name

    @property
    def key(self) -> str:
        """Twelve hex digits of the hash over facts, file names and file contents."""
        digest = hashlib.sha256(repr((self.kind, self.facts)).encode())
        for top in self.files:
            for path in files_below(top):
                digest.update(repr(path.relative_to(top.parent).as_posix()).encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()[:12]


def files_below(top: Path) -> list[Path]:
    """The file itself, or every file below a folder in a fixed order; build outputs do not count."""
    if top.is_file():
        return [top]
    return [
        path
        for path in sorted(top.rglob("*"))
        if path.is_file() and not SKIPPED_FOLDERS & set(path.relative_to(top).parts)
    ]


class Progress:
    """Numbered lines on the terminal: `[3/9] installing Python packages ... 42 s`."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._number = 0

    @contextlib.contextmanager
    def step(self, title: str, *, log: Path | None = None) -> Iterator[None]:
        """Shows that the step runs (with the log's last line) until the block ends, then how long it took."""
        self._number += 1
        label = f"[{self._number}/{self._total}] {title}"
        started = time.monotonic()
        done = threading.Event()
        ticker = threading.Thread(target=_tick, args=(label, started, done, log), daemon=True)
        if not sys.stdout.isatty():
            print(f"{label} ...", flush=True)
        ticker.start()
        try:
            yield
        except BaseException:
            _finish(ticker, done, text=f"{label} ... failed after {time.monotonic() - started:.0f} s")
            raise
        _finish(ticker, done, text=f"{label} ... {time.monotonic() - started:.0f} s")

    def skip(self, title: str, *, why: str) -> None:
        """Counts a step that has nothing to do."""
        self.announce(f"{title} ... {why}")

    def announce(self, title: str) -> None:
        """Counts a step whose end shows elsewhere."""
        self._number += 1
        print(f"[{self._number}/{self._total}] {title}", flush=True)


def _finish(ticker: threading.Thread, done: threading.Event, *, text: str) -> None:
    done.set()
    ticker.join()
    print(f"\r\033[K{text}" if sys.stdout.isatty() else text, flush=True)


def _tick(label: str, started: float, done: threading.Event, log: Path | None) -> None:
    is_terminal = sys.stdout.isatty()
    while not done.wait(0.5 if is_terminal else HEARTBEAT_S):
        text = f"{label} ... {time.monotonic() - started:.0f} s  {_last_line(log)}"
        width = shutil.get_terminal_size().columns - 1
        print(f"\r\033[K{text[:width]}" if is_terminal else text, end="" if is_terminal else "\n", flush=True)


def _last_line(log: Path | None) -> str:
    if log is None or not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 2000))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip()[-90:] for line in reversed(lines) if line.strip()), "")


def ensure(part: Part, *, cache: Path, progress: Progress) -> Path:
    """Returns the part's folder, built now where it is missing; raises StepFailed and leaves nothing half made."""
    final = part.folder(cache)
    if final.is_dir():
        progress.skip(part.title, why=f"there already ({final.name})")
        return final
    log = cache / "log" / f"{part.kind.replace('/', '-')}-{part.key}.log"
    for folder in (final.parent, log.parent, cache / "lock"):
        folder.mkdir(parents=True, exist_ok=True)
    with (
        progress.step(part.title, log=log),
        _only_builder(cache / "lock" / f"{part.kind.replace('/', '-')}-{part.key}"),
    ):
        if not final.is_dir():
            _build(part, final=final, log=log)
    return final


def _build(part: Part, *, final: Path, log: Path) -> None:
    log.write_bytes(b"")
    for left_over in final.parent.glob(f".{final.name}.part-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    aside = final.with_name(f".{final.name}.part-{os.getpid()}")
    aside.mkdir()
    try:
        part.build(Build(aside=aside, final=final, log=log))
        aside.rename(final)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def _only_builder(lock: Path) -> Iterator[None]:
    with lock.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("  another set-up is making this part now; waiting for it", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_logged(command: Sequence[str], *, log: Path, cwd: Path, env: Mapping[str, str] | None = None) -> None:
    """Runs a command with its output appended to `log`; ends it with its whole group on Ctrl-C; raises StepFailed."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            exit_code = process.wait()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if exit_code != 0:
        raise StepFailed(command, exit_code=exit_code, log=log)
