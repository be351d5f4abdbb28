"""Opposed sentences about replies: the judge learns from them to read a criterion that it never saw."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from rubric.corpus.records import FOLDER, IdentifiedRecord, Text, read_folder
from rubric.dialogue import Role, Transcript

OPPOSED: Final = FOLDER / "opposed"
Sentence = Annotated[str, Field(min_length=4, max_length=240)]
Truths = Annotated[str, Field(pattern="^[01]{1,2}$")]


class OpposedTalk(IdentifiedRecord):
    """One or two replies to a talk, and pairs of sentences of which exactly one is true of each reply.

    `criteria`: sentence, its opposite, and a character per reply: "1" where the sentence is true of it, "0" where the
    opposite is.
    """

    context: Annotated[tuple[Text, ...], Field(min_length=1)]  # in turn, the visitor first and last
    replies: Annotated[tuple[Text, ...], Field(min_length=1, max_length=2)]
    criteria: Annotated[tuple[tuple[Sentence, Sentence, Truths], ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(self.context) % 2 == 0:
            raise ValueError("the visitor does not speak last")
        if any(len(truths) != len(self.replies) for _, _, truths in self.criteria):
            raise ValueError("a pair of sentences says something of each reply")
        return self

    @property
    def transcript(self) -> Transcript:
        """The context; who speaks alternates."""
        roles = (Role.USER, Role.ASSISTANT)
        return Transcript.of(*((roles[at % 2], text) for at, text in enumerate(self.context)))


def read_opposed_talks(folder: Path = OPPOSED) -> tuple[OpposedTalk, ...]:
    """Every line of every file, in order of names. Raises CorpusInvalid, also for an id given twice."""
    return read_folder(folder, kind=OpposedTalk)
