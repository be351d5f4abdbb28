"""What a learned rubric generator must beat on ESConv: cross-entropy of the dimension that supporters served next.

`python -m training.bench.support_baselines [FOLDER]` prints them, in nats per row of the test part, with everything
fitted on the train part by the committed row builder.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from rubric import Dimension, Stage
from rubric.corpus.records import SupportStrategy
from training.data.esconv import ESCONV
from training.data.reading import load_file
from training.data.sources import public_data_folder, source_named
from training.data.support_rows import SupportRow, support_rows

Matrix: TypeAlias = npt.NDArray[np.float64]
LAST_STRATEGIES = 2
MOST_REPLIES = 12  # replies before this turn are counted one by one up to here


@dataclass(frozen=True, kw_only=True, slots=True)
class Baselines:
    """Cross-entropy in nats; uniform is log 3."""

    train_rows: int
    test_rows: int
    uniform: float
    fixed: float
    stage: float
    stage_and_strategies: float


def read_rows(folder: Path, part: str) -> list[SupportRow]:
    """The rows of one part ("train", "valid", "test"). Raises DataFileInvalid."""
    path = folder / "esconv" / f"esconv_{part}.jsonl.gz"
    return [row for conversation in load_file(path, ESCONV) for row in support_rows(conversation)]


def measure(train: Sequence[SupportRow], test: Sequence[SupportRow]) -> Baselines:
    """Fit on `train`, measure on `test`."""
    everything = [0 for _ in (*train, *test)]
    stages = [list(Stage).index(row.stage) for row in (*train, *test)]
    return Baselines(
        train_rows=len(train),
        test_rows=len(test),
        uniform=math.log(len(Dimension)),
        fixed=_by_group(train, test, groups=everything),
        stage=_by_group(train, test, groups=stages),
        stage_and_strategies=_logistic(train, test),
    )


def labels_of(rows: Sequence[SupportRow]) -> npt.NDArray[np.int64]:
    """[rows]: the index of each row's dimension."""
    order = list(Dimension)
    return np.array([order.index(row.dimension) for row in rows], dtype=np.int64)


def _by_group(train: Sequence[SupportRow], test: Sequence[SupportRow], *, groups: list[int]) -> float:
    """The share of each dimension in a group, with one added to each count."""
    counts: Matrix = np.ones((max(groups) + 1, len(Dimension)))
    np.add.at(counts, (np.array(groups[: len(train)]), labels_of(train)), 1.0)
    shares = counts / counts.sum(axis=1, keepdims=True)
    return _cross_entropy(shares[np.array(groups[len(train) :])], labels_of(test))


def _logistic(train: Sequence[SupportRow], test: Sequence[SupportRow]) -> float:
    model = LogisticRegression(max_iter=300).fit(features_of(train), labels_of(train))
    return _cross_entropy(model.predict_proba(features_of(test)), labels_of(test))


def features_of(rows: Sequence[SupportRow]) -> Matrix:
    """[rows, features]: stage and turn, the last two strategies, and how often each was used so far."""
    return np.array([_features(row) for row in rows], dtype=np.float64)


def _features(row: SupportRow) -> list[float]:
    strategies = list(SupportStrategy)
    counts = [row.previous.count(strategy) for strategy in strategies]
    last = [row.previous[-back] if len(row.previous) >= back else None for back in range(1, LAST_STRATEGIES + 1)]
    return [
        *(float(row.stage is stage) for stage in Stage),
        *(float(min(row.replies_before, MOST_REPLIES) == turn) for turn in range(MOST_REPLIES + 1)),
        *(float(used is strategy) for used in last for strategy in (*strategies, None)),
        *(math.log1p(count) for count in counts),
        *(count / max(1, sum(counts)) for count in counts),
    ]


def _cross_entropy(probabilities: Matrix, labels: npt.NDArray[np.int64]) -> float:
    return float(-np.log(probabilities[np.arange(len(labels)), labels]).mean())


def main(arguments: list[str]) -> int:
    """Print the baselines; 1 where the data are not there."""
    folder = Path(arguments[0]) if arguments else public_data_folder()
    if folder is None or not source_named("esconv").paths(folder)[0].is_file():
        print("ESConv is not here: name the folder of public data, or set RAPPORT_PUBLIC_DATA.")
        return 1
    figures = measure(read_rows(folder, "train"), read_rows(folder, "test"))
    print(f"rows: train {figures.train_rows}, test {figures.test_rows}; cross-entropy on test:")
    for name in ("uniform", "fixed", "stage", "stage_and_strategies"):
        print(f"  {name:<21} {getattr(figures, name):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
