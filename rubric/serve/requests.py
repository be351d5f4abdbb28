"""What the encoder process may be asked: bodies checked before anything is computed.

`app.py` and `judge_door.py` read requests here. A refusal names the rule and a number, never a text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from rubric.encoder_values import DEADLINE_S_MAX, Direction
from rubric.errors import RubricError
from rubric.json_types import JsonObject, JsonValue

BODY_BYTES_MAX: Final = 1_000_000  # a reply of 64 Ki emoji, escaped as JSON, with its context
TEXTS_MAX: Final = 64
CHARACTERS_MAX: Final = 40_000  # of one text; a visitor's message has at most 8,000
REPLY_CHARACTERS_MAX: Final = 65_536  # of a reply to be judged; both its ends are read
CRITERIA_MAX: Final = 16
CRITERION_CHARACTERS_MAX: Final = 2_000  # a rubric's criterion has at most 240
DEADLINE_MS_DEFAULT: Final = 2_000
DEADLINE_MS_MAX: Final = round(DEADLINE_S_MAX * 1000)


class RequestInvalid(RubricError):
    """The request is not what the door's docstring says; `status` is 400 or 413."""

    def __init__(self, problem: str, *, status: int = 400) -> None:
        super().__init__(problem)
        self.status = status


@dataclass(frozen=True, kw_only=True, slots=True)
class TextsRequest:
    """A request to screen or to embed that passed the checks."""

    texts: tuple[str, ...]
    direction: Direction
    deadline_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeRequest:
    """A request to judge that passed the checks."""

    context: str
    reply: str
    criteria: tuple[str, ...]
    wants_evidence: bool
    deadline_s: float


async def read_body(request: web.Request) -> JsonValue:
    """The decoded body. Raises RequestInvalid where it is no JSON."""
    try:
        value: JsonValue = json.loads(await request.read())
    except (ValueError, RecursionError) as error:
        raise RequestInvalid("The body is not JSON.") from error
    return value


def parse_request(body: JsonValue, *, wants_direction: bool) -> TextsRequest:
    """Check a decoded body of texts. Raises RequestInvalid with the rule that it breaks, never with its text."""
    if not isinstance(body, dict):
        raise RequestInvalid("The body is not an object.")
    direction: Direction = "visitor"
    if wants_direction:
        if body.get("direction") == "reply":
            direction = "reply"
        elif body.get("direction") != "visitor":
            raise RequestInvalid('"direction" is neither "visitor" nor "reply".')
    texts = _texts(body, "texts", count_max=TEXTS_MAX, characters_max=CHARACTERS_MAX)
    return TextsRequest(texts=texts, direction=direction, deadline_s=_deadline_s(body))


def parse_judge_request(body: JsonValue) -> JudgeRequest:
    """Check a decoded body of context, reply and criteria. Raises RequestInvalid as `parse_request` does."""
    if not isinstance(body, dict):
        raise RequestInvalid("The body is not an object.")
    wants_evidence = body.get("wants_evidence", False)
    if not isinstance(wants_evidence, bool):
        raise RequestInvalid('"wants_evidence" is neither true nor false.')
    return JudgeRequest(
        context=_text(body, "context", characters_max=CHARACTERS_MAX),
        reply=_text(body, "reply", characters_max=REPLY_CHARACTERS_MAX),
        criteria=_texts(body, "criteria", count_max=CRITERIA_MAX, characters_max=CRITERION_CHARACTERS_MAX),
        wants_evidence=wants_evidence,
        deadline_s=_deadline_s(body),
    )


def _texts(body: JsonObject, name: str, *, count_max: int, characters_max: int) -> tuple[str, ...]:
    texts = body.get(name)
    if not isinstance(texts, list) or not texts:
        raise RequestInvalid(f'"{name}" is not a list with at least one text.')
    if len(texts) > count_max:
        raise RequestInvalid(f'"{name}" has {len(texts)} texts; at most {count_max} are read.', status=413)
    checked = tuple(text for text in texts if isinstance(text, str))
    if len(checked) != len(texts):
        raise RequestInvalid(f'"{name}" has something that is no text.')
    longest = max(map(len, checked))
    if longest > characters_max:
        raise RequestInvalid(f"A text has {longest} characters; at most {characters_max} are read.", status=413)
    return checked


def _text(body: JsonObject, name: str, *, characters_max: int) -> str:
    text = body.get(name)
    if not isinstance(text, str):
        raise RequestInvalid(f'"{name}" is no text.')
    if len(text) > characters_max:
        raise RequestInvalid(f'"{name}" has {len(text)} characters; at most {characters_max} are read.', status=413)
    return text


def _deadline_s(body: JsonObject) -> float:
    deadline_ms = body.get("deadline_ms", DEADLINE_MS_DEFAULT)
    if not isinstance(deadline_ms, int) or isinstance(deadline_ms, bool) or not 1 <= deadline_ms <= DEADLINE_MS_MAX:
        raise RequestInvalid(f'"deadline_ms" is not a whole number from 1 to {DEADLINE_MS_MAX}.')
    return deadline_ms / 1000
