"""`make test` and its smaller sisters: sets up, runs every stage, says at the end which failed. Standard library only.

All stages run even where one fails, so one run shows everything; the exit status is not 0 where any failed.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.local import launch, machine, parts
from deploy.local.guard import adopt_orphans, end_descendants
from deploy.local.place import Place
from deploy.local.steps import Part, Progress, StepFailed, ensure

FAST_MARKS = "not (engine or vllm or browser or flow)"
# The set-up's own variables would lead a test to the developer's data or servers.
NOT_INHERITED = ("DATABASE_URL", "REDIS_URL", "RAPPORT_DATA", "RAPPORT_PORT", "RAPPORT_HOST", "RAPPORT_ENCODER_URL")
STRAY_GRACE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One command of a check, run in `folder` of the checkout."""

    name: str
    command: tuple[str, ...]
    folder: str = "."


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """How a stage ended."""

    name: str
    exit_code: int
    seconds: float


def lint_stages(python: str) -> list[Stage]:
    """Style, types and import contracts of the Python code."""
    contracts = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    return [
        Stage(name="ruff", command=(python, "-m", "ruff", "check", ".")),
        Stage(name="format", command=(python, "-m", "ruff", "format", "--check", ".")),
        Stage(name="mypy", command=(python, "-m", "mypy")),
        Stage(name="imports", command=(python, "-c", contracts)),
    ]


def all_stages(python: str) -> list[Stage]:
    """Everything that `make test` and CI run."""
    services = (python, "-m", "deploy.local.services")
    pytest = (python, "-m", "pytest", "--durations", "15")
    return [
        *lint_stages(python),
        Stage(name="front end", command=("npm", "run", "check"), folder="frontend"),
        Stage(name="tests on SQLite", command=(*services, "redis", "--", *pytest)),
        Stage(
            name="tests on PostgreSQL",
            command=(*services, "redis", "postgres", "--", *pytest, "-m", "database"),
        ),
    ]


def fast_stages(python: str) -> list[Stage]:
    """Lint and unit tests: what one runs before every commit."""
    pytest = (python, "-m", "pytest", "-m", FAST_MARKS)
    return [
        *lint_stages(python),
        Stage(name="front end", command=("npm", "run", "check"), folder="frontend"),
        Stage(name="unit tests", command=(python, "-m", "deploy.local.services", "redis", "--", *pytest)),
    ]


def fmt_stages(python: str) -> list[Stage]:
    """Rewrites the code as the linters want it."""
    return [
        Stage(name="ruff", command=(python, "-m", "ruff", "check", "--fix", ".")),
        Stage(name="format", command=(python, "-m", "ruff", "format", ".")),
        Stage(name="front end", command=("npm", "run", "fmt"), folder="frontend"),
    ]


def bench_stages(python: str) -> list[Stage]:
    """Starts the product on a scratch folder and runs the safety suite through its socket."""
    return [Stage(name="safety suite", command=(python, "-m", "deploy.local.bench", "safety"))]


def judge_bench_stages(python: str) -> list[Stage]:
    """Starts the encoder process and measures judge and examiner; `PART` names some of it."""
    return [Stage(name="judge bench", command=(python, "-m", "deploy.local.bench", "judge"))]


def chat_bench_stages(python: str) -> list[Stage]:
    """Measures the web process, and the product with its engines, against their bare parts."""
    return [Stage(name="chat bench", command=(python, "-m", "deploy.local.chat_bench"))]


def parts_of_tests(place: Place, *, with_vllm: bool) -> list[Part]:
    """A run's parts, the test tools, and vLLM for the engine contracts."""
    ours = launch.installation_parts(place)
    tools = parts.test_environment(ours[0].folder(place.cache))
    vllm = [parts.vllm_environment()] if with_vllm and not place.needs_vllm else []
    return [*ours, tools, *vllm]


def preflight(place: Place, *, needed: list[Part], needs_browser: bool) -> list[machine.Problem]:
    """Everything that stands in the way of the tests."""
    problems = machine.check_basics(needs_node=True)
    checks = [
        machine.check_writable(place.cache, variable="RAPPORT_CACHE"),
        machine.check_disk(place.cache, needed_mb=parts.missing_mb(needed, place=place), variable="RAPPORT_CACHE"),
    ]
    if needs_browser:
        checks.append(
            machine.check_browser(
                found=machine.find_browser(), is_root=os.geteuid() == 0, has_apt=machine.has_command("apt-get")
            )
        )
    return problems + [problem for problem in checks if problem is not None]


def set_up(place: Place, *, needed: list[Part], needs_browser: bool) -> str | None:
    """Builds what is missing and returns the tests' interpreter; None where it could not, with the reason printed."""
    problems = preflight(place, needed=needed, needs_browser=needs_browser)
    if problems:
        launch.print_problems(problems, command="test")
        return None
    progress = Progress(len(needed) + int(needs_browser))
    try:
        for part in needed:
            folder = ensure(part, cache=place.cache, progress=progress)
            if part.kind == "node":
                parts.link_node_modules(folder)
        if needs_browser:
            _ensure_browser(place, progress=progress)
    except StepFailed as failure:
        print(f"\n{failure}")
        return None
    tools = next(part for part in needed if part.kind == "env/test")
    return str(parts.python_of(tools.folder(place.cache)))


def _ensure_browser(place: Place, *, progress: Progress) -> None:
    found = machine.find_browser()
    if found:
        progress.skip("finding a browser", why=found)
        return
    log = place.cache / "log" / "browser.log"
    with progress.step("installing Chromium (apt)", log=log):
        parts.install_browser(log)


def stage_environ(place: Place, *, tools: Path) -> dict[str, str]:
    """What the stages see: the built parts, the tools first on the path, and none of the product's own settings."""
    kept = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    paths = f"{tools / 'bin'}:{kept.get('PATH', '')}"
    folders = launch.expected_installation(place).environ()
    ours = {"PATH": paths, "RAPPORT_CACHE": str(place.cache), "PYTHONUNBUFFERED": "1"}
    # The type checker reads the settings too, and they refuse to load without a key.
    return {**kept, **folders, **ours, "RAPPORT_SECRET_KEY": secrets.token_urlsafe(48)}


def run_stages(stages: list[Stage], *, place: Place, environ: Mapping[str, str]) -> int:
    """Runs all of them, prints each one's time and, at the end, which failed; returns the exit status."""
    adopt_orphans()
    results = []
    for number, stage in enumerate(stages, start=1):
        print(f"\n--- {number}/{len(stages)} {stage.name}: {' '.join(stage.command)[:140]}", flush=True)
        results.append(_run_stage(stage, place=place, environ=environ))
    print("\n--- summary", flush=True)
    for result in results:
        outcome = "ok" if result.exit_code == 0 else f"FAILED ({result.exit_code})"
        print(f"{result.name:<22} {result.seconds:7.1f} s  {outcome}")
    failed = [result.name for result in results if result.exit_code != 0]
    print(f"failed: {', '.join(failed)}" if failed else "every stage passed", flush=True)
    return 1 if failed else 0


def _run_stage(stage: Stage, *, place: Place, environ: Mapping[str, str]) -> StageResult:
    began = time.monotonic()
    try:
        done = subprocess.run(
            stage.command, cwd=place.root / stage.folder, env=dict(environ), stdin=subprocess.DEVNULL, check=False
        )
        exit_code = done.returncode
    finally:
        # What a failed test leaves behind must not keep a port or a file from the next stage.
        end_descendants(grace_s=STRAY_GRACE_S)
    return StageResult(name=stage.name, exit_code=exit_code, seconds=time.monotonic() - began)


def run(place: Place, *, command: str) -> int:
    """`test`, `test-fast`, `fmt` or one of the benches; returns the exit status."""
    needs_all = command == "test"
    needed = parts_of_tests(place, with_vllm=needs_all or command == "bench-chat")
    python = set_up(place, needed=needed, needs_browser=needs_all)
    if python is None:
        return 1
    stages = {
        "test": all_stages,
        "test-fast": fast_stages,
        "fmt": fmt_stages,
        "bench-safety": bench_stages,
        "bench-judge": judge_bench_stages,
        "bench-chat": chat_bench_stages,
    }
    environ = stage_environ(place, tools=Path(python).parents[1])
    sys.stdout.flush()
    return run_stages(stages[command](python), place=place, environ=environ)
