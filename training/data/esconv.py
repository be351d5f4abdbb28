"""ESConv and FailedESConv (Liu et al., ACL 2021): emotional-support conversations, a strategy per reply.

Two shapes of one thing: the released splits (`usr` / `sys`, `text`, one JSON object a line) and the failed
conversations (`speaker` / `listener`, `content`, `annotation`, one JSON list). CC BY-NC: tests and research only.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AliasChoices, BeforeValidator, Field, field_validator

from rubric.corpus.records import SupportStrategy
from rubric.states import Area, Emotion
from training.data.reading import DataText, Loader, Record, Row, json_list_rows, jsonl_rows

_SPEAKERS: Final = {
    "usr": "seeker",
    "speaker": "seeker",
    "seeker": "seeker",
    "sys": "supporter",
    "listener": "supporter",
    "supporter": "supporter",
}
_STRATEGIES: Final = {
    "question": SupportStrategy.QUESTION,
    "questions": SupportStrategy.QUESTION,
    "restatement or paraphrasing": SupportStrategy.RESTATEMENT,
    "reflection of feelings": SupportStrategy.REFLECTION,
    "self-disclosure": SupportStrategy.SELF_DISCLOSURE,
    "affirmation and reassurance": SupportStrategy.AFFIRMATION,
    "providing suggestions": SupportStrategy.SUGGESTION,
    "information": SupportStrategy.INFORMATION,
    "others": SupportStrategy.OTHER,
    "other": SupportStrategy.OTHER,
}
_AREAS: Final = {
    "ongoing depression": Area.LOW_MOOD,
    "breakup with partner": Area.BREAKUP,
    "job crisis": Area.JOB,
    "problems with friends": Area.FRIENDS,
    "academic pressure": Area.STUDY,
    "procrastination": Area.PROCRASTINATION,
    "alcohol abuse": Area.ALCOHOL,
    "issues with parents": Area.PARENTS,
    "conflict with parents": Area.PARENTS,
    "sleep problems": Area.SLEEP,
    "appearance anxiety": Area.APPEARANCE,
    "school bullying": Area.BULLYING,
    "issues with children": Area.CHILDREN,
}


def _known(table: dict[str, object]) -> BeforeValidator:
    def look_up(value: object) -> object:
        if not isinstance(value, str) or value.strip().casefold() not in table:
            raise ValueError("an unknown name")
        return table[value.strip().casefold()]

    return BeforeValidator(look_up)


SurveyScore = Annotated[int, Field(ge=1, le=5)]


class SupportUtterance(Record):
    """What one of the two wrote; a supporter's has a strategy, a seeker's may rate the replies before it, 1-5."""

    speaker: Annotated[Literal["seeker", "supporter"], _known({**_SPEAKERS})]
    text: DataText
    strategy: Annotated[SupportStrategy, _known({**_STRATEGIES})] | None = None
    rating: SurveyScore | None = None


class SeekerSurvey(Record):
    """What the seeker said afterwards, 1-5 each; None where the question was left out."""

    initial_intensity: SurveyScore | None = Field(None, validation_alias="initial_emotion_intensity")
    final_intensity: SurveyScore | None = Field(None, validation_alias="final_emotion_intensity")
    empathy: SurveyScore | None = None
    relevance: SurveyScore | None = None


class SupportConversation(Record):
    """One conversation; the data set has no ids, so its place in the file is its id."""

    id: str
    emotion: Emotion = Field(validation_alias=AliasChoices("emotion_type", "emotion"))
    area: Annotated[Area, _known({**_AREAS})] = Field(validation_alias=AliasChoices("problem_type", "area"))
    situation: DataText
    survey: SeekerSurvey
    utterances: Annotated[tuple[SupportUtterance, ...], Field(min_length=1)]

    @field_validator("utterances", mode="after")
    @classmethod
    def _supporters_have_strategies(cls, value: tuple[SupportUtterance, ...]) -> tuple[SupportUtterance, ...]:
        if any((each.speaker == "supporter") is (each.strategy is None) for each in value):
            raise ValueError("strategies go with the supporter's utterances, and only with those")
        return value

    @property
    def group(self) -> str:
        """The conversation itself."""
        return self.id


def _conversation(row: Row, number: int) -> SupportConversation:
    survey, dialog = row.get("survey_score"), row.get("dialog")
    said = [_utterance(each) for each in dialog] if isinstance(dialog, list) else dialog
    seeker = survey.get("seeker", {}) if isinstance(survey, dict) else survey
    return SupportConversation.model_validate({**row, "id": f"esconv-{number}", "survey": seeker, "utterances": said})


def _utterance(given: object) -> object:
    if not isinstance(given, dict):
        return given
    annotation = given.get("annotation")
    noted = annotation if isinstance(annotation, dict) else {}
    return {
        "speaker": given.get("speaker"),
        "text": given.get("text", given.get("content")),
        "strategy": given.get("strategy", noted.get("strategy")),
        "rating": noted.get("feedback"),
    }


ESCONV = Loader(rows=jsonl_rows, record=_conversation)
FAILED_ESCONV = Loader(rows=json_list_rows, record=_conversation)
