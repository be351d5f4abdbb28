"""JSON as both databases can keep it, or a clear 400: the only parser of the REST door.

Refused here, before any field is looked at: bytes that are not UTF-8, NaN and infinities, lone surrogates, NUL in any
text, numbers beyond 2**53, nesting deeper than 16, bodies over 64 KiB. Verdicts are the same on SQLite and PostgreSQL,
since no database is asked (field reports B9, B10).
"""

from collections.abc import Mapping
from typing import IO, Any

import orjson
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from chat.protocol import MAX_FRAME_BYTES, ErrorCode
from rubric import JsonValue

MAX_DEPTH = 16
MAX_NUMBER = 2**53  # beyond it a page's own numbers are no longer exact


class BodyTooLarge(APIException):
    """The body is over the limit of a socket frame; the same limit holds for both doors."""

    status_code = 413
    default_detail = f"The body is larger than {MAX_FRAME_BYTES} bytes."
    default_code = ErrorCode.TOO_LARGE.value


class StrictJSONParser(BaseParser):
    """Parses `application/json`; raises ParseError (400) or BodyTooLarge (413) and nothing else."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:  # DRF's stubs know forms and objects only; any JSON value may come, the serializer decides
        body = stream.read(MAX_FRAME_BYTES + 1)
        if len(body) > MAX_FRAME_BYTES:
            raise BodyTooLarge
        return parse_strict_json(body)


def parse_strict_json(body: bytes) -> JsonValue:
    """The JSON value of a body. Raises ParseError with the code `malformed` or `text_invalid`."""
    try:
        value: JsonValue = orjson.loads(body)
    except (ValueError, RecursionError) as error:  # also not UTF-8, NaN, Infinity, lone surrogates, endless brackets
        raise ParseError("The body is not valid JSON in UTF-8.", code=ErrorCode.MALFORMED.value) from error
    _check(value, depth=0)
    return value


def _check(value: JsonValue, *, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ParseError(f"The body is nested deeper than {MAX_DEPTH}.", code=ErrorCode.MALFORMED.value)
    if isinstance(value, str):
        if "\x00" in value:
            raise ParseError("A text contains the character NUL.", code=ErrorCode.TEXT_INVALID.value)
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int | float):
        if not abs(value) <= MAX_NUMBER:
            raise ParseError("A number is out of range.", code=ErrorCode.MALFORMED.value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            _check(key, depth=depth + 1)
            _check(inner, depth=depth + 1)
    else:
        for inner in value:
            _check(inner, depth=depth + 1)
