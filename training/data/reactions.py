"""GoEmotions (Demszky et al., 2020) and Empathic Reactions (Buechel et al., 2018): short texts with emotion labels.

Both CC BY 4.0: they may train what ships, with attribution.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from training.data.reading import DataText, Loader, Record, Row, csv_rows, tsv_rows

# The data set's own order of its label ids.
GOEMOTIONS_LABELS: Final = (
    *("admiration", "amusement", "anger", "annoyance", "approval", "caring", "confusion"),
    *("curiosity", "desire", "disappointment", "disapproval", "disgust", "embarrassment", "excitement"),
    *("fear", "gratitude", "grief", "joy", "love", "nervousness", "optimism"),
    *("pride", "realization", "relief", "remorse", "sadness", "surprise", "neutral"),
)
LabelId = Annotated[int, Field(ge=0, lt=len(GOEMOTIONS_LABELS))]
Rating = Annotated[float, Field(ge=1, le=7)]


class LabelledComment(Record):
    """A comment and one or more of 28 labels."""

    id: DataText
    text: DataText
    label_ids: Annotated[tuple[LabelId, ...], Field(min_length=1)]

    @property
    def group(self) -> str:
        """The comment: the data set says nothing of threads or people."""
        return self.id

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels by name."""
        return tuple(GOEMOTIONS_LABELS[label] for label in self.label_ids)


class NewsReaction(Record):
    """What somebody wrote after reading a piece of news, and how much empathy and distress they then reported, 1-7."""

    id: DataText = Field(validation_alias="message_id")
    group: DataText = Field(validation_alias="response_id")  # the person
    article: DataText = Field(validation_alias="article_id")
    text: DataText = Field(validation_alias="essay")
    empathy: Rating
    distress: Rating


def _comment(row: Row, _number: int) -> LabelledComment:
    return LabelledComment.model_validate({**row, "label_ids": str(row["label_ids"]).split(",")})


def _reaction(row: Row, _number: int) -> NewsReaction:
    return NewsReaction.model_validate(row)


GOEMOTIONS = Loader(rows=tsv_rows(("text", "label_ids", "id")), record=_comment)
EMPATHIC_REACTIONS = Loader(rows=csv_rows, record=_reaction)
