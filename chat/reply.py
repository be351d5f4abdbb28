"""One reply from claim to ending: prompt, admission, stream, output screen (rule 7), outcome.

`live` runs this outside the socket and hands in a `ReplySink`; what comes back is a `ReplyOutcome` for
`services.finish_reply`. The engine is read in a task of its own, so that a stop, the 400 ms of the hold-back and the
screen never wait for the next token. What it says is cut into spans as it comes; the reply's own task sleeps until a
span is due, which costs a fraction of waking it for every token.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from chat import admission, limits, policies
from chat.context import estimate_prompt_tokens, prepare, reply_deadlines, reply_sampling
from chat.metrics import FIRST_TOKEN
from chat.models.conversations import MessageStatus
from chat.prompting import Prompt
from chat.screening import screen_spans
from chat.services.database import run_db
from chat.services.endings import ReplyOutcome, ReplyVerdict
from chat.services.replies import ReplyClaim
from chat.spans import SPANS_AT_ONCE, SpanBuffer
from rubric import (
    Completion,
    EncoderError,
    Endpoint,
    EngineError,
    Level,
    Piece,
    Sampling,
    ScreenReading,
)


class ReplySink(Protocol):
    """Where a running reply goes: the hub's sockets and followers. None of these may block."""

    def queued(self, place: int, expected_wait_s: float) -> None: ...

    def started(self) -> None: ...

    def delta(self, offset: int, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Stop:
    """Asks a running reply to end now with the text it has."""

    status: MessageStatus = MessageStatus.STOPPED
    code: str = ""
    is_retryable: bool = False


@dataclass(frozen=True, slots=True)
class EngineFailed:
    code: str
    is_retryable: bool


Ending = Completion | EngineFailed | Stop
AsyncPieces = AsyncGenerator[Piece | Completion, None]


class RunningReply:
    """One reply in the making. `stop` may be called from anywhere in the loop; `run` returns the outcome once."""

    def __init__(self, claim: ReplyClaim, *, sink: ReplySink) -> None:
        self.claim = claim
        self.buffer = SpanBuffer()
        self._sink = sink
        self._is_due = asyncio.Event()  # a span waits for the screen, or the reply ends
        self._alarm: asyncio.TimerHandle | None = None  # for the held text
        self._ending: Completion | EngineFailed | None = None
        self._stop: Stop | None = None
        self._member = str(claim.message_id)
        self._started_s = time.monotonic()
        self._queued_ms: float | None = None
        self._first_shown_ms: float | None = None
        self._endpoint: Endpoint | None = None
        self._verdict: ReplyVerdict | None = None
        self._token_ids: list[int] = []  # all that came, shown or not
        self._tokens = 0  # the same, where an engine names no ids: one a piece

    @property
    def text(self) -> str:
        """What was released so far."""
        return self.buffer.released

    def stop(self, stop: Stop) -> None:
        """End the reply now; its text is kept and the engine's work ends."""
        self._stop = self._stop or stop  # goes before what arrived earlier and was not screened yet
        self._is_due.set()

    async def run(self) -> ReplyOutcome:
        """Run to the end. Never raises but for cancellation: every failure is an outcome with a code."""
        if self.claim.refusal:
            return self._outcome(MessageStatus.FAILED, code=self.claim.refusal, is_retryable=True)
        prepared = await run_db(prepare, self.claim)
        if not await limits.has_token_budget(prepared.site_id, budget=prepared.daily_token_budget):
            return self._outcome(MessageStatus.FAILED, code="budget")
        sampling = reply_sampling(self.claim)
        reader = asyncio.create_task(self._read(prepared.prompt, sampling))
        try:
            ending = await self._release()
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
            if self._alarm is not None:
                self._alarm.cancel()
        completion = ending if isinstance(ending, Completion) else None
        if tokens := self._used_tokens(completion, prompt=prepared.prompt):
            await limits.spend_tokens(prepared.site_id, tokens=tokens)
        return self._ended(ending, completion=completion, prompt=prepared.prompt, sampling=sampling)

    async def _read(self, prompt: Prompt, sampling: Sampling) -> None:
        """Wait for a slot, then pass on what the engine says; cancelling it stops the engine."""
        try:
            model = await policies.model_of(self.claim.policy)
            self._endpoint = model.endpoint
            async with admission.engine_place(self._member, slots=model.endpoint.slots, on_queued=self._sink.queued):
                self._queued_ms = self._elapsed_ms()
                self._sink.started()
                stream = model.stream(
                    prompt.transcript, sampling=sampling, deadlines=reply_deadlines(), request_id=self._member
                )
                await self._pass_on(stream)
        except admission.Overloaded:
            self._end(EngineFailed("overloaded", is_retryable=True))
        except EngineError as error:
            self._end(EngineFailed(error.code, is_retryable=error.is_retryable))
        except Exception as error:
            self._end(EngineFailed(f"internal_{type(error).__name__}"[:40], is_retryable=True))
            raise

    async def _pass_on(self, stream: AsyncPieces) -> None:
        is_first = True
        async with aclosing(stream) as pieces:
            async for piece in pieces:
                if isinstance(piece, Piece):
                    self._take(piece)  # at once: the visitor does not wait for what Redis is told
                else:
                    self._end(piece)
                if is_first:
                    is_first = False
                    FIRST_TOKEN.observe(self._elapsed_ms() / 1000)
                    await admission.mark_first_token(self._member)

    def _take(self, piece: Piece) -> None:
        """Add what the engine said to the held text, and cut off what is due."""
        self._token_ids.extend(piece.token_ids)
        self._tokens += max(len(piece.token_ids), 1)
        self.buffer.add(piece.text, tokens=len(piece.token_ids), now_s=time.monotonic())
        self._cut_due()

    def _end(self, ending: Completion | EngineFailed) -> None:
        """The engine says no more: all that is held is due. What it ended with first counts."""
        self._cut(self.buffer.held)
        self._ending = self._ending or ending
        self._is_due.set()

    def _cut_due(self) -> None:
        """Cut what a sentence, the tokens or the clock make due. One alarm stands for each text that is held."""
        self._cut(self.buffer.due(now_s=time.monotonic()))
        wait_s = self.buffer.wait_s(now_s=time.monotonic())
        if wait_s is not None and self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(wait_s, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._cut_due()

    def _cut(self, span: str) -> None:
        if span:
            self.buffer.cut(span, now_s=time.monotonic())
            self._is_due.set()

    async def _release(self) -> Ending:
        """Screen and release spans until something ends the reply; that something is returned."""
        while True:
            await self._is_due.wait()
            self._is_due.clear()
            while self.buffer.waiting and not self._stop:
                if blocked := await self._screen():
                    return blocked
            if self._stop:
                return self._stop
            if self._ending is not None:
                return self._ending

    async def _screen(self) -> Stop | None:
        """Release the spans that wait longest, up to the first that the screen refuses; the Stop that withholds it.

        One request for several: each would queue at the encoder behind everybody else's again. A screen that does not
        answer withholds them all.
        """
        try:
            readings = await screen_spans(self.buffer.to_screen(most=SPANS_AT_ONCE))
        except EncoderError as error:
            self._verdict = ReplyVerdict(screen_version="screen-unknown", level="high", probability=None)
            return Stop(MessageStatus.BLOCKED, code=f"screen_{type(error).__name__}"[:40], is_retryable=True)
        for reading in readings:
            if blocked := self._heed(reading):
                return blocked
            if self._first_shown_ms is None:
                self._first_shown_ms = self._elapsed_ms()
            self._sink.delta(*self.buffer.release())
            if self._stop:
                break
        return None

    def _heed(self, reading: ScreenReading) -> Stop | None:
        """Keep the most worried reading as the verdict; the Stop where the span may not be shown."""
        if self._verdict is None or reading.probability >= (self._verdict.probability or 0):
            self._verdict = ReplyVerdict(
                screen_version=reading.version, level=reading.level, probability=reading.probability
            )
        if reading.level is Level.HIGH:
            return Stop(MessageStatus.BLOCKED, code="blocked", is_retryable=True)
        return None

    def _ended(
        self, ending: Ending, *, completion: Completion | None, prompt: Prompt, sampling: Sampling
    ) -> ReplyOutcome:
        if isinstance(ending, Stop):
            status, code, is_retryable = ending.status, ending.code, ending.is_retryable
        elif isinstance(ending, EngineFailed):
            status, code, is_retryable = MessageStatus.FAILED, ending.code, ending.is_retryable
        elif not self.text:
            status, code, is_retryable = MessageStatus.FAILED, "empty_reply", True
        elif completion is not None and completion.finish_reason == "length":
            status, code, is_retryable = MessageStatus.COMPLETE, "cut_off", False
        else:
            status, code, is_retryable = MessageStatus.COMPLETE, "", False
        return self._outcome(
            status, code=code, is_retryable=is_retryable, completion=completion, prompt=prompt, sampling=sampling
        )

    def _outcome(
        self,
        status: MessageStatus,
        *,
        code: str = "",
        is_retryable: bool = False,
        completion: Completion | None = None,
        prompt: Prompt | None = None,
        sampling: Sampling | None = None,
    ) -> ReplyOutcome:
        return ReplyOutcome(
            status=status,
            text=self.text,
            code=code,
            is_retryable=is_retryable,
            completion=completion,
            # A refused span is kept nowhere, not as ids either.
            token_ids=() if status == MessageStatus.BLOCKED else tuple(self._token_ids),
            completion_tokens=self._tokens or None,
            sampling=sampling,
            engine_model=self._endpoint.model if self._endpoint else "",
            prompt_version=prompt.version if prompt else "",
            prompt_sha256=prompt.sha256 if prompt else "",
            context_from_seq=prompt.context_from_seq if prompt else 0,
            request_id=self._member,
            queued_ms=self._queued_ms,
            first_shown_ms=self._first_shown_ms,
            total_ms=self._elapsed_ms(),
            verdict=self._verdict,
        )

    def _used_tokens(self, completion: Completion | None, *, prompt: Prompt) -> int:
        """What the engine says that it used; where it could not, what came, and the prompt by our own count."""
        if completion is None and not self._tokens:
            return 0
        read = completion.prompt_tokens if completion else None
        said = completion.completion_tokens if completion else None
        return (estimate_prompt_tokens(prompt) if read is None else read) + (self._tokens if said is None else said)

    def _elapsed_ms(self) -> float:
        return (time.monotonic() - self._started_s) * 1000
