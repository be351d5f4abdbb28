"""One request while it runs: its deadlines, and the reply that grows from its chunks.

Only `rubric.engine` calls this.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

from rubric.engine_stream import TextJoiner
from rubric.engine_values import Completion, Deadlines, Endpoint, Piece, Sampling
from rubric.engine_wire import Chunk, logprob_kind_of
from rubric.errors import EngineTimeout, TimeoutStage

Answer = TypeVar("Answer")

_FINISH_REASONS = {"abort": "cancelled", "eos_token": "stop"}


class RequestClock:
    """The deadlines of one request, and when its tokens came."""

    def __init__(self, deadlines: Deadlines, *, is_whole: bool = False) -> None:
        self.deadlines = deadlines
        self._is_whole = is_whole
        self._started_at = self._token_at = time.monotonic()
        self.first_token_ms: float | None = None

    @property
    def total_ms(self) -> float:
        return (time.monotonic() - self._started_at) * 1000

    def note_token(self) -> None:
        """Restart the wait between tokens."""
        self._token_at = time.monotonic()
        if self.first_token_ms is None:
            self.first_token_ms = (self._token_at - self._started_at) * 1000

    def resume(self) -> None:
        """Do not count the time for which the caller kept the last piece as the engine's silence."""
        self._token_at = time.monotonic()

    async def waited(self, work: Awaitable[Answer]) -> Answer:
        """Await `work` until the next deadline. Raises EngineTimeout with its stage."""
        stage, limit_s, moment = self._due()
        try:
            async with asyncio.timeout(max(0.0, moment - time.monotonic())) as alarm:
                return await work
        except TimeoutError as error:
            if alarm.expired():
                raise EngineTimeout(stage=stage, limit_s=limit_s) from error
            raise

    def _due(self) -> tuple[TimeoutStage, float, float]:
        """The deadline that comes next: stage, limit in seconds, moment."""
        limits = self.deadlines
        whole: tuple[TimeoutStage, float, float] = ("whole", limits.whole_s, self._started_at + limits.whole_s)
        if self._is_whole:
            return whole
        if self.first_token_ms is None:
            moment = self._started_at + limits.first_token_s
            return ("first_token", limits.first_token_s, moment) if moment < whole[2] else whole
        moment = self._token_at + limits.between_tokens_s
        return ("between_tokens", limits.between_tokens_s, moment) if moment < whole[2] else whole


class ReplyBuilder:
    """What has come of one reply so far."""

    def __init__(self, endpoint: Endpoint, sampling: Sampling, *, request_id: str) -> None:
        self.finish_reason: str | None = None
        self.is_over = False
        self._endpoint = endpoint
        self._sampling = sampling
        self._request_id = request_id
        self._joiner = TextJoiner()
        self._texts: list[str] = []
        self._token_ids: list[int] = []
        self._logprobs: list[float | None] = []
        self._prompt_tokens: int | None = None
        self._completion_tokens: int | None = None

    @property
    def pieces(self) -> int:
        return len(self._texts)

    def take(self, chunk: Chunk) -> Piece | None:
        """Add a chunk; give the piece to pass on, or None for a chunk without any token."""
        if chunk.finish_reason is not None:
            self.finish_reason = _FINISH_REASONS.get(chunk.finish_reason, chunk.finish_reason)
        if chunk.prompt_tokens is not None:
            self._prompt_tokens = chunk.prompt_tokens
        if chunk.completion_tokens is not None:
            self._completion_tokens = chunk.completion_tokens
        if not (chunk.text or chunk.token_ids or chunk.logprobs):
            return None
        text = self._joiner.feed(chunk.text, chunk.token_bytes)
        self._texts.append(text)
        self._token_ids += chunk.token_ids
        self._logprobs += chunk.logprobs
        return Piece(text, chunk.token_ids, chunk.logprobs)

    def completion(self, clock: RequestClock) -> Completion:
        """Close the reply. Call only once the finish reason is here."""
        gap = self._gap()
        kind = logprob_kind_of(self._endpoint, self._sampling) if self._logprobs else "none"
        return Completion(
            text="".join(self._texts),
            finish_reason=self.finish_reason or "",
            token_ids=tuple(self._token_ids),
            logprobs=tuple(self._logprobs),
            logprob_kind=kind,
            logprob_gap=gap,
            prompt_tokens=self._prompt_tokens,
            completion_tokens=self._completion_tokens,
            request_id=self._request_id,
            first_token_ms=clock.first_token_ms,
            total_ms=clock.total_ms,
        )

    def _gap(self) -> str | None:
        """Say why ids and log-probabilities do not cover every token of the text; None where they do."""
        ids, logprobs, tokens = len(self._token_ids), len(self._logprobs), self._completion_tokens
        if not self._sampling.wants_logprobs:
            return "not asked for"
        if not self._endpoint.features.logprobs:
            return "the engine offers none"
        if not logprobs:
            return "none came back"
        missing = sum(value is None for value in self._logprobs)
        if missing:
            return f"{missing} of {logprobs} are no numbers"
        if ids != logprobs:
            return f"{ids} token ids for {logprobs} log-probabilities"
        # The end token may be counted without an entry of its own.
        is_covered = tokens is None or logprobs == tokens or (self.finish_reason == "stop" and logprobs == tokens - 1)
        return None if is_covered else f"{logprobs} entries for {tokens} tokens"
