"""EmpatheticDialogues (Rashkin et al., ACL 2019): short talks about an emotion. CC BY-NC: tests and research only."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from training.data.reading import DataText, Loader, Record, Row, jsonl_rows


class EmpatheticUtterance(Record):
    """What the speaker, who has something to tell, or the listener said."""

    actor: Literal["speaker", "listener"]
    text: DataText


class EmpatheticDialogue(Record):
    """One conversation, the emotion it is about (one of 32) and the situation that the speaker had in mind."""

    id: DataText = Field(validation_alias="conv_id")
    emotion: DataText
    situation: DataText
    utterances: Annotated[tuple[EmpatheticUtterance, ...], Field(min_length=1)]

    @property
    def group(self) -> str:
        """The conversation itself."""
        return self.id


def _record(row: Row, _number: int) -> EmpatheticDialogue:
    return EmpatheticDialogue.model_validate(row)


EMPATHETIC_DIALOGUES = Loader(rows=jsonl_rows, record=_record)
