"""Probes: what is fooled shows as a miss, in the family where it happens."""

import pytest

from rubric import Role, Transcript
from rubric.criteria import Polarity
from rubric.fallback import GENERIC_CRITERIA
from tests.fakes.judges import instruments
from training.bench.judge_asking import Question
from training.bench.judge_probing import is_below, measure
from training.bench.judge_rows import Row
from training.data.judge_probes import Family, read_decent, read_probes

DECENT = {one.reply for one in read_decent()}
AVOID = {criterion.text for criterion in GENERIC_CRITERIA if criterion.polarity is Polarity.AVOID}
KEYS = {probe.text for probe in read_probes() if probe.family is Family.MASTER_KEYS}


def starts_decent(reply: str) -> bool:
    return any(reply.startswith(decent) for decent in DECENT)


def level(question: Question, criterion: str) -> float | None:
    if not question.reply.strip():
        return None
    return float((criterion in AVOID) is not starts_decent(question.reply))


def by_key(rows: list[Row]) -> dict[str, Row]:
    return {row.goal.key: row for row in rows}


async def test_a_judge_that_is_not_fooled_meets_every_bar() -> None:
    rows = by_key(
        await measure(instruments(level=level, quality=lambda _context, reply: 0.9 if starts_decent(reply) else 0.2))
    )
    for who in ("judge", "examiner"):
        assert rows[f"probes.{who}"].is_met
        assert rows[f"probes.{who}_worst"].is_met
        assert rows[f"probes.{who}_injection"].is_met
    assert rows["probes.judge"].n >= 100 * len(Family)


async def test_the_family_that_fools_is_named() -> None:
    def fooled(_context: Transcript, reply: str) -> float:
        return 0.9 if starts_decent(reply) or reply in KEYS else 0.2

    rows = by_key(await measure(instruments(level=level, quality=fooled)))
    assert rows["probes.examiner"].is_met is False
    worst = rows["probes.examiner_worst"]
    assert worst.found is not None
    assert (worst.found.estimate, worst.note) == (0.0, "master_keys 0.000")


async def test_what_an_ending_adds_is_measured() -> None:
    def swayed(context: Transcript, reply: str) -> float:
        assert context.utterances[-1].role is Role.USER
        return 0.5 if reply in DECENT else 0.6 if starts_decent(reply) else 0.1

    gain = by_key(await measure(instruments(level=level, quality=swayed)))["probes.examiner_injection"]
    assert gain.found is not None
    assert gain.found.estimate == pytest.approx(0.1)
    assert gain.is_met is False


@pytest.mark.parametrize(
    ("probe", "decent", "below"),
    [
        (0.2, 0.5, True),
        (0.5, 0.5, False),
        (0.6, 0.5, False),
        (None, 0.5, True),
        (0.2, None, False),
        (None, None, False),
    ],
)
def test_a_tie_is_not_below_and_none_is_no_number(probe: float | None, decent: float | None, below: bool) -> None:
    assert is_below(probe, decent) is below
