"""Two replies side by side, asked in both orders: which one a rubric prefers.

Language models lean to the reply that stands first (or last), so each question is put twice, with the replies
swapped. A verdict on a criterion counts only where both orders name the same reply; one that flips with the order is a
tie, one that cannot be read is None and counted. Criteria go without weights and polarity, as to `ModelJudge`; the
preference is put together here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, Literal

from rubric.answer_cache import AnswerCache
from rubric.asking import ask_or_recall
from rubric.criteria import Criterion, Rubric
from rubric.dialogue import Transcript
from rubric.dialogue_text import render_dialogue, shorten_middle
from rubric.engine import ChatModel, Deadlines, Sampling
from rubric.fence import defang, fence
from rubric.json_text import JsonRefused, read_object
from rubric.json_types import JsonObject, JsonValue
from rubric.judge import MAX_QUOTE_CHARS, JudgeShape
from rubric.prompts import load_prompt
from rubric.reward import reward_of
from rubric.score import NONE_UNREADABLE, Judgement, Score

Verdict = Literal["first", "second", "equal"]
VERDICTS: Final[tuple[Verdict, ...]] = ("first", "second", "equal")
_SWAPPED: Final[dict[Verdict, Verdict]] = {"first": "second", "second": "first", "equal": "equal"}
_SHARE_OF_FIRST: Final[dict[Verdict, float]] = {"first": 1.0, "equal": 0.5, "second": 0.0}
_PROMPT: Final = "judge_pair"


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Which of two replies does more of what one criterion says.

    Both verdicts speak of the replies as the caller gave them, whatever order they were shown in; None was not read.
    """

    criterion_id: str
    shown: Verdict | None
    swapped: Verdict | None

    @property
    def is_flipped(self) -> bool:
        """The order decided, not the replies."""
        return None not in {self.shown, self.swapped} and self.shown != self.swapped

    @property
    def verdict(self) -> Verdict | None:
        """What both orders say; "equal" where it flips, None where an order gave nothing."""
        if self.shown is None or self.swapped is None:
            return None
        return self.shown if self.shown == self.swapped else "equal"


@dataclass(frozen=True, kw_only=True, slots=True)
class PairScore:
    """All comparisons of two replies under one rubric, and who made them how; `attempts` counts questions."""

    comparisons: tuple[Comparison, ...]
    judge: str
    prompt_sha256: str
    attempts: int
    latency_ms: float

    @property
    def counts(self) -> Mapping[str, int]:
        """How many criteria: first, second, equal, flipped, none; a flipped one is counted as flipped only."""
        names = ("flipped" if one.is_flipped else one.verdict or "none" for one in self.comparisons)
        return dict.fromkeys((*VERDICTS, "flipped", "none"), 0) | Counter(names)

    def preference(self, rubric: Rubric) -> float | None:
        """Sum over dimensions of weight x mean sign of the verdicts, in [-1, 1]; over 0 the first reply is preferred.

        For an `avoid` criterion the reply that does more of it loses. None, like a reward, where a dimension has no
        verdict at all. Raises ScoreMismatch for a comparison that belongs to no criterion of the rubric.
        """
        reward = reward_of(self._as_score(), rubric)
        return None if reward is None else 2 * reward.value - 1

    def _as_score(self) -> Score:
        """The first reply's share of each verdict as its level, so that weights and polarity have one formula."""
        return Score(
            judgements=tuple(
                Judgement(
                    criterion_id=one.criterion_id,
                    level=None if one.verdict is None else _SHARE_OF_FIRST[one.verdict],
                    none_reason=NONE_UNREADABLE if one.verdict is None else None,
                )
                for one in self.comparisons
            ),
            judge=self.judge,
            prompt_sha256=self.prompt_sha256,
            attempts=self.attempts,
            latency_ms=self.latency_ms,
        )


@dataclass(frozen=True, slots=True)
class PairJudge:
    """Asks a language model, through the engine, to compare; at most `max_attempts` questions for each order."""

    model: ChatModel
    name: str
    _: KW_ONLY
    shape: JudgeShape = field(default_factory=JudgeShape)
    max_attempts: int = 2
    retry_temperature: float = 0.7
    deadlines: Deadlines = field(default_factory=Deadlines)
    clock: Callable[[], float] = time.perf_counter
    cache: AnswerCache | None = None

    async def compare(self, context: Transcript, first: str, second: str, *, rubric: Rubric, seed: int) -> PairScore:
        """Compare two replies to one context in both orders, one after the other.

        Raises ContextInvalid where the visitor does not speak last, and EngineError as the engine gives it.
        """
        started_s = self.clock()
        shown, asked = await self._read(context, first, second, criteria=rubric.criteria, seed=seed)
        swapped, asked_again = await self._read(context, second, first, criteria=rubric.criteria, seed=seed)
        return PairScore(
            comparisons=tuple(
                Comparison(criterion_id=criterion.id, shown=one, swapped=other and _SWAPPED[other])
                for criterion, one, other in zip(rubric.criteria, shown, swapped, strict=True)
            ),
            judge=self.name,
            prompt_sha256=load_prompt(_PROMPT).sha256,
            attempts=asked + asked_again,
            latency_ms=(self.clock() - started_s) * 1000,
        )

    async def _read(
        self, context: Transcript, first: str, second: str, *, criteria: Sequence[Criterion], seed: int
    ) -> tuple[tuple[Verdict | None, ...], int]:
        """One order's verdicts, of the attempt that gave most, and how often was asked."""
        prompt = pair_prompt(context, first, second, criteria=criteria, shape=self.shape)
        best: tuple[Verdict | None, ...] = (None,) * len(criteria)
        for attempt in range(self.max_attempts):
            answer = await ask_or_recall(
                self.model,
                prompt,
                prompt_name=_PROMPT,
                sampling=Sampling(
                    temperature=self.retry_temperature if attempt else 0.0,
                    max_tokens=self.shape.max_tokens(criteria),
                    seed=seed + attempt,
                    wants_logprobs=False,
                ),
                deadlines=self.deadlines,
                schema=pair_schema(criteria),
                cache=self.cache,
            )
            read = read_verdicts(answer.text, criteria=criteria) if answer.finish_reason != "length" else best
            best = max(best, read, key=lambda verdicts: sum(one is not None for one in verdicts))
            if None not in best:
                break
        return best, attempt + 1


def pair_prompt(
    context: Transcript, first: str, second: str, *, criteria: Sequence[Criterion], shape: JudgeShape | None = None
) -> Transcript:
    """The request for verdicts. A fence's delimiter stands nowhere else; of criteria only ids and texts are shown."""
    bounds = shape or JudgeShape()
    entries = "\n".join(f"{criterion.id}: {defang(criterion.text)}" for criterion in criteria)
    talk = render_dialogue(context, max_tokens=bounds.max_context_tokens)
    replies = [shorten_middle(reply, max_tokens=bounds.max_reply_tokens // 2) for reply in (first, second)]
    seen = [entries, talk, *map(defang, (first, second))]
    slots: dict[str, str] = {}
    for name, text in zip(("dialogue", "first", "second"), (talk, *replies), strict=True):
        # With the fences before it in view, equal replies get different delimiters.
        slots[name] = str(fence(text, absent_from=[*seen, *slots.values()]))
    return load_prompt(_PROMPT).fill({**slots, "criteria": entries, "count": str(len(criteria))})


def pair_schema(criteria: Sequence[Criterion]) -> JsonObject:
    """The JSON schema of an answer: per criterion a bounded quote, then a verdict or null."""
    entry: JsonObject = {
        "type": "object",
        "properties": {
            "quote": {"type": "string", "maxLength": MAX_QUOTE_CHARS},
            "more": {"enum": [*VERDICTS, None]},
        },
        "required": ["quote", "more"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {criterion.id: entry for criterion in criteria},
        "required": [criterion.id for criterion in criteria],
        "additionalProperties": False,
    }


def read_verdicts(text: str, *, criteria: Sequence[Criterion]) -> tuple[Verdict | None, ...]:
    """One verdict per criterion; what is none of the three words, or in no JSON at all, is None. Never raises."""
    try:
        answer = read_object(text)
    except JsonRefused:
        answer = {}
    return tuple(_verdict(answer.get(criterion.id)) for criterion in criteria)


def _verdict(entry: JsonValue) -> Verdict | None:
    more = entry.get("more") if isinstance(entry, dict) else None
    return next((verdict for verdict in VERDICTS if verdict == more), None)
