"""One criterion of the bank: its text, the states it fits, and how it becomes a criterion of a rubric."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rubric.bank.cue import safe_cue
from rubric.criteria import Criterion, Dimension, Polarity, Stage
from rubric.errors import CueRefused
from rubric.json_types import JsonObject
from rubric.rules import forbidden_rewards
from rubric.states import Emotion, Need

CUE_SLOT = "cue"
CUE_MARK = "{cue}"


class Kind(StrEnum):
    """Whether a criterion names emotions or needs that it is for."""

    GENERAL = "general"
    STATE = "state"


class Setting(StrEnum):
    """What sort of talk a criterion is for: a person's own troubles and joys, or a matter with a company."""

    SUPPORT = "support"
    SERVICE = "service"


@dataclass(frozen=True, kw_only=True, slots=True)
class BankCriterion:
    """A criterion with tags. An empty set of tags fits anything, any other has to hold the state's value."""

    id: str
    dimension: Dimension
    polarity: Polarity
    text: str
    stages: frozenset[Stage]
    emotions: frozenset[Emotion]
    needs: frozenset[Need]
    setting: Setting
    slot: str | None = None

    @property
    def kind(self) -> Kind:
        """Follows from the tags: `state` where emotions or needs are named."""
        return Kind.STATE if self.emotions or self.needs else Kind.GENERAL

    def fits(self, *, stage: Stage | None = None, emotion: Emotion | None = None, need: Need | None = None) -> bool:
        """True where no tag speaks against the state; a part of the state that is None is not asked about."""
        return (
            (stage is None or not self.stages or stage in self.stages)
            and (emotion is None or not self.emotions or emotion in self.emotions)
            and (need is None or not self.needs or need in self.needs)
        )

    def takes_cue(self, cue: str | None) -> bool:
        """True where `to_criterion` would succeed: no slot, or a safe cue that brings in nothing forbidden."""
        if self.slot is None:
            return True
        return cue is not None and safe_cue(cue) and not forbidden_rewards(self._filled(self.id, cue=cue))

    def to_criterion(self, id_in_rubric: str, cue: str | None = None) -> Criterion:
        """The criterion under its id in a rubric, such as "C1", with its slot filled.

        A cue is ignored where there is no slot. Raises CueRefused where there is one and `takes_cue` says no: such
        a criterion is not used.
        """
        if not self.takes_cue(cue):
            raise CueRefused(criterion_id=self.id, cue_chars=len(cue or ""))
        return self._filled(id_in_rubric, cue=cue or "")

    def to_json(self) -> JsonObject:
        """The form of a line, tags sorted; what the bank's version is a hash of."""
        line: JsonObject = {
            "id": self.id,
            "dimension": self.dimension.value,
            "polarity": self.polarity.value,
            "text": self.text,
            "stages": [*sorted(self.stages)],
            "emotions": [*sorted(self.emotions)],
            "needs": [*sorted(self.needs)],
            "kind": self.kind.value,
            "setting": self.setting.value,
        }
        return line if self.slot is None else {**line, "slot": self.slot}

    def _filled(self, id_in_rubric: str, *, cue: str) -> Criterion:
        return Criterion(
            id=id_in_rubric,
            dimension=self.dimension,
            polarity=self.polarity,
            text=self.text.replace(CUE_MARK, cue) if self.slot else self.text,
        )
