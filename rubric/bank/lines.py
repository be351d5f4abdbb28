"""Reads one line of the bank: all fields, no others, each of its kind, and tags that agree with one another."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TypeVar

from rubric.bank.criterion import CUE_MARK, CUE_SLOT, BankCriterion, Kind, Setting
from rubric.criteria import Dimension, Polarity, Stage
from rubric.errors import BankInvalid
from rubric.json_text import JsonRefused, read_object
from rubric.json_types import JsonObject
from rubric.states import Emotion, Need

ID = re.compile(r"[acp]-[0-9]{3}")  # the first letter is that of the dimension
MIN_TEXT_CHARS = 8
MAX_TEXT_CHARS = 140
REQUIRED = ("id", "dimension", "polarity", "text", "stages", "emotions", "needs", "kind", "setting")
OPTIONAL = ("slot",)

Value = TypeVar("Value", bound=StrEnum)


def parse_line(line: str, *, file: str, line_number: int) -> BankCriterion:
    """Make a criterion of a line of `<dimension>.jsonl`. Raises BankInvalid, which names file, line and fault."""
    try:
        fields = read_object(line)
        criterion = _criterion_of(fields)
        _require_agreement(criterion, fields, file=file)
    except _Fault as fault:
        raise BankInvalid(file=file, line_number=line_number, reason=str(fault)) from None
    except JsonRefused as refused:
        raise BankInvalid(file=file, line_number=line_number, reason=str(refused)) from refused
    return criterion


class _Fault(ValueError):
    """What is wrong with a line, without its place."""


def _criterion_of(fields: JsonObject) -> BankCriterion:
    missing = [name for name in REQUIRED if name not in fields]
    unknown = set(fields) - {*REQUIRED, *OPTIONAL}
    if missing or unknown:
        raise _Fault(f"{missing[0]}: missing" if missing else f"{len(unknown)} fields are unknown")
    return BankCriterion(
        id=_text(fields, "id"),
        dimension=_one(fields, "dimension", Dimension),
        polarity=_one(fields, "polarity", Polarity),
        text=_text(fields, "text"),
        stages=_several(fields, "stages", Stage),
        emotions=_several(fields, "emotions", Emotion),
        needs=_several(fields, "needs", Need),
        setting=_one(fields, "setting", Setting),
        slot=_text(fields, "slot") if "slot" in fields else None,
    )


def _require_agreement(criterion: BankCriterion, fields: JsonObject, *, file: str) -> None:
    """Raise _Fault where fields, each sound by itself, contradict one another or their file."""
    if not ID.fullmatch(criterion.id) or criterion.id[0] != criterion.dimension.value[0]:
        raise _Fault("id: the dimension's first letter and three digits are expected, like c-001")
    if file != f"{criterion.dimension}.jsonl":
        raise _Fault("dimension: it belongs into another file")
    if _one(fields, "kind", Kind) is not criterion.kind:
        raise _Fault("kind: it is state exactly where emotions or needs are named")
    text = criterion.text
    if not MIN_TEXT_CHARS <= len(text) <= MAX_TEXT_CHARS or text != " ".join(text.split()) or not text.isprintable():
        raise _Fault(f"text: {MIN_TEXT_CHARS} to {MAX_TEXT_CHARS} printable characters with single spaces are expected")
    if criterion.slot not in {None, CUE_SLOT}:
        raise _Fault(f"slot: only {CUE_SLOT} is known")
    marks = 0 if criterion.slot is None else 1
    if text.count(CUE_MARK) != marks or len(re.findall("[{}]", text)) != 2 * marks:
        raise _Fault("slot: the text and the field do not agree")


def _text(fields: JsonObject, name: str) -> str:
    value = fields[name]
    if not isinstance(value, str):
        raise _Fault(f"{name}: a text is expected")
    return value


def _one(fields: JsonObject, name: str, kind: type[Value]) -> Value:
    try:
        return kind(_text(fields, name))
    except _Fault:
        raise
    except ValueError:
        raise _Fault(f"{name}: an unknown value") from None


def _several(fields: JsonObject, name: str, kind: type[Value]) -> frozenset[Value]:
    given = fields[name]
    names = [value for value in given if isinstance(value, str)] if isinstance(given, list) else []
    if not isinstance(given, list) or len(names) != len(given):
        raise _Fault(f"{name}: a list of texts is expected")
    try:
        values = frozenset(kind(value) for value in names)
    except ValueError:
        raise _Fault(f"{name}: an unknown value") from None
    if len(values) != len(given):
        raise _Fault(f"{name}: a value is given twice")
    return values
