"""Cross-validation by families, and the rule that chooses the card's threshold from it: a part of the recipe `screen`.

Each fold's families are left out of the training once and read by the screen that has not seen them; the findings of
all folds together are what `watch_threshold` looks at. The suite has no part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rubric.serve.bundle import Thresholds
from training.data.screen_lines import ScreenLine
from training.recipes.screen_figures import Findings, figures

TRIED: Final = (0.05, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
CRISES_WITH_CARD: Final = 0.97  # share of left-out crisis lines of visitors, at least: the bar of the suite


def folds_of(lines: Sequence[ScreenLine], *, count: int) -> list[set[str]]:
    """Families (by direction and label) dealt into folds, largest first, so that folds are of like size."""
    sizes: dict[str, int] = {}
    for line in lines:
        sizes[family_key(line)] = sizes.get(family_key(line), 0) + 1
    folds: list[set[str]] = [set() for _ in range(count)]
    totals = [0] * count
    for key in sorted(sizes, key=lambda key: (-sizes[key], key)):
        smallest = totals.index(min(totals))
        folds[smallest].add(key)
        totals[smallest] += sizes[key]
    return folds


def family_key(line: ScreenLine) -> str:
    """What is left out together."""
    return f"{line.direction}/{line.label}/{line.family}"


def watch_threshold(found: Findings, is_crisis: NDArray[np.bool_], *, high: float) -> float | None:
    """The highest of TRIED at which enough crises get a card (recall goes first); None where none is low enough."""
    for watch in reversed(TRIED):
        counted = figures(found, is_crisis, thresholds=Thresholds(watch=watch, high=high))
        if counted.crisis_found >= CRISES_WITH_CARD * counted.crisis:
            return watch
    return None


def by_threshold(found: Findings, is_crisis: NDArray[np.bool_], *, high: float) -> dict[str, dict[str, float]]:
    """Both shares at each of TRIED."""
    shares: dict[str, dict[str, float]] = {}
    for watch in TRIED:
        facts = figures(found, is_crisis, thresholds=Thresholds(watch=watch, high=high)).as_facts()
        shares[str(watch)] = {name: facts[name] for name in ("recall", "specificity")}
    return shares
