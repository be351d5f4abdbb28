"""Where this checkout keeps what it makes, read from the environment once. Standard library only.

Two folders: the *cache* (environments, converted model, front-end build; shared by all checkouts of a user, safe to
delete) and the *data* of this checkout (database, run files, logs; `./var` unless RAPPORT_DATA names another).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A unix socket's path holds 107 bytes; the longest name below the run folder is `circus-events.sock`.
MAX_SOCKET_FOLDER_BYTES = 107 - len("/circus-events.sock")


class SettingInvalid(Exception):
    """A setting of the start command cannot be used; the text says which and what would do."""

    def __init__(self, name: str, *, why: str) -> None:
        super().__init__(f"{name} {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The folders, the address and the engine of one checkout.

    `model` is a folder or a hub name, "" the packaged one. `needs_vllm` says that vLLM is to run here and is not the
    operator's own: then its CPU build belongs to the set-up.
    """

    root: Path
    cache: Path
    data: Path
    host: str
    port: int
    model: str
    needs_vllm: bool

    @property
    def run(self) -> Path:
        """Lock, configuration files and process list of the running product."""
        return self.data / "run"

    @property
    def lock(self) -> Path:
        """Held by whoever runs the product on this data folder."""
        return self.run / "lock"

    @property
    def counters(self) -> Path:
        """What the processes of this run count for /metrics, one file a process."""
        return self.run / "counters"

    @property
    def sockets(self) -> Path:
        """The folder of the unix sockets: the run folder, or a short one of our own where that path is too long."""
        if len(os.fsencode(self.run)) <= MAX_SOCKET_FOLDER_BYTES:
            return self.run
        digest = hashlib.sha256(os.fsencode(self.run)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"rapport-{os.getuid()}-{digest}"

    @property
    def circus_endpoint(self) -> str:
        """Where the arbiter takes commands."""
        return f"ipc://{self.sockets / 'circus.sock'}"

    @property
    def address(self) -> str:
        """The product's address for a browser on this machine."""
        host = "127.0.0.1" if self.host in {"0.0.0.0", "::"} else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


def read_place(environ: Mapping[str, str], *, root: Path = ROOT) -> Place:
    """Reads the variables that the start itself needs; raises SettingInvalid."""
    data = Path(environ.get("RAPPORT_DATA") or "var").expanduser()
    return Place(
        root=root,
        cache=_read_cache(environ),
        data=data if data.is_absolute() else root / data,
        host=environ.get("RAPPORT_HOST") or "127.0.0.1",
        port=_read_port(environ.get("RAPPORT_PORT") or "8000"),
        model=environ.get("RAPPORT_MODEL") or "",
        needs_vllm=environ.get("RAPPORT_ENGINE") == "vllm"
        and not (environ.get("RAPPORT_VLLM_PYTHON") or environ.get("RAPPORT_ENGINE_URL")),
    )


def _read_cache(environ: Mapping[str, str]) -> Path:
    named = environ.get("RAPPORT_CACHE")
    if named:
        return Path(named).expanduser().absolute()
    above = environ.get("XDG_CACHE_HOME")
    return (Path(above) if above else Path(environ.get("HOME") or Path.home()) / ".cache") / "rapport"


def _read_port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise SettingInvalid("RAPPORT_PORT", why="must be a number from 1 to 65535.")
    return int(text)


def open_run_folders(place: Place) -> None:
    """Makes the data, run and socket folders, readable by this user alone, and the empty one for collected files."""
    place.data.parent.mkdir(parents=True, exist_ok=True)
    for folder in (place.data, place.run, place.sockets, place.data / "static"):
        folder.mkdir(mode=0o700, exist_ok=True)
    for folder in (place.run, place.sockets):
        if folder.stat().st_uid != os.getuid():
            raise SettingInvalid("RAPPORT_DATA", why=f"leads to {folder}, which belongs to another user.")
        folder.chmod(0o700)
