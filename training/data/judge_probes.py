"""The judges' probes (`training/bench/judge_probes`): decent replies, texts that are none, and opposed criteria.

They measure and train nothing; their README says what each field means. Read strictly, like the corpus.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from rubric import Role, Transcript
from rubric.corpus.records import Record, read_lines

FOLDER: Final = Path(__file__).parents[1] / "bench" / "judge_probes"
VISITOR_MARK: Final = "{visitor}"
Messages = Annotated[tuple[str, ...], Field(min_length=1)]  # in turn, the visitor first and last


class Family(StrEnum):
    """What a probe does instead of replying."""

    EMPTY = "empty"
    VERY_LONG = "very_long"
    REPEATED = "repeated"
    FLATTERY = "flattery"
    STAGE_DIRECTIONS = "stage_directions"
    SELF_CLAIMED_COMPLIANCE = "self_claimed_compliance"
    INSTRUCTION_INJECTION = "instruction_injection"
    FAKE_DELIMITERS = "fake_delimiters"
    FOREIGN_GARBLE = "foreign_garble"
    MASTER_KEYS = "master_keys"
    CONTEXT_COPY = "context_copy"


class _Answered(Record):
    id: str
    context: Messages
    reply: str

    @model_validator(mode="after")
    def _visitor_is_last(self) -> Self:
        if len(self.context) % 2 == 0:
            raise ValueError("the visitor does not speak last")
        return self

    @property
    def transcript(self) -> Transcript:
        """The context; who speaks alternates."""
        roles = (Role.USER, Role.ASSISTANT)
        return Transcript.of(*((roles[at % 2], text) for at, text in enumerate(self.context)))


class DecentReply(_Answered):
    """A plain, friendly reply, which every probe must stay below."""


class OpposedCriteria(_Answered):
    """Two opposed sentences about one reply; `true` says which of them it meets."""

    criterion: str
    opposite: str
    true: Literal["criterion", "opposite"]

    @property
    def true_and_false(self) -> tuple[str, str]:
        """The sentence that the reply meets, then the other one."""
        return (self.criterion, self.opposite) if self.true == "criterion" else (self.opposite, self.criterion)


class Probe(Record):
    """A text in a reply's place, or a template with the visitor's newest message."""

    family: Family
    text: str | None = None
    template: str | None = None
    appends: bool = False

    @field_validator("*", mode="after")
    @classmethod
    def _encodable(cls, value: object) -> object:
        return value  # unlike a record's texts, a probe may be blank

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.text is None) is (self.template is None):
            raise ValueError("a probe has either a text or a template")
        if self.template is not None and VISITOR_MARK not in self.template:
            raise ValueError(f"a template holds {VISITOR_MARK}")
        return self

    def reply_to(self, decent: DecentReply) -> str:
        """What stands in the decent reply's place."""
        return self.text if self.text is not None else str(self.template).replace(VISITOR_MARK, decent.context[-1])

    def appended_to(self, decent: DecentReply) -> str:
        """The decent reply with the probe as its ending."""
        return f"{decent.reply}\n{self.reply_to(decent)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeTrial:
    """One probe at one place."""

    probe: Probe
    decent: DecentReply


def read_decent(folder: Path = FOLDER) -> tuple[DecentReply, ...]:
    """Raises CorpusInvalid."""
    return tuple(read_lines(folder / "decent.jsonl", kind=DecentReply))


def read_probes(folder: Path = FOLDER) -> tuple[Probe, ...]:
    """Raises CorpusInvalid."""
    return tuple(read_lines(folder / "probes.jsonl", kind=Probe))


def read_opposed(folder: Path = FOLDER) -> tuple[OpposedCriteria, ...]:
    """Raises CorpusInvalid."""
    return tuple(read_lines(folder / "opposed.jsonl", kind=OpposedCriteria))


def trials(probes: Iterable[Probe], decent: tuple[DecentReply, ...], *, per_family: int) -> list[ProbeTrial]:
    """Each family at `per_family` places or a few more; its probes take turns and get as many places each."""
    by_family: dict[Family, list[Probe]] = {}
    for probe in probes:
        by_family.setdefault(probe.family, []).append(probe)
    found = []
    for members in by_family.values():
        places = min(len(decent), -(-per_family // len(members)))
        found += [
            ProbeTrial(probe=probe, decent=decent[(number + len(members) * place) % len(decent)])
            for number, probe in enumerate(members)
            for place in range(places)
        ]
    return found
