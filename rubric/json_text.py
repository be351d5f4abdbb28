"""Reads JSON that a model or a stranger wrote: strictly, within bounds, and with one kind of error.

The standard parser takes NaN, raises four kinds of error on hostile text and keeps lone surrogates that no database
stores. `read_object` turns each of those into a `JsonRefused` with a reason that quotes nothing. The rubric parser, the
judge and the episode files come through here.
"""

from __future__ import annotations

import json
import math
import re
from typing import NoReturn

from rubric.json_types import JsonObject, JsonValue

MAX_CHARS = 262_144
MAX_DEPTH = 16  # an episode file, the deepest thing we write, has 7
MAX_NUMBER_CHARS = 64

# One that is never closed runs to the end: a search that failed there would start again at every escaped quote.
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_CODE_FENCE = re.compile(r"\A```[a-zA-Z]*\n(.*?)\n?```\Z", re.DOTALL)


class JsonRefused(ValueError):
    """The text is not one JSON object within our bounds; the message says why and quotes none of it."""


def read_object(text: str, *, max_chars: int = MAX_CHARS) -> JsonObject:
    """Parse one JSON object; a Markdown code fence around the whole of it is taken off.

    Refused: longer than `max_chars`, deeper than 16, NaN and infinities (also 1e999), numbers longer than 64
    characters, a key given twice, lone surrogates, anything but an object. Raises JsonRefused and nothing else.
    """
    if len(text) > max_chars:
        raise JsonRefused(f"longer than {max_chars} characters")
    body = _without_code_fence(text.strip())
    _check_depth(body)
    try:
        value: JsonValue = json.loads(
            body,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
            parse_int=_short_int,
            object_pairs_hook=_unique_keys,
        )
    except JsonRefused:
        raise
    except (ValueError, RecursionError) as error:
        raise JsonRefused("not valid JSON") from error
    if not isinstance(value, dict):
        raise JsonRefused("not a JSON object")
    return value


def has_surrogate(text: str) -> bool:
    """True where the text cannot be encoded as UTF-8."""
    return any("\ud800" <= char <= "\udfff" for char in text)


def _without_code_fence(text: str) -> str:
    fenced = _CODE_FENCE.match(text)
    return fenced.group(1) if fenced else text


def _check_depth(text: str) -> None:
    depth = 0
    for char in _STRING.sub("", text):
        if char in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise JsonRefused(f"nested deeper than {MAX_DEPTH}")
        elif char in "]}":
            depth -= 1


def _refuse_constant(name: str) -> NoReturn:
    raise JsonRefused("a number is not finite")


def _finite_float(digits: str) -> float:
    if len(digits) > MAX_NUMBER_CHARS:
        raise JsonRefused("a number is too long")
    number = float(digits)
    if not math.isfinite(number):
        raise JsonRefused("a number is not finite")
    return number


def _short_int(digits: str) -> int:
    if len(digits) > MAX_NUMBER_CHARS:
        raise JsonRefused("a number is too long")
    return int(digits)


def _unique_keys(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    fields: JsonObject = {}
    for key, value in pairs:
        if key in fields:
            raise JsonRefused("a key is given twice")
        if has_surrogate(key) or _holds_surrogate(value):
            raise JsonRefused("a lone surrogate")
        fields[key] = value
    return fields


def _holds_surrogate(value: JsonValue) -> bool:
    # Objects inside were checked when their own pairs were read, lists were not.
    if isinstance(value, str):
        return has_surrogate(value)
    return isinstance(value, list) and any(_holds_surrogate(item) for item in value)
