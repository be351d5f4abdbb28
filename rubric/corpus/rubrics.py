"""A corpus turn's rubric as the value that judges read, and the levels that its author gave: recipes and benchmarks.

Ids in such a rubric are those of the bank; criteria in an author's own words are `own-1`, `own-2`, ….
"""

from __future__ import annotations

from typing import Literal

from rubric.bank import load_bank
from rubric.corpus.records import CorpusTurn
from rubric.criteria import Criterion, Rubric

Side = Literal["reply", "worse"]


def rubric_of(turn: CorpusTurn) -> Rubric:
    """The turn's points as weights, and its criteria: the bank's in the order of the file, then the author's own.

    Raises KeyError for a criterion that is not in the bank, which `rubric.corpus check` refuses.
    """
    known = load_bank().by_id
    ours = tuple(known[identifier].to_criterion(identifier) for identifier in turn.criteria)
    own = tuple(
        Criterion(id=f"own-{number}", text=one.text, dimension=one.dimension, polarity=one.polarity)
        for number, one in enumerate(turn.own, start=1)
    )
    return Rubric(weights=turn.weights, criteria=(*ours, *own))


def levels_of(turn: CorpusTurn, side: Side) -> tuple[float | None, ...]:
    """The author's level per criterion of `rubric_of`, in its order; None for a worse reply that is not there."""
    pairs = [*turn.criteria.values(), *((one.level, one.level_of_worse) for one in turn.own)]
    return tuple(level if side == "reply" else level_of_worse for level, level_of_worse in pairs)
