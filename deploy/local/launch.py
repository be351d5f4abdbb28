"""`make run`: checks the machine, builds what is missing, prepares the database, starts the product. Standard library.

The order is the promise: nothing is changed before every check has passed.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from deploy.env import EnvironmentInvalid, read_environment
from deploy.local import machine, parts
from deploy.local.guard import run_guarded
from deploy.local.place import Place, open_run_folders
from deploy.local.steps import Part, Progress, StepFailed, ensure, run_logged

STEPS_AFTER = 3  # database, accounts, start


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The folders of one complete set-up, all in the cache."""

    main: Path
    front: Path
    model: Path
    encoder: Path

    def environ(self) -> dict[str, str]:
        """What the processes must know about it."""
        return {
            "RAPPORT_FRONT": str(self.front),
            "RAPPORT_MODEL_FOLDER": str(self.model),
            "RAPPORT_ENCODER_FOLDER": str(self.encoder),
        }


def installation_parts(place: Place) -> list[Part]:
    """The parts of a run, in building order; folders are named by hash, so they are known before anything is built."""
    main = parts.main_environment()
    node = parts.node_modules()
    main_folder, node_folder = main.folder(place.cache), node.folder(place.cache)
    return [
        main,
        node,
        parts.front_end(node_folder),
        parts.base_model(main_folder, model=place.model),
        parts.encoder(main_folder),
        *([parts.vllm_environment()] if place.needs_vllm else []),
    ]


def expected_installation(place: Place) -> Installation:
    """Where the set-up lies, built or not."""
    folders = {part.kind: part.folder(place.cache) for part in installation_parts(place)}
    return Installation(
        main=folders["env/main"], front=folders["front"], model=folders["model"], encoder=folders["encoder"]
    )


def install(place: Place, *, progress: Progress) -> Installation:
    """Builds what is missing; raises StepFailed."""
    for part in installation_parts(place):
        folder = ensure(part, cache=place.cache, progress=progress)
        if part.kind == "node":
            parts.link_node_modules(folder)
    return expected_installation(place)


def install_only(place: Place) -> int:
    """`make install`: the set-up without a start; returns the exit status."""
    needed = installation_parts(place)
    problems = machine.check_basics(needs_node=_needs_node(place))
    problems += [problem for problem in (_check_space(place, needed=needed),) if problem is not None]
    if problems:
        print_problems(problems, command="install")
        return 1
    try:
        install(place, progress=Progress(len(needed)))
    except StepFailed as failure:
        print(f"\n{failure}")
        return 1
    return 0


def preflight(place: Place) -> list[machine.Problem]:
    """Everything that stands in the way of `make run`."""
    problems = machine.check_basics(needs_node=_needs_node(place))
    checks = (
        _check_settings(),
        machine.check_writable(place.cache, variable="RAPPORT_CACHE"),
        machine.check_writable(place.data, variable="RAPPORT_DATA"),
        _check_space(place, needed=installation_parts(place)),
        machine.check_port(place.host, place.port),
    )
    return problems + [problem for problem in checks if problem is not None]


def _check_settings() -> machine.Problem | None:
    """What the processes would refuse later is said now."""
    try:
        read_environment()
    except EnvironmentInvalid as error:
        return machine.Problem(str(error), "See docs/operations.md, settings.")
    return None


def _needs_node(place: Place) -> bool:
    return any(
        not part.folder(place.cache).is_dir() for part in installation_parts(place) if part.kind in {"node", "front"}
    )


def _check_space(place: Place, *, needed: list[Part]) -> machine.Problem | None:
    needed_mb = parts.missing_mb(needed, place=place)
    return machine.check_disk(place.cache, needed_mb=needed_mb, variable="RAPPORT_CACHE")


def print_problems(problems: list[machine.Problem], *, command: str) -> None:
    """Says what is missing and what to do; nothing has been changed yet."""
    print(f"`make {command}` cannot start yet; nothing was changed.\n")
    for problem in problems:
        print(f"  - {problem.missing}\n    {problem.remedy}\n")


def run(place: Place) -> int:
    """The whole of `make run`; returns the exit status."""
    started_at = time.time()
    running = who_runs(place)
    if running is not None:
        print(f"Rapport is already running on {place.data} ({running}). Stop it there with Ctrl-C first.")
        return 1
    problems = preflight(place)
    if problems:
        print_problems(problems, command="run")
        return 1
    open_run_folders(place)
    with place.lock.open("a+") as lock:
        if not take_lock(lock, place=place):
            print(f"Rapport is already running on {place.data}.")
            return 1
        try:
            installation = install(place, progress=(progress := Progress(len(installation_parts(place)) + STEPS_AFTER)))
            environ = {**os.environ, **installation.environ(), "RAPPORT_DATA": str(place.data)}
            prepare(place, installation.main, environ=environ, progress=progress)
        except StepFailed as failure:
            print(f"\n{failure}\n\nThe parts that were finished stay: `make run` goes on from here.")
            return 1
        progress.announce("starting every process")
        environ |= {"RAPPORT_STARTED_AT": repr(started_at), "RAPPORT_PARENT_PID": str(os.getpid())}
        command = (str(parts.python_of(installation.main)), "-m", "deploy.local.supervise")
        return run_guarded(command, env=environ, pass_fds=(lock.fileno(),), cwd=place.root)


def who_runs(place: Place) -> str | None:
    """Who holds the data folder's lock (`process 4711, http://...`), or None."""
    if not place.lock.exists():
        return None
    with place.lock.open("r") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return lock.read().strip() or "starting"
    return None


def take_lock(lock: IO[str], *, place: Place) -> bool:
    """Takes the data folder for this process and, through the inherited file, for the arbiter below it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    lock.truncate(0)
    lock.write(f"process {os.getpid()}, {place.address}")
    lock.flush()
    return True


def write_secret_key(data: Path, *, environ: Mapping[str, str]) -> None:
    """Makes the key that signs tokens, once per data folder, readable by this user alone."""
    path = data / "secret_key"
    if environ.get("RAPPORT_SECRET_KEY") or path.exists():
        return
    aside = path.with_name(f".secret_key-{os.getpid()}")
    aside.touch(mode=0o600)
    aside.write_text(secrets.token_urlsafe(48) + "\n")
    aside.rename(path)


def prepare(place: Place, main: Path, *, environ: Mapping[str, str], progress: Progress) -> None:
    """Brings the database up to date and makes sure that site, versions and accounts exist; raises StepFailed."""
    write_secret_key(place.data, environ=environ)
    log = place.run / "prepare.log"
    log.write_bytes(b"")
    python = str(parts.python_of(main))
    with progress.step("bringing the database up to date", log=log):
        run_logged((python, "manage.py", "migrate", "--no-input"), log=log, cwd=place.root, env=environ)
    with progress.step("making site, versions and accounts"):
        done = bootstrap(place, python, environ=environ)
    if done.returncode != 0:
        log.write_text(done.stderr)
        raise StepFailed(("manage.py", "bootstrap"), exit_code=done.returncode, log=log)
    print(done.stdout, end="", flush=True)


def bootstrap(place: Place, python: str, *, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs `manage.py bootstrap`. Its output holds new passwords, so it goes to the terminal and into no file."""
    command = (python, "manage.py", "bootstrap")
    return subprocess.run(
        command, cwd=place.root, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
