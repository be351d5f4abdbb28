"""What a line of the corpus is, as frozen values; reading a file of them. README.md describes every field.

Recipes, benchmarks and `report` read the corpus through here. A file with one bad line is refused whole, by a named
error with file, line and field; what people wrote is never repeated in it.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from rubric.criteria import Dimension, Polarity, Stage, Weights
from rubric.dialogue import Transcript
from rubric.episode import context_before_reply
from rubric.errors import RubricError
from rubric.json_text import JsonRefused, has_surrogate, read_object
from rubric.score import LEVELS
from rubric.states import Area, Emotion, Need

FOLDER = Path(__file__).parent
CONVERSATIONS = FOLDER / "conversations"
MATRIX = FOLDER / "matrix.jsonl"

Author = Literal["A", "B", "C", "D"]
Split = Literal["train", "dev", "test"]
Mechanism = Annotated[int, Field(ge=0, le=2)]
Mechanisms = tuple[Mechanism, Mechanism, Mechanism]  # emotional reaction, interpretation, exploration
Text = Annotated[str, Field(min_length=1, max_length=1_200)]
CRITERIA_PER_DIMENSION = range(2, 5)


class CorpusInvalid(RubricError):
    """A corpus file cannot be used: which, at which line, what is wrong; nothing of the text."""

    def __init__(self, *, path: Path, line: int, reason: str) -> None:
        super().__init__(f"{path.name}, line {line}: {reason}.")
        self.path = path
        self.line = line
        self.reason = reason


class SupportStrategy(StrEnum):
    """What a supporter does in a reply; ESConv's eight."""

    QUESTION = "question"
    RESTATEMENT = "restatement"
    REFLECTION = "reflection"
    SELF_DISCLOSURE = "self_disclosure"
    AFFIRMATION = "affirmation"
    SUGGESTION = "suggestion"
    INFORMATION = "information"
    OTHER = "other"

    @property
    def dimension(self) -> Dimension | None:
        """The dimension that the strategy serves; None for the rest."""
        return _DIMENSIONS.get(self)


_DIMENSIONS = {
    SupportStrategy.QUESTION: Dimension.COGNITIVE,
    SupportStrategy.RESTATEMENT: Dimension.COGNITIVE,
    SupportStrategy.REFLECTION: Dimension.AFFECTIVE,
    SupportStrategy.SELF_DISCLOSURE: Dimension.AFFECTIVE,
    SupportStrategy.AFFIRMATION: Dimension.AFFECTIVE,
    SupportStrategy.SUGGESTION: Dimension.PROACTIVE,
    SupportStrategy.INFORMATION: Dimension.PROACTIVE,
}


class Fault(StrEnum):
    """What is wrong with the worse of two replies."""

    EARLY_ADVICE = "early_advice"
    HOLLOW_WARMTH = "hollow_warmth"
    MISSED_CUE = "missed_cue"
    MISREADING = "misreading"
    PREACHING = "preaching"
    INTERROGATING = "interrogating"
    SELF_CENTRED = "self_centred"
    OVER_INTENSE = "over_intense"
    FACTUAL_WHERE_FEELING_WAS_NEEDED = "factual_where_feeling_was_needed"
    FEELING_WHERE_FACTS_WERE_NEEDED = "feeling_where_facts_were_needed"
    IGNORES_REQUEST = "ignores_request"
    VAGUE = "vague"
    DISMISSIVE = "dismissive"


class Record(BaseModel):
    """A frozen line of a corpus file; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="after")
    @classmethod
    def _encodable(cls, value: object) -> object:
        if isinstance(value, str) and (has_surrogate(value) or "\0" in value or not value.strip()):
            raise ValueError("a text is blank, or holds a NUL or half a character")
        return value


class IdentifiedRecord(Record):
    """A line with a name of its own."""

    id: str


class MatrixRow(Record):
    """Who writes which conversation: planned before the first was written."""

    id: str
    author: Author
    split: Split
    emotion: Emotion
    area: Area
    age: int
    life: str
    manner: str
    turns: int
    has_repair: bool


class Profile(Record):
    """The person who writes; invented."""

    id: str
    age: Annotated[int, Field(ge=10, le=99)]
    life: Text
    note: Text


class Worse(Record):
    """Another reply to the same context, which a thoughtful person finds worse."""

    text: Text
    fault: Fault
    reason: Text
    levels: Mechanisms


class OwnCriterion(Record):
    """A criterion in a sentence of its own, with the level of the reply and, where there is one, of the worse reply."""

    dimension: Dimension
    polarity: Polarity
    text: Annotated[str, Field(min_length=8, max_length=240)]
    level: float
    level_of_worse: float | None

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        if isinstance(value, list) and len(value) == len(cls.model_fields):
            return dict(zip(cls.model_fields, value, strict=True))
        return value


class CorpusTurn(Record):
    """A visitor's message, what is known about it, a good reply, its rubric, and where there is one a worse reply."""

    visitor: Text
    emotion: Emotion
    intensity: Annotated[float, Field(ge=0, le=1)]
    stage: Stage
    need: Need | None
    unstated: Need | None
    openness: Annotated[int, Field(ge=0, le=2)]
    reply: Text
    strategies: Annotated[tuple[SupportStrategy, ...], Field(min_length=1, max_length=2)]
    levels: Mechanisms
    points: tuple[int, int, int]
    criteria: dict[str, tuple[float, float | None]]
    own: tuple[OwnCriterion, ...] = ()
    worse: Worse | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.need is None and self.unstated is None:
            raise ValueError("need and unstated are both null")
        if sum(self.points) != 100 or min(self.points) < 0:
            raise ValueError("points must be three whole numbers from 0 with the sum 100")
        self._check_levels()
        for dimension in Dimension:
            count = sum(identifier.startswith(f"{dimension.letter.lower()}-") for identifier in self.criteria)
            count += sum(criterion.dimension is dimension for criterion in self.own)
            if count not in CRITERIA_PER_DIMENSION:
                raise ValueError(f"{count} criteria are {dimension}; 2 to 4 are wanted")
        return self

    def _check_levels(self) -> None:
        pairs = [*self.criteria.values(), *((criterion.level, criterion.level_of_worse) for criterion in self.own)]
        for level, level_of_worse in pairs:
            if level not in LEVELS or (level_of_worse is not None and level_of_worse not in LEVELS):
                raise ValueError("a level is none of 0, .25, .5, .75, 1")
            if (level_of_worse is None) is not (self.worse is None):
                raise ValueError("levels of a worse reply go with a worse reply, and only with one")

    @property
    def weights(self) -> Weights:
        """The points as shares of 1."""
        return Weights.from_points(dict(zip(Dimension, self.points, strict=True)))


class Conversation(IdentifiedRecord):
    """One conversation of the corpus."""

    id: Annotated[str, Field(pattern=r"^[a-d]-\d{3}$")]
    author: Author
    split: Split
    profile: Profile
    emotion: Emotion
    area: Area
    manner: str
    turns: Annotated[tuple[CorpusTurn, ...], Field(min_length=6, max_length=16)]

    @property
    def missed(self) -> frozenset[int]:
        """Turns whose `reply` misses, by index: the next message asks for repair. No examples of good replies."""
        needs = [(turn.need, turn.unstated) for turn in self.turns]
        return frozenset(index - 1 for index, need in enumerate(needs) if index and Need.REPAIR in need)

    def context_of(self, index: int) -> Transcript:
        """The transcript up to and with the visitor's message of turn `index`. Raises IndexError for no such turn."""
        return context_before_reply(self.turns, index)


def read_conversations(path: Path) -> tuple[Conversation, ...]:
    """All conversations of one file. Raises CorpusInvalid; a file never loads by half."""
    return tuple(read_lines(path, kind=Conversation))


def read_matrix(path: Path = MATRIX) -> tuple[MatrixRow, ...]:
    """The plan of the corpus. Raises CorpusInvalid."""
    return tuple(read_lines(path, kind=MatrixRow))


def read_corpus(folder: Path = CONVERSATIONS) -> tuple[Conversation, ...]:
    """Every conversation, in the order of their ids. Raises CorpusInvalid, also for an id that is given twice."""
    return tuple(sorted(read_folder(folder, kind=Conversation), key=lambda one: one.id))


_Identified = TypeVar("_Identified", bound=IdentifiedRecord)


def read_folder(folder: Path, *, kind: type[_Identified]) -> tuple[_Identified, ...]:
    """Every line of every `*.jsonl`, in the order of the files. Raises CorpusInvalid, also for an id given twice."""
    found: dict[str, _Identified] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for number, record in enumerate(read_lines(path, kind=kind), start=1):
            if record.id in found:
                raise CorpusInvalid(path=path, line=number, reason=f"the id {record.id} is there already")
            found[record.id] = record
    return tuple(found.values())


_Kind = TypeVar("_Kind", bound=Record)


def read_lines(path: Path, *, kind: type[_Kind]) -> list[_Kind]:
    """The records of a file, one JSON object a line. Raises CorpusInvalid."""
    records = []
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise CorpusInvalid(path=path, line=0, reason="it is not UTF-8") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            records.append(kind.model_validate(read_object(line)))
        except JsonRefused as error:
            raise CorpusInvalid(path=path, line=number, reason=f"JSON: {error}") from error
        except ValidationError as error:
            raise CorpusInvalid(path=path, line=number, reason=reason_of(error)) from None
    return records


def reason_of(error: ValidationError) -> str:
    """The first few faults by field, without any value; for every reader of records."""
    faults = error.errors(include_input=False, include_url=False, include_context=False)
    named = [f"{'.'.join(str(part) for part in fault['loc']) or 'record'}: {fault['msg']}" for fault in faults[:4]]
    return "; ".join(named)
