"""Shows foreign text to a model as data: defanged, between two lines of a delimiter that it cannot contain.

Visitors and the graded model write what the generator and the judge read. Two ways lead out of a quotation: closing it,
and control tokens (`<|im_end|>` in a rendered prompt starts a new turn on most servers). The delimiter is drawn from a
hash of the text itself and is checked to be absent from it; control tokens lose their brackets. `defang` keeps the
length, so that a place in what the judge saw is the same place in the reply.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

_BRACKETS = str.maketrans({"<": "\u2039", ">": "\u203a"})
_BRACKET_TOKEN = re.compile(r"\[(?=/?[A-Z_]{2,24}\])")  # [INST], [/INST], [TOOL_CALLS]
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fenced:
    """A text with the delimiter that stands on the lines before and behind it."""

    delimiter: str
    body: str

    def __str__(self) -> str:
        return f"{self.delimiter}\n{self.body}\n{self.delimiter}"


def fence(text: str, *, absent_from: Sequence[str] = ()) -> Fenced:
    """Fence a text. The delimiter occurs neither in it nor in `absent_from`; equal texts get equal ones.

    It depends on the text, so nobody can write one that fits; no clock or dice, so a prompt can be rebuilt later.
    """
    body = defang(text)
    for round_number in range(1_000):
        digest = hashlib.sha256(f"{round_number}\n{body}".encode()).hexdigest()
        delimiter = f"=={digest[:12]}=="
        if delimiter not in body and not any(delimiter in other for other in absent_from):
            return Fenced(delimiter=delimiter, body=body)
    raise AssertionError("a thousand hashes of a text all occur in it")


def defang(text: str) -> str:
    """Replace, one character for one, what could be read as a control token or corrupt a prompt.

    `<` and `>` become `‹` and `›`, the bracket of `[INST]` a wide one, control characters and lone surrogates U+FFFD.
    """
    plain = _UNPRINTABLE.sub("\ufffd", text).translate(_BRACKETS)
    return _BRACKET_TOKEN.sub("\uff3b", plain)
