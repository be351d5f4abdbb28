"""A product of tiny processes below the real supervision: `python -m tests.deploy.local.tiny_product FOLDER NAME...`.

`steady` runs and has a grandchild in a process group of its own; `stubborn` ignores SIGTERM; `failing` ends at once
with a last word; `first` and `last` write down when they were asked to stop.
"""

import asyncio
import os
import sys
from pathlib import Path

from deploy.local.guard import adopt_orphans, follow_parent
from deploy.local.place import open_run_folders, read_place
from deploy.local.processes import Plan, Process
from deploy.local.supervise import Supervision, quiet_circus

STEADY = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print("steady says h\u00e9llo", flush=True)
time.sleep(600)
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("stubborn stays", flush=True)
time.sleep(600)
"""
FAILING = """
import sys
print("the last word before the end", file=sys.stderr, flush=True)
sys.exit(3)
"""
NOTING = """
import pathlib, signal, sys, time
def note(*_):
    pathlib.Path(sys.argv[1]).write_text(repr(time.monotonic()))
    sys.exit(0)
signal.signal(signal.SIGTERM, note)
print("noting", flush=True)
while True:
    time.sleep(0.05)
"""


def tiny_processes(folder: Path) -> dict[str, Process]:
    """The rows by name; `first` is of the web's rank, `last` of Redis's."""

    def row(name: str, code: str, *, rank: int) -> Process:
        command = (sys.executable, "-c", code, str(folder / f"{name}.stopped"))
        return Process(name=name, command=command, rank=rank, grace_s=1.0)

    rows = (
        row("first", NOTING, rank=0),
        row("steady", STEADY, rank=1),
        row("stubborn", STUBBORN, rank=2),
        row("failing", FAILING, rank=2),
        row("last", NOTING, rank=5),
    )
    return {process.name: process for process in rows}


def main() -> None:
    """Runs the named rows until asked to stop."""
    folder = Path(sys.argv[1])
    adopt_orphans()
    follow_parent(os.getppid())
    quiet_circus()
    place = read_place({"RAPPORT_DATA": str(folder), "RAPPORT_PORT": "1", "HOME": str(folder)})
    open_run_folders(place)
    rows = tiny_processes(folder)
    plan = Plan(
        place=place,
        processes=tuple(rows[name] for name in sys.argv[2:]),
        environ=dict(os.environ),
        web_ports=(place.port,),
    )
    asyncio.run(Supervision(plan).run())


if __name__ == "__main__":
    main()
