"""Client of the encoder process (`python -m rubric.serve`), and the pure rules of screening several messages.

Web and workers call `EncoderClient.screen` before the model and on its output, `judge` for a reply's levels, `embed`
for features. Whoever screens a visitor builds the texts with `texts_to_screen` and joins the readings with
`combine_levels`, so that the product and its benchmark follow one rule. Every failure leaves as `EncoderUnavailable` or
`EncoderTimeout`: the screen fails closed, and the judge gives no number.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence
from typing import Final, Self

import aiohttp

from rubric.encoder_values import (
    DEADLINE_S_MAX,
    Direction,
    EncoderHealth,
    JudgeReading,
    Level,
    ScreenReading,
    judge_reading_of,
    list_of,
    screen_reading_of,
    text_of,
    vector_of,
    whole_number_of,
)
from rubric.errors import EncoderTimeout, EncoderUnavailable
from rubric.json_types import JsonObject, JsonValue

PRECEDING_MESSAGES: Final = 3  # a disclosure in steps is seen across this many messages before the newest one
JOINED_CHARACTERS: Final = 1200  # steps are short; joining long messages would cost a window each and add nothing
MESSAGES_WATCHED_AFTER_HIGH: Final = 6  # "I was joking" after a disclosure still shows the card
SECONDS_PER_CHARACTER: Final = 0.0003  # added to the deadline: one core reads about 10,000 characters a second

_ORDER: Final = (Level.NONE, Level.WATCH, Level.HIGH)


def texts_to_screen(visitor_messages: Sequence[str]) -> tuple[str, ...]:
    """The texts to screen for the newest of a visitor's messages (oldest first): alone, and joined with those before.

    Up to three preceding messages are joined by line breaks, whole ones only, as long as the joined text stays within
    1,200 characters. Raises ValueError where there is no message.
    """
    if not visitor_messages:
        raise ValueError("There is no message to screen.")
    newest = visitor_messages[-1]
    joined = newest
    for message in reversed(visitor_messages[-1 - PRECEDING_MESSAGES : -1]):
        if len(message) + 1 + len(joined) > JOINED_CHARACTERS:
            break
        joined = f"{message}\n{joined}"
    return (newest,) if joined == newest else (newest, joined)


def combine_levels(levels: Iterable[Level], *, messages_since_high: int | None) -> Level:
    """The level of the newest visitor message: the highest of its readings, and at least watch soon after a high.

    `messages_since_high` counts visitor messages after the last one that was high: 1 for the very next, None where
    none ever was. Up to 6 the level does not fall below watch.
    """
    level = max(levels, key=_ORDER.index, default=Level.NONE)
    is_recent = messages_since_high is not None and messages_since_high <= MESSAGES_WATCHED_AFTER_HIGH
    return Level.WATCH if is_recent and level is Level.NONE else level


class EncoderClient:
    """Asks one encoder process; safe to share within an event loop, and opens its own connections per loop."""

    def __init__(self, base_url: str, *, timeout_s: float = 0.8, client: aiohttp.ClientSession | None = None) -> None:
        """`timeout_s` holds for a short text; 0.3 ms are added per character. A given `client` stays the caller's."""
        self.base_url = base_url.rstrip("/")
        self.timeout_s = timeout_s
        self._given = client
        self._own: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections that this client opened."""
        if self._own is not None:
            await self._own.close()
            self._own = None

    async def screen(self, texts: Sequence[str], *, direction: Direction) -> tuple[ScreenReading, ...]:
        """One reading per text, in order. Raises EncoderUnavailable or EncoderTimeout."""
        if not texts:
            return ()
        body = await self._post("/v1/screen", texts, direction=direction)
        try:
            version = text_of(body["version"])
            readings = tuple(screen_reading_of(item, version) for item in list_of(body["readings"], count=len(texts)))
        except (KeyError, TypeError, ValueError) as error:
            raise EncoderUnavailable(base_url=self.base_url, reason="the answer is not a list of readings") from error
        return readings

    async def embed(self, texts: Sequence[str]) -> tuple[tuple[float, ...], ...]:
        """One unit-length vector of 384 numbers per text, in order. Raises EncoderUnavailable or EncoderTimeout."""
        if not texts:
            return ()
        body = await self._post("/v1/embed", texts, direction=None)
        try:
            return tuple(vector_of(item) for item in list_of(body["embeddings"], count=len(texts)))
        except (KeyError, TypeError, ValueError) as error:
            raise EncoderUnavailable(base_url=self.base_url, reason="the answer is not a list of vectors") from error

    async def judge(
        self, context: str, reply: str, *, criteria: Sequence[str], wants_evidence: bool = False
    ) -> JudgeReading:
        """How far `reply` does what each criterion says; evidence costs one more reading per sentence.

        Raises EncoderUnavailable or EncoderTimeout; the deadline is `timeout_s`, since what is read is bounded.
        """
        payload: JsonObject = {
            "context": context,
            "reply": reply,
            "criteria": list(criteria),
            "wants_evidence": wants_evidence,
            "deadline_ms": math.ceil(self.timeout_s * 1000),
        }
        body = await self._request("POST", "/v1/judge", payload=payload, limit_s=self.timeout_s)
        try:
            return judge_reading_of(body, criteria=len(criteria), reply_characters=len(reply))
        except (KeyError, TypeError, ValueError) as error:
            raise EncoderUnavailable(base_url=self.base_url, reason="the answer is not a list of levels") from error

    async def health(self) -> EncoderHealth:
        """What the process serves. Raises EncoderUnavailable or EncoderTimeout."""
        body = await self._request("GET", "/healthz", payload=None, limit_s=self.timeout_s)
        try:
            return EncoderHealth(
                encoder_version=text_of(body["encoder_version"]),
                screen_version=text_of(body["screen_version"]),
                judge_version=text_of(body["judge_version"]),
                waiting_windows=whole_number_of(body["waiting_windows"]),
            )
        except (KeyError, TypeError) as error:
            raise EncoderUnavailable(base_url=self.base_url, reason="the answer is not a health report") from error

    async def _post(self, path: str, texts: Sequence[str], *, direction: Direction | None) -> JsonObject:
        limit_s = min(self.timeout_s + SECONDS_PER_CHARACTER * sum(map(len, texts)), DEADLINE_S_MAX)
        payload: JsonObject = {"texts": list(texts), "deadline_ms": math.ceil(limit_s * 1000)}
        if direction is not None:
            payload["direction"] = direction
        return await self._request("POST", path, payload=payload, limit_s=limit_s)

    async def _request(self, method: str, path: str, *, payload: JsonObject | None, limit_s: float) -> JsonObject:
        try:
            async with self._connections().request(
                method, self.base_url + path, json=payload, timeout=aiohttp.ClientTimeout(total=limit_s)
            ) as response:
                if response.status == 504:
                    raise EncoderTimeout(base_url=self.base_url, limit_s=limit_s)
                if response.status != 200:
                    raise EncoderUnavailable(base_url=self.base_url, reason=f"status {response.status}")
                body: JsonValue = await response.json()
        except TimeoutError as error:
            raise EncoderTimeout(base_url=self.base_url, limit_s=limit_s) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise EncoderUnavailable(base_url=self.base_url, reason=type(error).__name__) from error
        if not isinstance(body, dict):
            raise EncoderUnavailable(base_url=self.base_url, reason="the answer is not an object")
        return body

    def _connections(self) -> aiohttp.ClientSession:
        """The caller's connections, or our own; those of a loop that has ended are of no use to another loop."""
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        if self._own is None or self._own.closed or self._loop is not loop:
            self._own, self._loop = aiohttp.ClientSession(), loop
        return self._own
