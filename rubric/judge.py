"""Judges: how far one reply does what each criterion says.

`Judge` is what callers ask for. `ModelJudge` shows a `ChatModel` the talk, the fenced reply and the criteria without
their weights and polarity (so that it can trade nothing off), and reads a level and a quote for each. What cannot be
read becomes None with a reason, never zero; what the model writes never raises, errors of the engine do leave.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Protocol

from rubric.answer_cache import AnswerCache
from rubric.asking import ask_or_recall
from rubric.criteria import Criterion, Rubric
from rubric.dialogue import Transcript
from rubric.dialogue_text import render_dialogue, shorten_middle
from rubric.engine import ChatModel, Completion, Deadlines, Sampling
from rubric.errors import JudgeReplyInvalid
from rubric.fence import defang, fence
from rubric.json_text import JsonRefused, read_object
from rubric.json_types import JsonObject, JsonValue
from rubric.prompts import load_prompt
from rubric.score import (
    LEVELS,
    NONE_ABSTAINED,
    NONE_INVALID_LEVEL,
    NONE_LENGTH,
    NONE_MISSING,
    NONE_UNREADABLE,
    Judgement,
    Score,
)

MAX_QUOTE_CHARS = 60
_WORDS_FOR_NO_QUOTE = frozenset({"", "none", "n/a", "...", "null"})


class Judge(Protocol):
    """Grades one reply under one rubric; `context` ends with the visitor's message that the reply answers."""

    @property
    def name(self) -> str: ...

    async def judge(self, context: Transcript, reply: str, *, rubric: Rubric, seed: int) -> Score: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeShape:
    """How much the judge reads and writes, in tokens (estimated where it reads).

    With six criteria prompt and answer fit 2,048 tokens; an engine with more room can have a larger shape.
    """

    max_context_tokens: int = 480
    max_reply_tokens: int = 480
    tokens_per_criterion: int = 48

    def max_tokens(self, criteria: Sequence[Criterion]) -> int:
        """Tokens that the answer may take: the longest allowed one fits, or nearly so."""
        return 16 + self.tokens_per_criterion * len(criteria)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What one answer of a judge says. `is_complete` where every criterion has a level or an explicit null."""

    judgements: tuple[Judgement, ...]

    @property
    def graded(self) -> int:
        return sum(judgement.level is not None for judgement in self.judgements)

    @property
    def is_complete(self) -> bool:
        return all(judgement.none_reason in {None, NONE_ABSTAINED} for judgement in self.judgements)


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """Asks a language model, through the engine, for levels; at most `max_attempts` requests per call.

    The first attempt is greedy, so that a grade can be repeated; later ones are drawn, since greedy would only repeat
    the mistake. The answer with the most levels counts; answers are never mixed. With a `cache` a question that was
    asked before is not asked again; `attempts` counts questions, recalled ones too.
    """

    model: ChatModel
    name: str
    _: KW_ONLY
    shape: JudgeShape = field(default_factory=JudgeShape)
    max_attempts: int = 2
    retry_temperature: float = 0.7
    deadlines: Deadlines = field(default_factory=Deadlines)
    clock: Callable[[], float] = time.perf_counter
    cache: AnswerCache | None = None

    async def judge(self, context: Transcript, reply: str, *, rubric: Rubric, seed: int) -> Score:
        """Grade `reply`.

        Raises ContextInvalid where the visitor does not speak last, and EngineError as the engine gives it.
        """
        started_s = self.clock()
        prompt = judge_prompt(context, reply, criteria=rubric.criteria, shape=self.shape)
        best = Reading(judgements=())
        attempts = 0
        while attempts < self.max_attempts and not (best.judgements and best.is_complete):
            completion = await self._ask(prompt, rubric.criteria, seed=seed + attempts, is_first=attempts == 0)
            attempts += 1
            reading = _read_completion(completion, rubric.criteria, reply=reply)
            if not best.judgements or (reading.is_complete, reading.graded) > (best.is_complete, best.graded):
                best = reading
        return Score(
            judgements=best.judgements,
            judge=self.name,
            prompt_sha256=load_prompt("judge").sha256,
            attempts=attempts,
            latency_ms=(self.clock() - started_s) * 1000,
        )

    async def _ask(self, prompt: Transcript, criteria: Sequence[Criterion], *, seed: int, is_first: bool) -> Completion:
        temperature = 0.0 if is_first else self.retry_temperature
        max_tokens = self.shape.max_tokens(criteria)
        return await ask_or_recall(
            self.model,
            prompt,
            prompt_name="judge",
            sampling=Sampling(temperature=temperature, max_tokens=max_tokens, seed=seed, wants_logprobs=False),
            deadlines=self.deadlines,
            schema=judge_schema(criteria),
            cache=self.cache,
        )


def judge_prompt(
    context: Transcript, reply: str, *, criteria: Sequence[Criterion], shape: JudgeShape | None = None
) -> Transcript:
    """The request for levels. Of the criteria it holds ids and texts only: no weight, no dimension, no polarity."""
    bounds = shape or JudgeShape()
    entries = "\n".join(f"{criterion.id}: {defang(criterion.text)}" for criterion in criteria)
    # Neither delimiter may stand anywhere in the prompt but at its fence, so each is drawn with all else in view.
    dialogue = fence(
        render_dialogue(context, max_tokens=bounds.max_context_tokens), absent_from=[defang(reply), entries]
    )
    shown = fence(shorten_middle(reply, max_tokens=bounds.max_reply_tokens), absent_from=[str(dialogue), entries])
    return load_prompt("judge").fill(
        {
            "dialogue": str(dialogue),
            "reply": str(shown),
            "criteria": entries,
            "count": str(len(criteria)),
        }
    )


def judge_schema(criteria: Sequence[Criterion]) -> JsonObject:
    """The JSON schema of an answer: per criterion a bounded quote, then one of the five levels or null."""
    entry: JsonObject = {
        "type": "object",
        "properties": {
            "quote": {"type": "string", "maxLength": MAX_QUOTE_CHARS},
            "level": {"enum": [0, 0.25, 0.5, 0.75, 1, None]},
        },
        "required": ["quote", "level"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {criterion.id: entry for criterion in criteria},
        "required": [criterion.id for criterion in criteria],
        "additionalProperties": False,
    }


def read_levels(text: str, *, criteria: Sequence[Criterion], reply: str) -> Reading:
    """Read `{"C1": {"quote": "...", "level": 0.5}, ...}` strictly: a level is one of the five numbers or null.

    A criterion left out or given something else gets None with a reason. Entries for unknown ids are passed over.
    Raises JudgeReplyInvalid where the text is no JSON object at all.
    """
    try:
        answer = read_object(text)
    except JsonRefused as error:
        raise JudgeReplyInvalid(reason=str(error), raw_chars=len(text)) from error
    judgements = tuple(
        _judgement(criterion.id, answer.get(criterion.id), reply=reply, is_given=criterion.id in answer)
        for criterion in criteria
    )
    return Reading(judgements=judgements)


def find_quote(quote: str, reply: str) -> tuple[int, int] | None:
    """Where the quote stands in the reply, in code points: exactly, else but for case and white space; None if nowhere.

    The judge saw the defanged reply, which is as long as the real one, so the place found there holds for both.
    """
    seen = defang(reply)
    wanted = defang(quote).strip()
    start = seen.find(wanted)
    if start >= 0:
        return start, start + len(wanted)
    pattern = r"\s+".join(re.escape(word) for word in wanted.split())
    found = re.search(pattern, seen, re.IGNORECASE)
    return found.span() if found else None


def _read_completion(completion: Completion, criteria: Sequence[Criterion], *, reply: str) -> Reading:
    if completion.finish_reason == "length":
        return _nothing_read(criteria, reason=NONE_LENGTH)
    try:
        return read_levels(completion.text, criteria=criteria, reply=reply)
    except JudgeReplyInvalid:
        return _nothing_read(criteria, reason=NONE_UNREADABLE)


def _nothing_read(criteria: Sequence[Criterion], *, reason: str) -> Reading:
    return Reading(
        judgements=tuple(Judgement(criterion_id=criterion.id, level=None, none_reason=reason) for criterion in criteria)
    )


def _judgement(criterion_id: str, entry: JsonValue, *, reply: str, is_given: bool) -> Judgement:
    if not is_given:
        return Judgement(criterion_id=criterion_id, level=None, none_reason=NONE_MISSING)
    if not isinstance(entry, dict) or "level" not in entry:
        return Judgement(criterion_id=criterion_id, level=None, none_reason=NONE_INVALID_LEVEL)
    level = entry["level"]
    if level is None:
        return Judgement(criterion_id=criterion_id, level=None, none_reason=NONE_ABSTAINED)
    # True equals 1 in Python and is no level.
    if isinstance(level, bool) or not isinstance(level, int | float) or level not in LEVELS:
        return Judgement(criterion_id=criterion_id, level=None, none_reason=NONE_INVALID_LEVEL)
    quote = _quote_in(entry)
    evidence = find_quote(quote, reply) if quote else None
    is_unfound = quote is not None and evidence is None
    return Judgement(criterion_id=criterion_id, level=float(level), evidence=evidence, is_quote_unfound=is_unfound)


def _quote_in(entry: JsonValue) -> str | None:
    quote = entry.get("quote") if isinstance(entry, dict) else None
    if not isinstance(quote, str) or quote.strip().casefold() in _WORDS_FOR_NO_QUOTE:
        return None
    return quote
