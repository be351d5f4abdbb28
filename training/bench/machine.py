"""What a process costs: CPU and memory by /proc, and which cores it may use."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Seconds of CPU, user and system, of a process with all its threads; steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_bytes(pid: int) -> int:
    """Resident memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(pid)


def pin(pids: Iterable[int], cores: Iterable[int]) -> None:
    """Let processes with all their threads run on these cores only; one that has ended is no matter."""
    wanted = set(cores)
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(int(thread), wanted)


def allow_files(wanted: int) -> int:
    """Raise the limit of open files of this process and those it starts; returns what holds now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for new_hard in (max(hard, wanted), hard):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(wanted, new_hard)), new_hard))
            break
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def cores() -> tuple[int, int]:
    """The core that is measured, and the one for everything else; the same one on a machine of one core."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[0], allowed[-1]
