"""`make bench-judge`: what the judges are worth, row by row, as JSON lines.

`python -m training.bench.judge --encoder URL --pid N --folder EXPORT [--parts pairs,probes]` asks the encoder process,
which serves the committed weights' export, and the examiner. Rows that need public data or the recipes' out-of-fold
predictions are said to be not measured where those are missing; the exit status is 1 only where they were asked for by
name, or where a part failed. A missed bar is a finding and no failure. `docs/judges.md` explains the rows.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from rubric import EncoderClient, EncoderError, JudgeReading, RubricError, Transcript
from rubric.examiner import Examined, Examiner
from training.bench import (
    judge_calibration,
    judge_counsel,
    judge_mechanisms,
    judge_pairs,
    judge_probing,
    judge_sense,
    judge_speed,
)
from training.bench.judge_asking import TIMEOUT_S, AskJudge, Instruments, Question, ask_examiner, ask_judge
from training.bench.judge_rows import PARTS, Row
from training.bench.judge_speed import Served
from training.data.sources import public_data_folder

MEASURES: Final[dict[str, Callable[[Instruments], Awaitable[list[Row]]]]] = {
    "pairs": judge_pairs.measure,
    "sense": judge_sense.measure,
    "mechanisms": judge_mechanisms.measure_mechanisms,
    "transfer": judge_mechanisms.measure_transfer,
    "probes": judge_probing.measure,
    "calibration": judge_calibration.measure,
    "counsel": judge_counsel.measure,
}


def wanted_parts(text: str) -> tuple[str, ...]:
    """`pairs,probes` as a tuple; everything for nothing. Raises ValueError for a part that does not exist."""
    named = tuple(part.strip() for part in text.split(",") if part.strip())
    unknown = [name for name in named if name not in PARTS]
    if unknown:
        raise ValueError(f"No such part: {', '.join(unknown)}. There are: {', '.join(PARTS)}.")
    return named or PARTS


def remembering(ask: AskJudge) -> AskJudge:
    """The same questions are asked once: several parts grade the same replies."""
    known: dict[Question, JudgeReading] = {}

    async def ask_new(questions: Sequence[Question]) -> list[JudgeReading]:
        new = list(dict.fromkeys(question for question in questions if question not in known))
        known.update(zip(new, await ask(new), strict=True))
        return [known[question] for question in questions]

    return ask_new


async def measure(parts: Sequence[str], tools: Instruments, served: Served) -> tuple[list[Row], list[str]]:
    """The rows of these parts, and which parts failed; each is printed as soon as it is there."""
    rows: list[Row] = []
    failed: list[str] = []
    for part in parts:
        began_s = time.monotonic()
        try:
            found = await (judge_speed.measure(served) if part == "speed" else MEASURES[part](tools))
        except* (EncoderError, RubricError, OSError, ValueError) as group:
            for error in group.exceptions:
                print(f"{part}: could not be measured: {type(error).__name__}: {error}", file=sys.stderr)
            failed.append(part)
        else:
            rows += found
            for row in found:
                print(row.as_json(), flush=True)
            print(f"{part}: {time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)
    return rows, failed


async def run(asked: argparse.Namespace, parts: Sequence[str]) -> tuple[list[Row], list[str]]:
    """Opens what is asked and measures."""
    served = Served(url=asked.encoder.rstrip("/"), pid=asked.pid, folder=asked.folder)
    async with EncoderClient(served.url, timeout_s=TIMEOUT_S) as client:
        load_examiner = functools.cache(Examiner.load)  # only the parts that ask it need its weights

        async def examine(replies: Sequence[tuple[Transcript, str]]) -> list[Examined]:
            return await ask_examiner(client, load_examiner(), replies)

        async def judge(questions: Sequence[Question]) -> list[JudgeReading]:
            return await ask_judge(client, questions)

        tools = Instruments(
            judge=remembering(judge),
            ask_afresh=judge,
            examine=examine,
            predictions=asked.predictions,
            public_data=public_data_folder(),
        )
        return await measure(parts, tools, served)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m training.bench.judge", description=__doc__)
    parser.add_argument("--encoder", required=True, help="encoder process, such as http://127.0.0.1:8100")
    parser.add_argument("--pid", type=int, required=True, help="of the encoder process, to give it one core for G12")
    parser.add_argument("--folder", type=Path, required=True, help="the export that the process serves")
    parser.add_argument("--predictions", type=Path, default=Path("var"), help="where recipes leave their predictions")
    parser.add_argument("--parts", default="", help=f"some of {','.join(PARTS)}; else all")
    asked = parser.parse_args(arguments)
    try:
        parts = wanted_parts(asked.parts)
    except ValueError as error:
        parser.error(str(error))
    rows, failed = asyncio.run(run(asked, parts))
    return exit_status(rows, failed, is_named=bool(asked.parts))


def exit_status(rows: Sequence[Row], failed: Sequence[str], *, is_named: bool) -> int:
    """1 where a part failed, or where a row of a part that was asked for by name could not be measured."""
    missing = [row.goal.key for row in rows if row.found is None]
    if missing:
        print(f"Not measured: {', '.join(missing)}.", file=sys.stderr)
    return 1 if failed or (is_named and missing) else 0


if __name__ == "__main__":
    sys.exit(main())
