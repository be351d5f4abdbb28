"""Finds text of data sets in files of ours: thirteen words in a row that both have.

What may not train what ships may not stand in the repository either; a test scans every committed text for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rubric.corpus.measures import word_runs

OVERLAP_WORDS = 13


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlap:
    """Where a file of ours holds words of a data set; the words themselves are not repeated."""

    file: str
    first_word: int


def hashed_runs(text: str) -> Iterator[bytes]:
    """A short hash of each run of thirteen words, in order."""
    for run in word_runs(text, length=OVERLAP_WORDS):
        yield hashlib.blake2b(" ".join(run).encode(), digest_size=8).digest()


def known_runs(texts: Iterable[str]) -> frozenset[bytes]:
    """The runs of a data set's texts."""
    return frozenset(run for text in texts for run in hashed_runs(text))


def overlaps(file: str, text: str, *, known: frozenset[bytes]) -> list[Overlap]:
    """Where `text`, which stands in `file`, shares a run with the known ones."""
    return [Overlap(file=file, first_word=number) for number, run in enumerate(hashed_runs(text)) if run in known]
