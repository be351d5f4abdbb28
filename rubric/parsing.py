"""Text to rubric: reads both written forms, applies every rule, and names all that is wrong at once.

`parse_rubric` is for what a model wrote: the stored form `care-rubric/1`, or the compact draft that generators are
asked for, `{"state": {...}, "points": {...}, "cognitive": [{"want": "..."}, ...], ...}`. `rubric_from_json` is for what
we stored. Both raise RubricInvalid and nothing else; its problems quote no text and are fit for a repair prompt.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from rubric.criteria import RUBRIC_SCHEMA, Criterion, DialogueState, Dimension, Polarity, Rubric, Stage, Weights
from rubric.errors import RubricInvalid
from rubric.fallback import RESERVED_ID_PREFIX
from rubric.json_text import JsonRefused, has_surrogate, read_object
from rubric.json_types import JsonObject, JsonValue
from rubric.rules import forbidden_rewards, near_duplicates

MIN_TEXT_CHARS = 8
MAX_TEXT_CHARS = 240
MIN_CRITERIA_PER_DIMENSION = 2
MAX_CRITERIA_PER_DIMENSION = 4
MAX_LABEL_CHARS = 40
MAX_NEED_CHARS = 240
FULL_STRENGTH = 10  # a draft gives the feeling's strength as a whole number from 0 to this

_ID = re.compile(r"[A-Za-z]{1,3}[0-9]{1,2}")  # too short to hold a name: problems repeat ids
_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_T = TypeVar("_T")


def parse_rubric(text: str) -> Rubric:
    """Read a rubric that somebody wrote, in either form, and apply every rule. Raises RubricInvalid."""
    try:
        written = read_object(text)
    except JsonRefused as error:
        raise RubricInvalid(problems=(f"JSON: {error}",)) from error
    problems: list[str] = []
    rubric = _read_stored(written, problems) if "criteria" in written else _read_draft(written, problems)
    if rubric is not None:
        problems += _content_problems(rubric)
    if rubric is None or problems:
        raise RubricInvalid(problems=tuple(problems))
    return rubric


def rubric_from_json(stored: JsonObject) -> Rubric:
    """Read back what `Rubric.to_json` wrote, flags included. Raises RubricInvalid for any other shape.

    Rules of content are left out, so that an old rubric stays readable after a rule has been sharpened.
    """
    problems: list[str] = []
    rubric = _read_stored(stored, problems)
    flags = _attempt(problems, partial(_read_flags, stored))
    if stored.get("schema") != RUBRIC_SCHEMA:
        problems.append(f"schema: must be {RUBRIC_SCHEMA}")
    if rubric is None or flags is None or problems:
        raise RubricInvalid(problems=tuple(problems))
    is_fallback, reason, repairs = flags
    return Rubric(
        weights=rubric.weights,
        criteria=rubric.criteria,
        state=rubric.state,
        is_fallback=is_fallback,
        fallback_reason=reason,
        repairs=repairs,
    )


# ---- the two forms ----------------------------------------------------------------------------------------------


def _read_stored(written: JsonObject, problems: list[str]) -> Rubric | None:
    weights = _attempt(problems, partial(_read_shares, written.get("weights")))
    state = _attempt(problems, partial(_read_state, written.get("state")))
    rows = written.get("criteria")
    if not isinstance(rows, list):
        problems.append("criteria: must be a list")
        return None
    criteria = [
        _attempt(problems, partial(_read_criterion, row, place=place)) for place, row in enumerate(rows, start=1)
    ]
    return _assemble(weights, criteria, state=state, problems=problems)


def _read_draft(written: JsonObject, problems: list[str]) -> Rubric | None:
    weights = _attempt(problems, partial(_read_points, written.get("points")))
    state = _attempt(problems, partial(_read_draft_state, written.get("state")))
    criteria: list[Criterion | None] = []
    for dimension in Dimension:
        rows = written.get(dimension.value)
        if not isinstance(rows, list):
            problems.append(f"{dimension}: must be a list of criteria")
            continue
        for number, row in enumerate(rows, start=1):
            name = f"{dimension.letter}{number}"
            criteria.append(_attempt(problems, partial(_read_draft_row, row, id=name, of=dimension)))
    return _assemble(weights, criteria, state=state, problems=problems)


def _assemble(
    weights: Weights | None, criteria: list[Criterion | None], *, state: DialogueState | None, problems: list[str]
) -> Rubric | None:
    if weights is None or problems:
        return None
    whole = tuple(criterion for criterion in criteria if criterion is not None)
    return _attempt(problems, partial(Rubric, weights=weights, criteria=whole, state=state))


def _content_problems(rubric: Rubric) -> list[str]:
    problems = []
    for dimension in Dimension:
        count = len(rubric.criteria_of(dimension))
        if not MIN_CRITERIA_PER_DIMENSION <= count <= MAX_CRITERIA_PER_DIMENSION:
            problems.append(
                f"{dimension}: {count} criteria, must be {MIN_CRITERIA_PER_DIMENSION} to {MAX_CRITERIA_PER_DIMENSION}"
            )
    for criterion in rubric:
        if criterion.id.startswith(RESERVED_ID_PREFIX):
            problems.append(f"{criterion.id}: ids that begin with {RESERVED_ID_PREFIX} are reserved")
        if not MIN_TEXT_CHARS <= len(criterion.text) <= MAX_TEXT_CHARS:
            problems.append(
                f"{criterion.id}: text has {len(criterion.text)} characters, "
                f"must have {MIN_TEXT_CHARS} to {MAX_TEXT_CHARS}"
            )
        problems += [f"{criterion.id}: rewards {kind.says}" for kind in forbidden_rewards(criterion)]
    problems += [f"{one} and {other}: say nearly the same" for one, other in near_duplicates(rubric.criteria)]
    return problems


# ---- parts, each raising RubricInvalid with its own problem ---------------------------------------------------------


def _read_criterion(row: JsonValue, *, place: int) -> Criterion:
    name = f"criterion {place}"
    fields = _object(row, name=name)
    given_id = fields.get("id")
    if not (isinstance(given_id, str) and _ID.fullmatch(given_id)):
        raise RubricInvalid(problems=(f"{name}: id must be one to three letters and a number, like C1",))
    return Criterion(
        id=given_id,
        text=_text(fields.get("text"), name=name),
        dimension=_member(Dimension, fields.get("dimension"), name=f"{name}: dimension"),
        weight=_number(fields.get("weight", 1.0), name=f"{name}: weight"),
        polarity=_member(Polarity, fields.get("polarity", "want"), name=f"{name}: polarity"),
    )


def _read_draft_row(row: JsonValue, *, id: str, of: Dimension) -> Criterion:
    fields = _object(row, name=id)
    polarities = [polarity for polarity in Polarity if polarity.value in fields]
    if len(polarities) != 1 or len(fields) != 1:
        raise RubricInvalid(problems=(f'{id}: must hold either "want" or "avoid" and nothing else',))
    text = _text(fields[polarities[0].value], name=id)
    return Criterion(id=id, text=text, dimension=of, polarity=polarities[0])


def _read_state(value: JsonValue) -> DialogueState | None:
    if value is None or value == {}:
        return None
    fields = _object(value, name="state")
    stage, intensity = fields.get("stage"), fields.get("emotion_intensity")
    return DialogueState(
        stage=None if stage is None else _member(Stage, stage, name="state: stage"),
        emotion_label=_short_text(fields.get("emotion_label"), name="emotion_label", max_chars=MAX_LABEL_CHARS),
        emotion_intensity=None if intensity is None else _share(intensity, name="state: emotion_intensity"),
        need_summary=_short_text(fields.get("need_summary"), name="need_summary", max_chars=MAX_NEED_CHARS),
    )


def _read_draft_state(value: JsonValue) -> DialogueState | None:
    if value is None:
        return None
    fields = _object(value, name="state")
    stage, strength = fields.get("stage"), fields.get("strength")
    if strength is not None and not (type(strength) is int and 0 <= strength <= FULL_STRENGTH):
        raise RubricInvalid(problems=(f"state: strength must be a whole number from 0 to {FULL_STRENGTH}",))
    return DialogueState(
        stage=None if stage is None else _member(Stage, stage, name="state: stage"),
        emotion_label=_short_text(fields.get("feeling"), name="feeling", max_chars=MAX_LABEL_CHARS),
        emotion_intensity=strength / FULL_STRENGTH if isinstance(strength, int) else None,
        need_summary=_short_text(fields.get("need"), name="need", max_chars=MAX_NEED_CHARS),
    )


def _read_flags(stored: JsonObject) -> tuple[bool, str | None, int]:
    is_fallback, reason, repairs = stored.get("fallback"), stored.get("fallback_reason"), stored.get("repairs")
    if not isinstance(is_fallback, bool) or not (reason is None or isinstance(reason, str)) or type(repairs) is not int:
        raise RubricInvalid(problems=("flags: fallback, fallback_reason and repairs must be given",))
    if is_fallback != (reason is not None) or repairs < 0:
        raise RubricInvalid(problems=("flags: a reason is given exactly where the rubric is the fallback",))
    return is_fallback, reason, repairs


def _read_points(value: JsonValue) -> Weights:
    fields = _object(value, name="points")
    points: dict[Dimension, int] = {}
    for key, given in fields.items():
        if isinstance(given, bool) or not isinstance(given, int):
            raise RubricInvalid(problems=("points: each must be a whole number",))
        points[_member(Dimension, key, name="points: a key")] = given
    return Weights.from_points(points)


def _read_shares(value: JsonValue) -> Weights:
    fields = _object(value, name="weights")
    return Weights.from_shares(
        {
            _member(Dimension, key, name="weights: a key"): _number(given, name="weights: each")
            for key, given in fields.items()
        }
    )


# ---- values -----------------------------------------------------------------------------------------------------


def _attempt(problems: list[str], read: Callable[[], _T]) -> _T | None:
    try:
        return read()
    except RubricInvalid as error:
        problems += error.problems
        return None


def _object(value: JsonValue, *, name: str) -> JsonObject:
    if not isinstance(value, dict):
        raise RubricInvalid(problems=(f"{name}: must be an object",))
    return value


_E = TypeVar("_E", Dimension, Polarity, Stage)


def _member(kind: type[_E], value: JsonValue, *, name: str) -> _E:
    for member in kind:
        if value == member.value:
            return member
    raise RubricInvalid(problems=(f"{name} must be one of {', '.join(member.value for member in kind)}",))


def _number(value: JsonValue, *, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RubricInvalid(problems=(f"{name} must be a number",))
    try:
        return float(value)
    except OverflowError:
        raise RubricInvalid(problems=(f"{name} must be a number of usual size",)) from None


def _share(value: JsonValue, *, name: str) -> float:
    number = _number(value, name=name)
    if not 0 <= number <= 1:
        raise RubricInvalid(problems=(f"{name} must lie between 0 and 1",))
    return number


def _short_text(value: JsonValue, *, name: str, max_chars: int) -> str | None:
    if value is None:
        return None
    text = _text(value, name=f"state: {name}")
    if len(text) > max_chars:
        raise RubricInvalid(problems=(f"state: {name} has {len(text)} characters, may have {max_chars}",))
    return text or None


def _text(value: JsonValue, *, name: str) -> str:
    """The text with its white space made single. Control characters that are no white space are refused."""
    if not isinstance(value, str):
        raise RubricInvalid(problems=(f"{name}: text is missing",))
    text = " ".join(value.split())
    if has_surrogate(text) or any(unicodedata.category(char) == "Cc" or char in _BIDI_CONTROLS for char in text):
        raise RubricInvalid(problems=(f"{name}: text holds a control character",))
    return text
