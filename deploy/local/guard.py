"""No process is left behind: adopt orphans, find them, end them. Standard library and Linux only.

Called by `launch` (the foreground process of `make run`), by `supervise` (the arbiter below it) and by `product`.
A *subreaper* becomes the parent of every orphan below it, so the tree under it is complete even after a child that had
children of its own was killed with SIGKILL, and even when a grandchild moved into its own process group.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
STRAY_GRACE_S = 3.0


def adopt_orphans() -> None:
    """Makes this process the parent of every orphan below it."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def follow_parent(parent_pid: int, *, signal_number: int = signal.SIGTERM) -> None:
    """Asks the kernel to send `signal_number` here when the parent dies; a parent that died already counts."""
    _prctl(PR_SET_PDEATHSIG, signal_number)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal_number)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def descendants(root_pid: int | None = None) -> list[int]:
    """Lists every living process below `root_pid` (this process by default), parents first; zombies do not count."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            parent = _living_parent(entry)
            if parent is not None:
                children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    waiting = [os.getpid() if root_pid is None else root_pid]
    while waiting:
        below = children.get(waiting.pop(0), [])
        found += below
        waiting += below
    return found


def _living_parent(entry: Path) -> int | None:
    try:
        stat = (entry / "stat").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    # The command name may hold spaces and brackets: what counts begins after the last one.
    state, parent = stat.rpartition(")")[2].split()[:2]
    return None if state in "ZX" else int(parent)


def end_descendants(*, grace_s: float) -> int:
    """Ends every process below this one: SIGTERM, `grace_s` seconds of patience, SIGKILL. Returns how many it met."""
    met = set(descendants())
    _signal_all(met, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while (alive := descendants()) and time.monotonic() < deadline:
        met.update(alive)
        _reap()
        time.sleep(0.05)
    # A process may fork while it is being killed, so the tree is read again until it is empty.
    for _ in range(100):
        alive = descendants()
        if not alive:
            break
        met.update(alive)
        _signal_all(alive, signal.SIGKILL)
        _reap()
        time.sleep(0.02)
    _reap()
    return len(met)


def _signal_all(pids: set[int] | list[int], signal_number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal_number)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def run_guarded(
    command: Sequence[str], *, env: Mapping[str, str], pass_fds: Sequence[int] = (), cwd: Path | None = None
) -> int:
    """Runs `command` in a session of its own until it ends, then ends whatever it left; returns its exit status.

    SIGINT, SIGTERM and SIGHUP ask it to stop (SIGTERM); asked a second time, it is killed.
    """
    adopt_orphans()
    asked: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, _frame: object) -> None:
        asked.append(number)
        if child is not None:
            child.send_signal(signal.SIGKILL if len(asked) > 1 else signal.SIGTERM)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    child = subprocess.Popen(
        command, env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, start_new_session=True, pass_fds=pass_fds
    )
    if asked:
        child.terminate()
    watch_terminal()
    exit_code = child.wait()
    end_descendants(grace_s=STRAY_GRACE_S)
    return exit_code


def watch_terminal() -> None:
    """Turns a terminal that went away into a SIGHUP here.

    The kernel tells the leader of the terminal's processes alone. Where that is `make` (`ssh -t HOST make run`), it
    would wait for us, and we for nobody.
    """
    if not os.isatty(1):
        return

    def wait() -> None:
        poll = select.poll()
        poll.register(1, 0)
        poll.poll()  # with no event asked for, only an error or a hang-up returns
        os.kill(os.getpid(), signal.SIGHUP)

    threading.Thread(target=wait, daemon=True).start()


def main(arguments: Sequence[str]) -> int:
    """`python -m deploy.local.guard COMMAND...`: as `run_guarded`, and stops when its own parent dies."""
    follow_parent(int(os.environ.get("RAPPORT_PARENT_PID") or os.getppid()))
    return run_guarded(arguments, env={**os.environ, "RAPPORT_PARENT_PID": str(os.getpid())})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
