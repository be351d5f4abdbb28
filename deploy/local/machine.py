"""What this machine must have, checked before anything is changed. Standard library only.

Each check returns a Problem (what is missing, what to do now) or None; `launch` and `checks` print them all at once.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MIN_NODE_MAJOR = 20
BROWSER_COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that stands in the way, and what to do about it."""

    missing: str
    remedy: str


def check_python(version: tuple[int, int], *, has_venv: bool) -> Problem | None:
    """The pinned packages are one resolved set for Python 3.11."""
    if version != (3, 11):
        found = ".".join(map(str, version))
        return Problem(
            f"Python 3.11 is needed, this is Python {found}.",
            "Install python3.11 (Debian, Ubuntu: apt-get install python3.11 python3.11-venv), or name one: "
            "make run PYTHON=/path/to/python3.11",
        )
    if not has_venv:
        return Problem("Python's venv module is not installed.", "Debian, Ubuntu: apt-get install python3.11-venv")
    return None


def has_venv() -> bool:
    """Debian splits venv's other half (ensurepip) into a package of its own."""
    return all(importlib.util.find_spec(name) is not None for name in ("venv", "ensurepip"))


def check_node(version: str | None, *, has_npm: bool) -> Problem | None:
    """`version` is what `node --version` printed, None without node."""
    remedy = f"Install Node.js {MIN_NODE_MAJOR} or newer with npm (nodejs and npm of your distribution, or a release)."
    if version is None:
        return Problem("Node.js is not installed (no `node` on the path).", remedy)
    major = version.strip().removeprefix("v").split(".")[0]
    if not major.isdigit() or int(major) < MIN_NODE_MAJOR:
        return Problem(f"Node.js {MIN_NODE_MAJOR} or newer is needed, this is {version.strip()}.", remedy)
    if not has_npm:
        return Problem("npm is not installed (no `npm` on the path).", "Debian, Ubuntu: apt-get install npm")
    return None


def node_version() -> str | None:
    """What `node --version` prints, or None."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(["node", "--version"], capture_output=True, text=True, check=True, timeout=20).stdout
    return None


def check_processor(*, system: str, machine: str, cpu_flags: str) -> Problem | None:
    """The default engine's wheel is built for x86_64 with AVX2 and for aarch64."""
    if system != "Linux":
        return Problem(f"Linux is needed, this is {system}.", "Run it on a Linux machine, in a VM or under WSL 2.")
    if machine == "aarch64" or (machine == "x86_64" and "avx2" in cpu_flags.split()):
        return None
    found = f"{machine} without AVX2" if machine == "x86_64" else machine
    return Problem(
        f"A processor of kind x86_64 with AVX2 or aarch64 is needed, this is {found}.",
        "In a virtual machine, pass the host's processor through (for example `-cpu host`); else use another machine.",
    )


def cpu_flags() -> str:
    """The flags of the first core."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return line.partition(":")[2]
    return ""


def check_port(host: str, port: int) -> Problem | None:
    """Somebody else on our port would look like a broken product."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
    except socket.gaierror:
        return Problem(f"The address {host} is unknown.", "Set RAPPORT_HOST to an address of this machine: 127.0.0.1")
    except PermissionError:
        return Problem(f"Port {port} needs more rights.", "Choose one above 1023: make run RAPPORT_PORT=8001")
    except OSError as error:
        return Problem(
            f"Port {port} on {host} is not free ({error.strerror}).",
            f"Stop what listens there (see `ss -ltnp`), or choose another: make run RAPPORT_PORT={port + 1}",
        )
    return None


def check_writable(folder: Path, *, variable: str) -> Problem | None:
    """The folder need not exist yet: its nearest parent that does must let us write."""
    nearest = next(above for above in (folder, *folder.parents) if above.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return None
    return Problem(
        f"No right to write in {nearest} (for {folder}).", f"Give it to this user, or set {variable} to another folder."
    )


def check_disk(folder: Path, *, needed_mb: int, variable: str) -> Problem | None:
    """`needed_mb` is what the parts that are not built yet will take, with room to build them."""
    nearest = next(above for above in (folder, *folder.parents) if above.exists())
    free_mb = shutil.disk_usage(nearest).free // 1_000_000
    if free_mb >= needed_mb:
        return None
    return Problem(
        f"{needed_mb / 1000:.1f} GB of disk are needed below {folder}, {free_mb / 1000:.1f} GB are free.",
        f"Free some, delete old parts with `make clean-cache`, or set {variable} to a folder on another disk.",
    )


def has_command(name: str) -> bool:
    """Whether a program is on the path."""
    return shutil.which(name) is not None


def find_browser() -> str | None:
    """The path of a Chromium that the browser tests can drive, or None."""
    return next((path for command in BROWSER_COMMANDS if (path := shutil.which(command))), None)


def check_browser(*, found: str | None, is_root: bool, has_apt: bool) -> Problem | None:
    """Where this user is root and apt is there, the set-up of `make test` installs it itself."""
    if found or (is_root and has_apt):
        return None
    return Problem("No Chromium or Chrome for the browser tests.", "Debian, Ubuntu: sudo apt-get install chromium")


def check_basics(*, needs_node: bool) -> list[Problem]:
    """Everything that both commands need: Python, processor, and Node where the front end is not built yet."""
    problems = [
        check_python((sys.version_info[0], sys.version_info[1]), has_venv=has_venv()),
        check_processor(system=platform.system(), machine=platform.machine(), cpu_flags=cpu_flags()),
        check_node(node_version(), has_npm=has_command("npm")) if needs_node else None,
    ]
    return [problem for problem in problems if problem is not None]
