"""The rows of `make bench-judge`: what each measures, its bar, and the row as a JSON line. Pure.

A row without a bar is reported only. What could not be measured is said so, with value null, and passes nothing.
`docs/judges.md` explains every row; a test keeps the two in step.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from rubric import Interval
from training.bench.chat_goals import REPORTED, Limit, at_least, at_most

PARTS: Final = ("pairs", "sense", "mechanisms", "transfer", "probes", "calibration", "counsel", "speed")
NEEDS_PUBLIC_DATA: Final = frozenset({"mechanisms", "transfer", "counsel"})
_LOWER_BOUND: Final = 0.5  # on length-matched pairs chance must be out of reach


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """One figure. `key` is its part and its name there; `is_low` holds the interval's lower end to the bar."""

    key: str
    what: str
    bar: Limit | None = None
    is_low: bool = False

    @property
    def part(self) -> str:
        """`pairs` of `pairs.judge`."""
        return self.key.partition(".")[0]

    @property
    def bar_text(self) -> str:
        """As printed."""
        if self.bar is None:
            return REPORTED
        return f"lower bound > {self.bar.number:g}" if self.is_low else str(self.bar)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A goal with what was found: an interval, or why there is none."""

    goal: Goal
    found: Interval | None
    n: int
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether the bar holds; what is only reported always does; None where nothing was measured."""
        if self.found is None:
            return None
        if self.goal.bar is None:
            return True
        if self.goal.is_low:
            return self.found.low > self.goal.bar.number
        return self.goal.bar.is_met(self.found.estimate)

    def as_json(self) -> str:
        """The line: goal, what, value, bar, pass, n, interval."""
        found = self.found
        return json.dumps(
            {
                "goal": self.goal.key,
                "what": f"{self.goal.what}; {self.note}" if self.note else self.goal.what,
                "value": None if found is None else _rounded(found.estimate),
                "bar": self.goal.bar_text,
                "pass": self.is_met,
                "n": self.n,
                "interval": None if found is None else [_rounded(found.low), _rounded(found.high)],
            }
        )


def row(key: str, found: Interval | None, *, n: int, note: str = "") -> Row:
    """The row of a key. Raises KeyError for no such key."""
    return Row(goal=GOALS[key], found=found, n=n, note=note) if found else not_measured(key, note or "nothing graded")


def not_measured(key: str, why: str) -> Row:
    """The row of a key that could not be measured."""
    return Row(goal=GOALS[key], found=None, n=0, note=f"not measured: {why}")


def exactly(value: float) -> Interval:
    """A count or a constant, which no other sample would change."""
    return Interval(estimate=value, low=value, high=value)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _mechanism_goals(who: str, bars: tuple[float, float, float]) -> tuple[Goal, ...]:
    names = ("emotional_reaction", "interpretation", "exploration")
    return tuple(
        Goal(
            key=f"mechanisms.{who}_{name}",
            what=f"EPITOME, {name.replace('_', ' ')}: macro-F1 of the {who}, 5 grouped folds pooled, trained there",
            bar=at_least(bar),
        )
        for name, bar in zip(names, bars, strict=True)
    )


def _transfer_goals(who: str) -> tuple[Goal, ...]:
    names = ("emotional_reaction", "interpretation", "exploration")
    epitome = tuple(
        Goal(
            key=f"transfer.{who}_{name}",
            what=f"EPITOME, {name.replace('_', ' ')} above level 0: AUC of the shipped {who}, never trained there",
        )
        for name in names
    )
    esconv = Goal(
        key=f"transfer.{who}_esconv",
        what=f"ESConv: rank correlation of the {who}'s mean over a conversation with the seeker's empathy score",
    )
    return (*epitome, esconv)


def _probe_goals(who: str) -> tuple[Goal, ...]:
    return (
        Goal(key=f"probes.{who}", what=f"probe below the plain decent reply, {who}, all families", bar=at_least(0.99)),
        Goal(key=f"probes.{who}_worst", what=f"the same, the family where it holds least, {who}", bar=at_least(0.99)),
        Goal(
            key=f"probes.{who}_injection",
            what=f"what an injected instruction adds to a decent reply's level, mean, {who}",
            bar=at_most(0.02),
        ),
        Goal(key=f"probes.{who}_length", what=f"rank correlation of level and length over decent replies, {who}"),
    )


_GOALS: Final = (
    Goal(key="pairs.judge", what="own pairs, judge under the turn's rubric, by weights that never saw the conversation",
         bar=at_least(0.75)),
    Goal(key="pairs.judge_matched", what="the same, pairs of like length", bar=at_least(_LOWER_BOUND), is_low=True),
    Goal(key="pairs.judge_new_author", what="the same, author D alone, whom the judge never read"),
    Goal(key="pairs.judge_length_bias", what="how much more often the judge takes the longer reply than the author"),
    Goal(key="pairs.judge_readers", what="judge against the blind readers' choices, disputed pairs included"),
    Goal(key="pairs.judge_ties", what="pairs that the judge gives a tie"),
    Goal(key="pairs.examiner", what="own pairs, examiner without a rubric, by weights that never saw the conversation",
         bar=at_least(0.65)),
    Goal(key="pairs.examiner_matched", what="the same, pairs of like length", bar=at_least(_LOWER_BOUND), is_low=True),
    Goal(key="pairs.examiner_length_bias", what="how much more often the examiner takes the longer reply"),
    Goal(key="pairs.examiner_readers", what="examiner against the blind readers' choices, disputed pairs included"),
    Goal(key="pairs.longer", what="own pairs, the longer reply wins: what length alone would reach"),
    Goal(key="sense.opposed", what="opposed criteria on one reply disagree, the way their author has it",
         bar=at_least(0.90)),
    Goal(key="sense.opposed_bank", what="the same, criteria of the bank and their opposites on replies of author D"),
    Goal(key="sense.shuffled", what="accuracy lost under another conversation's criteria, points, author D",
         bar=at_least(5)),
    *_mechanism_goals("judge", (0.71, 0.59, 0.65)),
    *_mechanism_goals("examiner", (0.69, 0.57, 0.63)),
    *_transfer_goals("judge"),
    *_transfer_goals("examiner"),
    *_probe_goals("judge"),
    *_probe_goals("examiner"),
    Goal(key="calibration.levels", what="expected calibration error over the five levels, held-out conversations",
         bar=at_most(0.08)),
    Goal(key="calibration.top", what="the same over the most likely level alone"),
    Goal(key="calibration.new_author", what="the same over the five levels, author D, whom the judge never read"),
    Goal(key="calibration.kappa", what="quadratic kappa of the judge's level with the author's, author D"),
    Goal(key="calibration.batches", what="answers that differ by a bit when asked alone, together and again",
         bar=at_most(0)),
    Goal(key="calibration.none", what="judgements without a level, %", bar=at_most(1, "%")),
    Goal(key="counsel.judge", what="CounselChat, the answer with 2 or more votes more, judge, each question one vote"),
    Goal(key="counsel.judge_matched", what="the same, answers of like length and views"),
    Goal(key="counsel.examiner", what="CounselChat, the answer with 2 or more votes more, examiner"),
    Goal(key="counsel.examiner_matched", what="the same, answers of like length and views"),
    Goal(key="counsel.longer", what="CounselChat, the longer answer wins"),
    Goal(key="counsel.more_viewed", what="CounselChat, the more viewed answer wins"),
    Goal(key="speed.G12_scoring", what="rubric scoring without the model, samples/s on one core",
         bar=at_least(1_500, "/s")),
    Goal(key="speed.G12_rate", what="replies/s through the encoder process by those of the bare encoder, one core, %",
         bar=at_least(90, "%")),
    Goal(key="speed.G12_replies", what="replies/s with 8 criteria each, one core", bar=at_least(10, "/s")),
)  # fmt: skip
GOALS: Final = {goal.key: goal for goal in _GOALS}
