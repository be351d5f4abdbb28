"""`make bench-chat`: measures the goals of the chat and prints one JSON line for each figure at the end.

`make bench-chat GOALS=G1,G3` measures some. 0 where everything was measured, bars missed or not; 1 where something
could not be. What is measured and how to read it: `docs/performance.md`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterable, Sequence

from deploy.local.chat_bench.plan import PLAN, Measurement, Part
from deploy.local.chat_bench.record import Record, code_hash
from deploy.local.place import ROOT, read_place
from training.bench.chat_goals import GOALS
from training.bench.machine import allow_files

OPEN_FILES = 30_000


def wanted_goals(text: str) -> tuple[str, ...]:
    """`G1,G3` as a tuple; everything for nothing. Raises ValueError for a goal that does not exist."""
    named = tuple(part.strip() for part in text.split(",") if part.strip())
    unknown = [name for name in named if name not in GOALS]
    if unknown:
        raise ValueError(f"No such goal: {', '.join(unknown)}. There are: {', '.join(GOALS)}.")
    return named or GOALS


def parts_for(goals: Iterable[str], *, done: Iterable[str] = ()) -> list[tuple[Part, list[Measurement]]]:
    """The parts that still have something to measure, each with what."""
    wanted, known = set(goals), set(done)
    found = [
        (part, [one for one in part.measurements if wanted & set(one.goals) and one.name not in known]) for part in PLAN
    ]
    return [(part, measurements) for part, measurements in found if measurements]


async def measure(goals: Sequence[str], record: Record) -> list[str]:
    """Runs what is not in the record yet; returns what could not be measured."""
    failed = []
    began_s = time.monotonic()
    for part, measurements in parts_for(goals, done=record.lines):
        say(f"starting: {part.name}", began_s=began_s)
        try:
            async with part.open() as running:
                for one in measurements:
                    say(f"measuring: {one.name} ({', '.join(one.goals)})", began_s=began_s)
                    try:
                        lines = await one.measure(running)
                    except Exception as error:
                        failed.append(one.name)
                        say(f"could not measure {one.name}: {type(error).__name__}: {error}", began_s=began_s)
                        continue
                    record.keep(one.name, [line.as_json() for line in lines])
                    for line in lines:
                        say(f"  {line.aim.key} {line.figure.value:.4g} ({line.aim.bar or 'reported'})", began_s=began_s)
        except Exception as error:
            failed += [one.name for one in measurements if one.name not in record.lines and one.name not in failed]
            say(f"could not start: {type(error).__name__}: {error}", began_s=began_s)
    return failed


def say(text: str, *, began_s: float) -> None:
    """One line of progress."""
    print(f"[{time.monotonic() - began_s:6.1f} s] {text}", file=sys.stderr, flush=True)


def print_lines(goals: Sequence[str], record: Record) -> None:
    """The lines of the wanted goals, in the plan's order."""
    for part in PLAN:
        for one in part.measurements:
            if set(one.goals) & set(goals):
                for line in record.lines.get(one.name, []):
                    print(line, flush=True)


def main() -> int:
    """The command; see above."""
    import uvloop

    try:
        goals = wanted_goals(os.environ.get("GOALS", ""))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    allow_files(OPEN_FILES)
    path = read_place(os.environ).data / "bench-chat.jsonl"
    record = Record.open(path, code=code_hash(ROOT))
    if record.lines:
        say(f"going on with an interrupted run: {', '.join(record.lines)} ({path})", began_s=time.monotonic())
    try:
        failed = uvloop.run(measure(goals, record))
    except (KeyboardInterrupt, asyncio.CancelledError):
        print_lines(goals, record)
        print(f"Stopped; what was measured is kept in {path}. The next run goes on from there.", file=sys.stderr)
        return 130
    print_lines(goals, record)
    if failed:
        print(f"Not measured: {', '.join(failed)}.", file=sys.stderr)
        return 1
    record.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
