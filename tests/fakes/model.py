"""`ScriptedModel`: a ChatModel whose answers a test writes down; it keeps what it was asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from rubric.dialogue import Transcript
from rubric.engine import Completion, Deadlines, Endpoint, EngineFeatures, Piece, Sampling
from rubric.json_types import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One request that the model got."""

    transcript: Transcript
    sampling: Sampling
    schema: JsonObject | None
    request_id: str
    priority: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """One scripted answer; a plain text stands for `Answer(text=...)`."""

    text: str
    finish_reason: str = "stop"
    logprobs: tuple[float | None, ...] = ()
    logprob_gap: str | None = None


class ScriptedModel:
    """Answers in the order of its script: texts, `Answer`s, or errors that it raises; then it fails the test."""

    def __init__(self, script: Sequence[str | Answer | Exception], *, has_schema: bool = True) -> None:
        self.endpoint = Endpoint(
            base_url="http://scripted", model="scripted", driver="tests", features=EngineFeatures(schema=has_schema)
        )
        self.script = list(script)
        self.asked: list[Asked] = []

    def _next(self) -> Answer:
        if not self.script:
            raise AssertionError("the model was asked more often than its script foresees")
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        return Answer(text=step) if isinstance(step, str) else step

    async def stream(
        self,
        transcript: Transcript,
        *,
        sampling: Sampling,
        deadlines: Deadlines,
        request_id: str,
        priority: int = 0,
    ) -> AsyncGenerator[Piece | Completion]:
        self.asked.append(
            Asked(transcript=transcript, sampling=sampling, schema=None, request_id=request_id, priority=priority)
        )
        answer = self._next()
        for word in answer.text.split(" "):
            yield Piece(word)
        yield _completion(answer, request_id)

    async def complete(
        self,
        transcript: Transcript,
        *,
        sampling: Sampling,
        deadlines: Deadlines,
        request_id: str,
        schema: JsonObject | None = None,
        n: int = 1,
        priority: int = 0,
    ) -> tuple[Completion, ...]:
        self.asked.append(
            Asked(transcript=transcript, sampling=sampling, schema=schema, request_id=request_id, priority=priority)
        )
        return tuple(_completion(self._next(), request_id) for _ in range(n))


def _completion(answer: Answer, request_id: str) -> Completion:
    return Completion(
        text=answer.text,
        finish_reason=answer.finish_reason,
        token_ids=(),
        logprobs=answer.logprobs,
        logprob_kind="processed" if answer.logprobs else "none",
        logprob_gap=answer.logprob_gap,
        prompt_tokens=None,
        completion_tokens=None,
        request_id=request_id,
        first_token_ms=None,
        total_ms=0.0,
    )
