"""Descendants are found and ended, however they hide."""

import os
import subprocess
import sys
import time
from pathlib import Path

from deploy.local.guard import descendants
from deploy.local.place import ROOT

HIDING = """
import os, sys, time
from deploy.local.guard import adopt_orphans, descendants, end_descendants
adopt_orphans()
sleeper = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", sleeper])
    os._exit(0)
time.sleep(1.0)
found = descendants()
print(len(found), *found, flush=True)
print(end_descendants(grace_s=0.2), flush=True)
print(len(descendants()), flush=True)
"""


def test_a_double_forked_process_that_ignores_sigterm_is_found_and_ended() -> None:
    done = subprocess.run((sys.executable, "-c", HIDING), cwd=ROOT, capture_output=True, text=True, check=True)
    up, found, ended, left = done.stdout.splitlines()
    assert up == "up"
    count, pid = found.split()
    assert (count, ended, left) == ("1", "1", "0")
    assert not Path(f"/proc/{pid}").exists()


def test_a_guarded_command_gives_its_exit_status() -> None:
    command = (sys.executable, "-m", "deploy.local.guard", sys.executable, "-c", "raise SystemExit(7)")
    assert subprocess.run(command, cwd=ROOT, env=own_environ(), check=False).returncode == 7


def test_descendants_of_a_process_are_its_children_and_theirs() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    with subprocess.Popen((sys.executable, "-c", code), start_new_session=True) as parent:
        try:
            deadline = time.monotonic() + 10
            while len(below := descendants(parent.pid)) != 1:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert parent.pid in descendants()
            assert set(below) <= set(descendants())
        finally:
            os.killpg(parent.pid, 9)


def own_environ() -> dict[str, str]:
    return {**os.environ, "RAPPORT_PARENT_PID": str(os.getpid())}
