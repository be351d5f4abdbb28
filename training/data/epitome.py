"""EPITOME (Sharma et al., EMNLP 2020): how strongly a reply shows each of three mechanisms of empathy, 0-2.

One file a mechanism, the same pairs of post and reply in the same order; 61 pairs stand twice, and the first counts.
Non-commercial academic licence: tests and research only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from training.data.reading import DataText, Loader, Record, Row, csv_rows


class EmpathyJudgement(Record):
    """A post, a reply and its level for the file's mechanism; `rationales` are the spans of the reply that show it."""

    seeker_id: DataText = Field(validation_alias="sp_id")
    reply_id: DataText = Field(validation_alias="rp_id")
    post: DataText = Field(validation_alias="seeker_post")
    reply: DataText = Field(validation_alias="response_post")
    level: Annotated[int, Field(ge=0, le=2)]
    rationales: tuple[str, ...]

    @property
    def id(self) -> str:
        """The pair."""
        return f"{self.seeker_id}.{self.reply_id}"

    @property
    def group(self) -> str:
        """The seeker's post: splits keep its replies together."""
        return self.seeker_id


def _first_of_each(path: Path) -> Iterator[Row]:
    seen: set[tuple[object, object]] = set()
    for row in csv_rows(path):
        pair = (row.get("sp_id"), row.get("rp_id"))
        if pair not in seen:
            seen.add(pair)
            yield row


def _record(row: Row, _number: int) -> EmpathyJudgement:
    spans = str(row.get("rationales") or "").split("|")
    return EmpathyJudgement.model_validate({**row, "rationales": [span for span in spans if span.strip()]})


EPITOME = Loader(rows=_first_of_each, record=_record)
