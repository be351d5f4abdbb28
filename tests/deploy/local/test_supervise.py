"""The supervision, run for real on tiny processes: order, restarts, last words, and nothing left behind."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from circus.client import CircusClient

from deploy.local.guard import descendants
from deploy.local.place import ROOT

WAIT_S = 20.0


class TinyRun:
    """A guard with a supervision of tiny processes below it."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.log = folder / "log"
        self.folder = folder
        tiny = (sys.executable, "-m", "tests.deploy.local.tiny_product", str(folder), *names)
        with self.log.open("wb") as log:
            self.guard = subprocess.Popen(
                (sys.executable, "-m", "deploy.local.guard", *tiny),
                cwd=ROOT,
                env={**os.environ, "RAPPORT_PARENT_PID": str(os.getpid())},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for(self, is_so: Callable[[str], bool]) -> str:
        """Waits until the log is as asked and returns it."""
        deadline = time.monotonic() + WAIT_S
        while not is_so(text := self.log.read_text()):
            assert time.monotonic() < deadline, text
            time.sleep(0.05)
        return text

    def tree(self) -> list[int]:
        return [self.guard.pid, *descendants(self.guard.pid)]

    def arbiter(self) -> int:
        return descendants(self.guard.pid)[0]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., TinyRun]]:
    runs: list[TinyRun] = []

    def start_one(*names: str) -> TinyRun:
        runs.append(TinyRun(tmp_path, *names))
        return runs[-1]

    yield start_one
    for run in runs:
        if run.guard.poll() is None:
            run.guard.kill()
            run.guard.wait()


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists() and not is_zombie(pid)]


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + WAIT_S
    while left := alive(pids):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_leaves_no_process_not_even_a_grandchild(start: Callable[..., TinyRun], number: int) -> None:
    run = start("steady", "last")
    run.wait_for(lambda text: "steady says" in text and "noting" in text)
    tree = run.tree()
    assert len(tree) == 5  # guard, arbiter, steady, its grandchild, last
    run.guard.send_signal(number)
    assert run.guard.wait(timeout=WAIT_S) == 0
    assert alive(tree) == []


def test_a_terminal_that_goes_away_stops_everything_even_below_a_leader_that_waits(tmp_path: Path) -> None:
    # The terminal's leader here does as `make` does: it ignores the hang-up and waits for its child.
    leader = (
        "import signal, subprocess, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); subprocess.run(sys.argv[1:])"
    )
    tiny = (sys.executable, "-m", "tests.deploy.local.tiny_product", str(tmp_path), "steady", "last")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.environ.pop("RAPPORT_PARENT_PID", None)
        os.execv(sys.executable, (sys.executable, "-c", leader, sys.executable, "-m", "deploy.local.guard", *tiny))
    text = b""
    while b"steady says" not in text or b"noting" not in text:
        text += os.read(terminal, 4096)
    tree = [pid, *descendants(pid)]
    assert len(tree) == 6
    os.close(terminal)
    os.waitpid(pid, 0)
    assert alive(tree) == []
    assert (tmp_path / "last.stopped").exists()


def test_kill_9_of_the_arbiter_leaves_no_process(start: Callable[..., TinyRun]) -> None:
    run = start("steady", "stubborn", "last")
    run.wait_for(lambda text: "steady says" in text and "stubborn stays" in text and "noting" in text)
    tree = run.tree()
    os.kill(run.arbiter(), signal.SIGKILL)
    run.guard.wait(timeout=WAIT_S)
    assert alive(tree) == []


def test_kill_9_of_the_guard_stops_everything_in_order(start: Callable[..., TinyRun]) -> None:
    run = start("steady", "last")
    run.wait_for(lambda text: "steady says" in text and "noting" in text)
    tree = run.tree()
    run.guard.kill()
    run.guard.wait()
    wait_until_gone(tree)
    assert (run.folder / "last.stopped").exists()


def test_the_web_stops_first_and_redis_last(start: Callable[..., TinyRun]) -> None:
    run = start("last", "stubborn", "first")
    run.wait_for(lambda text: text.count("noting") == 2 and "stubborn stays" in text)
    run.guard.terminate()
    run.guard.wait(timeout=WAIT_S)
    first, last = (float((run.folder / f"{name}.stopped").read_text()) for name in ("first", "last"))
    # Between them lies the whole second of grace that the stubborn one was given before it was killed.
    assert last - first >= 0.9


def test_a_killed_process_starts_again(start: Callable[..., TinyRun]) -> None:
    run = start("stubborn")
    run.wait_for(lambda text: "stubborn stays" in text)
    (victim,) = descendants(run.arbiter())
    os.kill(victim, signal.SIGKILL)
    text = run.wait_for(lambda text: text.count("stubborn stays") == 2)
    assert "stubborn ended (signal 9); starts again in 0.5 s" in text


def test_a_process_that_keeps_failing_says_so_with_its_last_lines(start: Callable[..., TinyRun]) -> None:
    run = start("failing")
    text = run.wait_for(lambda text: "What to do:" in text)
    assert "failing keeps failing (5 times in 120 s, exit code 3)" in text
    report = text[text.index("Its last lines:") :]
    assert "the last word before the end" in report
    # 0.5 + 1 + 2 + 4 s lie between the first start and the fifth: a loop would have made hundreds.
    assert text.count("failing ended") == 5


def test_every_line_carries_its_process_name(start: Callable[..., TinyRun]) -> None:
    run = start("steady", "last")
    text = run.wait_for(lambda text: "steady says" in text and "noting" in text)
    assert "steady       | steady says h\u00e9llo" in text.splitlines()
    assert "last         | noting" in text.splitlines()


def test_a_process_that_another_adds_is_logged_to_its_last_word_and_stopped_with_the_rest(
    start: Callable[..., TinyRun],
) -> None:
    run = start("last")
    run.wait_for(lambda text: "noting" in text)
    lives = "print('engine up', flush=True); import time; time.sleep(600)"
    dies = "import os, sys; sys.stdout.write('x' * 50000 + ' cause'); sys.stdout.flush(); os._exit(9)"
    client = CircusClient(endpoint=f"ipc://{run.folder / 'run' / 'circus.sock'}")
    for name, code in (("engine-1", lives), ("engine-2", dies)):
        stream = {"class": "deploy.local.stream.PrefixStream", "name": name}
        options = {"respawn": False, "stdout_stream": stream, "stderr_stream": stream, "copy_env": True}
        arguments = {"name": name, "cmd": sys.executable, "args": ["-c", code], "options": options, "start": True}
        while "already running" in str((answer := client.send_message("add", **arguments)).get("reason", "")):
            time.sleep(0.05)
        assert answer["status"] == "ok"
    client.stop()
    text = run.wait_for(lambda text: "engine-2 ended (exit code 9)" in text and "engine up" in text)
    assert "x cause\n" in text
    tree = run.tree()
    run.guard.terminate()
    assert run.guard.wait(timeout=WAIT_S) == 0
    assert alive(tree) == []


def test_the_arbiter_takes_commands_from_this_user_alone(start: Callable[..., TinyRun]) -> None:
    run = start("last")
    run.wait_for(lambda text: "noting" in text)
    deadline = time.monotonic() + WAIT_S
    while not (run.folder / "run" / "product.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (run.folder / "run").stat().st_mode & 0o777 == 0o700
    assert (run.folder / "run" / "circus.sock").stat().st_mode & 0o077 == 0
