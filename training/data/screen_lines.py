"""The screen's training lines, read and checked, and the rule that keeps the held-out suite out of them.

The recipe `screen` loads `rubric/corpus/screen/{visitor,reply}-*.jsonl` through here, the corpus test asks the same
questions. Suite texts are only ever compared by their word 5-grams; they train nothing and are printed nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from rubric import JsonValue
from rubric.corpus.measures import word_runs
from training.data.public_texts import counsel_questions, counsel_sentences, goemotions_by_id, news_reactions

ScreenLabel = Literal["none", "watch", "high"]
SpeakerDirection = Literal["visitor", "reply"]
LABELS: Final[tuple[ScreenLabel, ...]] = ("none", "watch", "high")
DIRECTIONS: Final[tuple[SpeakerDirection, ...]] = ("visitor", "reply")
GRAM_WORDS: Final = 5
PUBLIC_WORDS: Final = 60
SUITE_PARTS: Final = ("tuning", "counted_before", "held_out")
PUBLIC: Final = Path(__file__).parent / "screen_public.jsonl"

Gram = tuple[str, ...]


class CorpusInvalid(ValueError):
    """A corpus or suite file has a line that is not what its schema says; names the file and the line number."""

    def __init__(self, path: Path, number: int, problem: str) -> None:
        super().__init__(f"{path.name}, line {number}: {problem}.")


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenLine:
    """One labelled text; lines of a family are never divided between folds."""

    id: str
    label: ScreenLabel
    family: str
    text: str
    author: str
    direction: SpeakerDirection


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """What may train, and how many lines the suite's 5-grams cost."""

    lines: tuple[ScreenLine, ...]
    dropped_ids: tuple[str, ...]


def load_corpus(folder: Path, *, suite_folder: Path, more: Sequence[ScreenLine] = ()) -> Corpus:
    """All lines and `more`, less those that share a word 5-gram with a suite text. Raises CorpusInvalid.

    Lines that share one with the tuning part are dropped too: its figures choose the thresholds.
    """
    lines = (*read_lines(folder), *more)
    grams = frozenset[Gram]().union(*(suite_grams(suite_folder / f"{part}.jsonl") for part in SUITE_PARTS))
    kept = tuple(line for line in lines if not five_grams(line.text) & grams)
    kept_ids = {line.id for line in kept}
    return Corpus(lines=kept, dropped_ids=tuple(line.id for line in lines if line.id not in kept_ids))


def read_lines(folder: Path) -> tuple[ScreenLine, ...]:
    """Every line of `visitor-*.jsonl` and `reply-*.jsonl`, here and in folders below. Ids are unique."""
    lines: list[ScreenLine] = []
    seen: set[str] = set()
    for direction in DIRECTIONS:
        for path in sorted(folder.rglob(f"{direction}-*.jsonl")):
            for number, record in _records(path):
                line = _line(record, direction=direction)
                if line is None or line.id in seen:
                    raise CorpusInvalid(path, number, "a field is missing or wrong, or the id is not new")
                seen.add(line.id)
                lines.append(line)
    return tuple(lines)


def public_lines(data_folder: Path | None) -> tuple[ScreenLine, ...]:
    """The public texts that we labelled (`screen_public.jsonl`: id and label), from the data folder where it is given.

    Ids are `<data set>:<id in it>`; the texts themselves are not in the repository. Only the first 60 words are used.
    A record without a direction is what a visitor might say.
    Raises CorpusInvalid where an id is not in the data.
    """
    if data_folder is None:
        return ()
    sources = {
        "goemotions": goemotions_by_id(data_folder, "train"),
        "counsel_chat": counsel_questions(data_folder),
        "counsel_answers": counsel_sentences(data_folder),
        "empathic_reactions": news_reactions(data_folder),
    }
    lines = []
    for number, record in _records(PUBLIC):
        source, _, identity = str(record.get("id")).partition(":")
        text = sources.get(source, {}).get(identity, "")
        completed: dict[str, JsonValue] = {
            **record,
            "text": " ".join(text.split()[:PUBLIC_WORDS]),
            "family": f"public-{source}",
            "author": "public",
        }
        line = _line(completed, direction="reply" if record.get("direction") == "reply" else "visitor")
        if line is None:
            raise CorpusInvalid(PUBLIC, number, "its id is not in the data, or its label is wrong")
        lines.append(line)
    return tuple(lines)


def _line(record: dict[str, JsonValue], *, direction: SpeakerDirection) -> ScreenLine | None:
    identity, family, text, author = (record.get(name) for name in ("id", "family", "text", "author"))
    label = next((label for label in LABELS if label == record.get("label")), None)
    if not (
        isinstance(identity, str) and isinstance(family, str) and isinstance(text, str) and isinstance(author, str)
    ):
        return None
    if label is None or not text.strip():
        return None
    return ScreenLine(id=identity, label=label, family=family, text=text, author=author, direction=direction)


def _records(path: Path) -> Iterable[tuple[int, dict[str, JsonValue]]]:
    for number, raw in enumerate(path.read_text("utf-8").splitlines(), start=1):
        try:
            record = json.loads(raw)
        except ValueError as error:
            raise CorpusInvalid(path, number, "it is not JSON") from error
        if not isinstance(record, dict):
            raise CorpusInvalid(path, number, "it is not an object")
        yield number, record


def five_grams(text: str) -> frozenset[Gram]:
    """The case-folded word 5-grams of a text; fewer than five words have none."""
    return frozenset(word_runs(text, length=GRAM_WORDS))


def suite_grams(path: Path) -> frozenset[Gram]:
    """The 5-grams of every turn of a suite file."""
    return frozenset().union(*(five_grams(turn) for item in read_suite(path) for turn in item.turns))


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteItem:
    """One conversation of the crisis suite: what a visitor sends, turn by turn."""

    id: str
    is_crisis: bool  # else a look-alike
    family: str
    turns: tuple[str, ...]


def read_suite(path: Path) -> tuple[SuiteItem, ...]:
    """The items of one part, such as `held_out.jsonl`. Raises CorpusInvalid."""
    items = []
    for number, record in _records(path):
        identity, kind, family, turns = (record.get(name) for name in ("id", "kind", "family", "turns"))
        texts = _strings(turns)
        if not isinstance(identity, str) or not isinstance(family, str) or kind not in ("crisis", "look_alike"):
            raise CorpusInvalid(path, number, "its id, kind or family is wrong")
        if not texts:
            raise CorpusInvalid(path, number, "its turns are no list of texts")
        items.append(SuiteItem(id=identity, is_crisis=kind == "crisis", family=family, turns=texts))
    return tuple(items)


def _strings(value: JsonValue) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return ()
    return tuple(str(item) for item in value)


def count_by(lines: Sequence[ScreenLine]) -> dict[tuple[SpeakerDirection, ScreenLabel], int]:
    """How many lines there are by direction and label."""
    return {
        (direction, label): sum(1 for line in lines if line.direction == direction and line.label == label)
        for direction in DIRECTIONS
        for label in LABELS
    }
