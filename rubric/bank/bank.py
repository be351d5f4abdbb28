"""The bank as one value, and how it is read: every line strictly, with file and line number in the error."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources

from rubric.bank.criterion import BankCriterion, Setting
from rubric.bank.lines import ID, parse_line
from rubric.criteria import Dimension, Polarity, Stage
from rubric.errors import BankInvalid
from rubric.states import Emotion, Need

RETIRED_FILE = "retired.txt"


@dataclass(frozen=True, kw_only=True)  # no slots: two properties are computed once and kept
class Bank:
    """All criteria, sorted by id, and the ids that are never given again."""

    criteria: tuple[BankCriterion, ...]
    retired: frozenset[str]

    @cached_property
    def by_id(self) -> Mapping[str, BankCriterion]:
        return {criterion.id: criterion for criterion in self.criteria}

    @cached_property
    def version(self) -> str:
        """SHA-256 of the sorted content: the order of lines, tags and files does not count."""
        lines = sorted(json.dumps(criterion.to_json(), sort_keys=True) for criterion in self.criteria)
        return hashlib.sha256("\n".join(lines).encode("ascii")).hexdigest()

    def select(
        self,
        *,
        dimension: Dimension | None = None,
        polarity: Polarity | None = None,
        setting: Setting | None = None,
        stage: Stage | None = None,
        emotion: Emotion | None = None,
        need: Need | None = None,
    ) -> tuple[BankCriterion, ...]:
        """The criteria that fit, in the order of their ids; what is None is not asked about.

        `stage`, `emotion` and `need` follow `BankCriterion.fits`, so general criteria come along.
        """
        return tuple(
            criterion
            for criterion in self.criteria
            if dimension in {None, criterion.dimension}
            and polarity in {None, criterion.polarity}
            and setting in {None, criterion.setting}
            and criterion.fits(stage=stage, emotion=emotion, need=need)
        )


@cache
def load_bank() -> Bank:
    """Read the files beside this one, once per process. Raises BankInvalid."""
    folder = resources.files("rubric.bank")
    files = {
        entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir() if entry.name.endswith(".jsonl")
    }
    return parse_bank(files, retired_text=folder.joinpath(RETIRED_FILE).read_text(encoding="utf-8"))


def parse_bank(files: Mapping[str, str], *, retired_text: str) -> Bank:
    """Make a bank of the texts of `<dimension>.jsonl` files by name, and of the list of retired ids.

    Raises BankInvalid at the first line that breaks the schema or gives an id a second time.
    """
    retired = _parse_retired(retired_text)
    found: dict[str, BankCriterion] = {}
    for name, text in sorted(files.items()):
        for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
            criterion = parse_line(line, file=name, line_number=number)
            if criterion.id in found or criterion.id in retired:
                reason = "its id is given twice" if criterion.id in found else "its id is retired"
                raise BankInvalid(file=name, line_number=number, reason=reason)
            found[criterion.id] = criterion
    return Bank(criteria=tuple(found[id_] for id_ in sorted(found)), retired=retired)


def _parse_retired(text: str) -> frozenset[str]:
    ids = set()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line or line.startswith("#"):
            continue
        if not ID.fullmatch(line):
            raise BankInvalid(file=RETIRED_FILE, line_number=number, reason="not an id")
        ids.add(line)
    return frozenset(ids)
