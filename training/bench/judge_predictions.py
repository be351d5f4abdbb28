"""Out-of-fold predictions that the recipes `judge` and `examiner` leave in the data folder, as the bench reads them.

`judge/folds.jsonl` and `examiner/folds.jsonl` hold one line per corpus reply, `epitome.jsonl` beside each one line per
pair of EPITOME: always by weights that never saw the conversation or the post.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

from pydantic import Field, field_validator

from rubric.corpus.rubrics import Side
from training.bench.judge_asking import expected_level
from training.data.reading import Loader, Record, jsonl_rows, load_file

FOLDS: Final = "folds.jsonl"
EPITOME_FOLDS: Final = "epitome.jsonl"
COMMANDS: Final = {
    "judge": "python -m training.recipes.judge --folds",
    "examiner": "python -m training.recipes.examiner --folds",
}
Who = Literal["judge", "examiner"]
Share = Annotated[float, Field(ge=0, le=1)]
MechanismShares = tuple[Share, Share, Share]
_SUM_SLACK: Final = 1e-3


class _Prediction(Record):
    fold: Annotated[int, Field(ge=0)]
    mechanisms: tuple[MechanismShares, MechanismShares, MechanismShares]

    @field_validator("mechanisms")
    @classmethod
    def _sums(cls, value: tuple[MechanismShares, ...]) -> tuple[MechanismShares, ...]:
        if any(abs(sum(shares) - 1) > _SUM_SLACK for shares in value):
            raise ValueError("probabilities do not sum to 1")
        return value


class ReplyPrediction(_Prediction):
    """What was predicted of one corpus reply; `turn` counts from 1. The judge gives levels, the examiner a quality."""

    conversation: str
    turn: Annotated[int, Field(ge=1)]
    side: Side
    levels: tuple[Annotated[tuple[Share, ...], Field(min_length=5, max_length=5)], ...] = ()
    quality: float | None = None

    @property
    def id(self) -> str:
        """The pair's id with the side."""
        return f"{self.conversation}.{self.turn}/{self.side}"

    @property
    def group(self) -> str:
        """The conversation."""
        return self.conversation

    @property
    def expected(self) -> tuple[float, ...]:
        """The mean level per criterion, in the order of `rubric_of`."""
        return tuple(expected_level(shares) for shares in self.levels)


class EpitomePrediction(_Prediction):
    """What was predicted of one pair of EPITOME."""

    pair: str

    @property
    def id(self) -> str:
        """The pair's id."""
        return self.pair

    @property
    def group(self) -> str:
        """The seeker's post."""
        return self.pair.partition(".")[0]


_Kind = TypeVar("_Kind", ReplyPrediction, EpitomePrediction)


def read_folds(folder: Path, who: Who) -> dict[str, ReplyPrediction] | None:
    """Predictions of corpus replies by id; None where the recipe left none. Raises DataFileInvalid."""
    return _read(folder / who / FOLDS, ReplyPrediction)


def read_epitome_folds(folder: Path, who: Who) -> dict[str, EpitomePrediction] | None:
    """Predictions of EPITOME by pair; None where the recipe left none. Raises DataFileInvalid."""
    return _read(folder / who / EPITOME_FOLDS, EpitomePrediction)


def missing_note(who: Who) -> str:
    """What to do about predictions that are not there."""
    return f"no out-of-fold predictions here: {COMMANDS[who]} makes them"


def _read(path: Path, kind: type[_Kind]) -> dict[str, _Kind] | None:
    if not path.is_file():
        return None
    loader: Loader[_Kind] = Loader(rows=jsonl_rows, record=lambda row, _number: kind.model_validate(row))
    return {one.id: one for one in load_file(path, loader)}
