"""Rubric generators: from the context of a turn to what matters in the reply, which they never see.

`RubricGenerator` is what callers ask for. `ModelGenerator` asks any `ChatModel` for a draft in bounded JSON, shows it
its mistakes once, and gives the flagged fallback where that does not help either; every way it ends is countable.
What the model writes never raises. Errors of the engine (`EngineError`) do leave: whether to try later is the caller's
decision, and no rubric is better than one that an outage made.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import Protocol

from rubric.asking import ask
from rubric.criteria import Dimension, Polarity, Rubric, Stage
from rubric.dialogue import Role, Transcript
from rubric.dialogue_text import render_dialogue, shorten_middle
from rubric.engine import ChatModel, Completion, Deadlines, Sampling
from rubric.errors import RubricInvalid
from rubric.fallback import fallback_rubric
from rubric.fence import defang, fence
from rubric.json_types import JsonObject, JsonValue
from rubric.parsing import FULL_STRENGTH, MIN_TEXT_CHARS, parse_rubric
from rubric.prompts import load_prompt
from rubric.rules import copied_criteria, lint_criteria

REASON_LENGTH = "length"  # cut off at max_tokens, so the JSON cannot be whole
REASON_INVALID = "invalid"
REASON_COPIED = "copied"  # valid, but taken from the worked example
MAX_SHOWN_PROBLEMS = 6
FIRST_PROMPT = "rubric_generator"
REPAIR_PROMPT = "rubric_repair"


class Outcome(StrEnum):
    """How a rubric came about; the share of each is what the quality bars speak of."""

    VALID = "valid"
    REPAIRED = "repaired"
    FALLBACK = "fallback"


@dataclass(frozen=True, kw_only=True, slots=True)
class GeneratedRubric:
    """A rubric and how it came about.

    `own_logprob` is the sum of the log-probabilities of the tokens of a draft that was valid at once, else None (a
    repaired draft was drawn from another prompt). `problems` are those of the last refused draft.
    """

    rubric: Rubric
    generator: str
    latency_ms: float
    attempts: int
    prompt_sha256: str
    own_logprob: float | None
    raw_valid: bool
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        if self.rubric.is_fallback:
            return Outcome.FALLBACK
        return Outcome.VALID if self.raw_valid else Outcome.REPAIRED


@dataclass(frozen=True, kw_only=True, slots=True)
class OutcomeCounts:
    """How many rubrics were valid at once, repaired, or the fallback, and why the latter."""

    valid: int
    repaired: int
    fallback: int
    fallback_reasons: Mapping[str, int]


class RubricGenerator(Protocol):
    """Writes the rubric of a turn. `context` ends with the visitor's newest message; the reply has no way in."""

    @property
    def name(self) -> str: ...

    async def generate(self, context: Transcript, *, seed: int) -> GeneratedRubric: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class DraftShape:
    """How large a draft may be; the served model gets exactly two criteria of 120 characters per dimension."""

    criteria_per_dimension: int = 2
    max_criterion_chars: int = 120
    max_need_chars: int = 90
    max_feeling_chars: int = 20
    max_tokens: int = 400
    max_context_tokens: int = 560  # estimated; what 2,048 leave beside the prompt, a draft, its problems and a repair

    def schema(self) -> JsonObject:
        """The JSON schema of a draft: every string and list bounded, nothing optional, no free keys.

        White space between tokens cannot be bounded by a schema; the engines' own settings do that.
        """
        text: JsonObject = {"type": "string", "minLength": MIN_TEXT_CHARS, "maxLength": self.max_criterion_chars}
        check: JsonObject = {"anyOf": [_closed({polarity.value: text}) for polarity in Polarity]}
        checks: JsonObject = {
            "type": "array",
            "items": check,
            "minItems": self.criteria_per_dimension,
            "maxItems": self.criteria_per_dimension,
        }
        points = _closed(
            {dimension.value: {"type": "integer", "minimum": 0, "maximum": 100} for dimension in Dimension}
        )
        state = _closed(
            {
                "stage": {"enum": [stage.value for stage in Stage]},
                "feeling": {"type": "string", "minLength": 2, "maxLength": self.max_feeling_chars},
                "strength": {"type": "integer", "minimum": 0, "maximum": FULL_STRENGTH},
                "need": {"type": "string", "minLength": 4, "maxLength": self.max_need_chars},
            }
        )
        return _closed({"state": state, "points": points} | {dimension.value: checks for dimension in Dimension})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Draft:
    """One answer of the model: the rubric, or why there is none."""

    rubric: Rubric | None
    reason: str
    problems: tuple[str, ...]
    completion: Completion


@dataclass(frozen=True, slots=True)
class ModelGenerator:
    """Asks a language model, through the engine, for the rubric; at most two requests per call.

    Drafts are drawn at `temperature`; the seed makes a draw repeatable where the engine keeps seeds.
    """

    model: ChatModel
    name: str
    _: KW_ONLY
    shape: DraftShape = field(default_factory=DraftShape)
    temperature: float = 0.7
    deadlines: Deadlines = field(default_factory=Deadlines)
    clock: Callable[[], float] = time.perf_counter

    async def generate(self, context: Transcript, *, seed: int) -> GeneratedRubric:
        """Draft, repair once if need be, else fall back.

        Raises ContextInvalid where the visitor does not speak last, and EngineError as the engine gives it.
        """
        started_s = self.clock()
        first = await self._ask(self._first_prompt(context), seed=seed)
        attempts = 1
        last = first
        if first.rubric is None:
            last = await self._ask(self._repair_prompt(context, first), seed=seed + 1)
            attempts = 2
        repairs = attempts - 1
        rubric = last.rubric.with_repairs(repairs) if last.rubric else fallback_rubric(last.reason, repairs=repairs)
        return GeneratedRubric(
            rubric=rubric,
            generator=self.name,
            latency_ms=(self.clock() - started_s) * 1000,
            attempts=attempts,
            prompt_sha256=self.prompt_sha256,
            own_logprob=logprob_of(first.completion) if first.rubric else None,
            raw_valid=first.rubric is not None,
            problems=last.problems or first.problems,
            warnings=lint_criteria(rubric.criteria),
        )

    @property
    def prompt_sha256(self) -> str:
        """Hash of all that shapes the request besides the context: both prompt files and the schema."""
        schema = json.dumps(self.shape.schema(), sort_keys=True)
        parts = [load_prompt(FIRST_PROMPT).sha256, load_prompt(REPAIR_PROMPT).sha256, schema]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _first_prompt(self, context: Transcript) -> Transcript:
        dialogue = fence(render_dialogue(context, max_tokens=self.shape.max_context_tokens))
        slots = {"count": str(self.shape.criteria_per_dimension), "dialogue": str(dialogue)}
        return load_prompt(FIRST_PROMPT).fill(slots)

    def _repair_prompt(self, context: Transcript, refused: _Draft) -> Transcript:
        # It goes on from the first prompt, which an engine with a prompt cache need not read again.
        draft = defang(shorten_middle(refused.completion.text, max_tokens=self.shape.max_tokens))
        problems = "\n".join(f"- {problem}" for problem in refused.problems[:MAX_SHOWN_PROBLEMS])
        repair = load_prompt(REPAIR_PROMPT).fill({"draft": draft or "{}", "problems": problems})
        return Transcript((*self._first_prompt(context), *repair))

    async def _ask(self, prompt: Transcript, *, seed: int) -> _Draft:
        completion = await ask(
            self.model,
            prompt,
            purpose="rubric",
            sampling=Sampling(temperature=self.temperature, max_tokens=self.shape.max_tokens, seed=seed),
            deadlines=self.deadlines,
            schema=self.shape.schema(),
        )
        return _read_draft(completion)


def logprob_of(completion: Completion) -> float | None:
    """Sum of the token log-probabilities (natural log, at most 0); None where one is missing or not finite."""
    known = [logprob for logprob in completion.logprobs if logprob is not None and math.isfinite(logprob)]
    if completion.logprob_gap is not None or not known or len(known) != len(completion.logprobs):
        return None
    return math.fsum(known)


def count_outcomes(generated: Iterable[GeneratedRubric]) -> OutcomeCounts:
    """Count how rubrics came about, fallbacks by reason."""
    outcomes: Counter[Outcome] = Counter()
    reasons: Counter[str] = Counter()
    for one in generated:
        outcomes[one.outcome] += 1
        if one.rubric.fallback_reason is not None:
            reasons[one.rubric.fallback_reason] += 1
    return OutcomeCounts(
        valid=outcomes[Outcome.VALID],
        repaired=outcomes[Outcome.REPAIRED],
        fallback=outcomes[Outcome.FALLBACK],
        fallback_reasons=dict(reasons),
    )


@cache
def example_rubric() -> Rubric:
    """The rubric of the worked example in the prompt, about a talk of our own."""
    (answer,) = (part.text for part in load_prompt(FIRST_PROMPT).parts if part.role is Role.ASSISTANT)
    return parse_rubric(answer)


def _read_draft(completion: Completion) -> _Draft:
    if completion.finish_reason == "length":
        problem = "JSON: cut off before its end; write shorter checks"
        return _Draft(rubric=None, reason=REASON_LENGTH, problems=(problem,), completion=completion)
    try:
        rubric = parse_rubric(completion.text)
    except RubricInvalid as error:
        return _Draft(rubric=None, reason=REASON_INVALID, problems=error.problems, completion=completion)
    # A small model likes to hand the worked example back, which says nothing about this talk.
    copied = copied_criteria(rubric.criteria, example_rubric().criteria)
    if copied:
        problems = tuple(f"{name}: copies a check about another talk" for name in copied)
        return _Draft(rubric=None, reason=REASON_COPIED, problems=problems, completion=completion)
    return _Draft(rubric=_without_copied_need(rubric), reason="", problems=(), completion=completion)


def _without_copied_need(rubric: Rubric) -> Rubric:
    state, known = rubric.state, example_rubric().state
    if state is None or known is None or state.need_summary != known.need_summary:
        return rubric
    return replace(rubric, state=replace(state, need_summary=None))


def _closed(properties: Mapping[str, JsonValue]) -> JsonObject:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
