"""RLVER and SAGE (MIT): profiles of simulated people, and how their emotion moved turn by turn.

Profiles are text of labelled lines, in Chinese or English, with ASCII or full-width punctuation; `persona_fields` reads
both. RLVER's test profiles are SentientBench: measured on, never trained on. The turn-level changes are numbers to
calibrate a simulator by.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from training.data.reading import DataText, Loader, Record, Row, jsonl_rows


class Intention(StrEnum):
    """What the person secretly wants of the conversation; eight kinds."""

    NO_FAULT = "no_fault"
    SELF_REFLECTION = "self_reflection"
    SEVERAL_SIDES = "several_sides"
    DEEP_EMPATHY = "deep_empathy"
    VENTING = "venting"
    OTHERS_MOTIVES = "others_motives"
    ADVICE = "advice"
    PRAISE = "praise"

    @property
    def is_rational(self) -> bool:
        """Whether the intention asks for thought rather than for feeling."""
        return self in {Intention.SELF_REFLECTION, Intention.SEVERAL_SIDES, Intention.OTHERS_MOTIVES, Intention.ADVICE}


# A word that only this intention's sentence holds, in either language.
_INTENTION_CUES: Final = (
    (Intention.NO_FAULT, ("没有错", "nothing wrong", "no fault")),
    (Intention.SELF_REFLECTION, ("自我反思", "self-reflection", "reflect on myself")),
    (Intention.SEVERAL_SIDES, ("辩证", "several sides", "many sides")),
    (Intention.DEEP_EMPATHY, ("深刻共情", "feel deeply", "deep empathy")),
    (Intention.VENTING, ("宣泄", "venting")),
    (Intention.OTHERS_MOTIVES, ("其他人物", "why the others", "others' motives")),
    (Intention.ADVICE, ("建议", "advice")),
    (Intention.PRAISE, ("夸奖", "praise")),
)
_CHARACTERS: Final = {
    "负面型": "negative",
    "被动型": "passive",
    "回避型": "avoidant",
    "negative": "negative",
    "passive": "passive",
    "avoidant": "avoidant",
}
_LABELLED_LINE: Final = re.compile(r"^\s*[*＊•-]\s*(?P<name>[^:：\n]{1,40})[:：](?P<value>.*)$")
_FIELD_NAMES: Final = {
    "姓名": "name",
    "年龄": "age",
    "性别": "sex",
    "职业": "job",
    "个人爱好": "hobbies",
    "习惯和行为特点": "habits",
    "说话风格": "style",
    "说话方式": "speech",
    "name": "name",
    "age": "age",
    "sex": "sex",
    "gender": "sex",
    "job": "job",
    "occupation": "job",
    "hobbies": "hobbies",
    "habits": "habits",
    "speaking style": "style",
    "way of speaking": "speech",
}


class SimulatedPerson(Record):
    """A profile; `first_talk` is the fixed opening of a test profile."""

    id: DataText
    player: DataText
    scene: DataText
    character: Literal["negative", "passive", "avoidant"]
    traits: Annotated[tuple[DataText, ...], Field(min_length=1, validation_alias="cha_group")]
    task: DataText
    intention: Intention
    first_talk: DataText | None = None

    @property
    def group(self) -> str:
        """The profile itself."""
        return self.id

    @property
    def persona(self) -> Mapping[str, str]:
        """The labelled lines of `player` by our names for them."""
        return persona_fields(self.player)


class EmotionChange(Record):
    """How a simulated person's emotion (0-100) moved at one turn with one model."""

    profile: DataText = Field(validation_alias="id")
    model: DataText
    turn: Annotated[int, Field(ge=1)]
    before: Annotated[int, Field(ge=0, le=100, validation_alias="emotion_before")]
    change: Annotated[int, Field(ge=-100, le=100)]
    after: Annotated[int, Field(ge=0, le=100, validation_alias="emotion_after")]

    @property
    def id(self) -> str:
        """Profile, model and turn."""
        return f"{self.profile}.{self.model}.{self.turn}"

    @property
    def group(self) -> str:
        """The profile: splits keep its conversations together."""
        return self.profile

    @model_validator(mode="after")
    def _adds_up(self) -> EmotionChange:
        if self.after != max(0, min(100, self.before + self.change)):
            raise ValueError("emotion before, change and after do not add up")
        return self


def persona_fields(player: str) -> Mapping[str, str]:
    """`* name: Lin` or `* 姓名：Lin` -> {"name": "Lin"}; lines below a label are its. Unknown labels stay."""
    fields: dict[str, list[str]] = {}
    current: str | None = None
    for line in player.splitlines():
        labelled = _LABELLED_LINE.match(line)
        if labelled:
            name = labelled["name"].strip()
            current = _FIELD_NAMES.get(name.casefold(), name)
            fields[current] = [labelled["value"].strip()]
        elif current is not None and line.strip():
            fields[current].append(line.strip())
    return {name: "\n".join(part for part in parts if part) for name, parts in fields.items()}


def intention_of(task: str) -> Intention:
    """The intention that a task sentence states. Raises ValueError for none of the eight."""
    folded = task.casefold()
    for intention, cues in _INTENTION_CUES:
        if any(cue in folded for cue in cues):
            return intention
    raise ValueError("the task states none of the eight intentions")


def _profile(row: Row, _number: int) -> SimulatedPerson:
    return SimulatedPerson.model_validate(
        {**row, "character": _CHARACTERS.get(str(row.get("main_cha")).strip()), "intention": _intention_or_none(row)}
    )


def _intention_or_none(row: Row) -> Intention | None:
    try:
        return intention_of(str(row.get("task")))
    except ValueError:
        return None  # the record refuses it, with file and row


def _change(row: Row, _number: int) -> EmotionChange:
    return EmotionChange.model_validate(row)


PROFILES = Loader(rows=jsonl_rows, record=_profile)
EMOTION_CHANGES = Loader(rows=jsonl_rows, record=_change)
