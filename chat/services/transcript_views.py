"""What the transcript page shows of a turn, as values: `transcripts` makes them, `api.staff_serializers` write them."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictView:
    direction: str
    level: str
    score: float | None
    version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CriterionView:
    id: str
    text: str
    dimension: str
    polarity: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RubricView:
    weights: dict[str, float]
    criteria: tuple[CriterionView, ...]
    generator: str
    is_fallback: bool
    fallback_reason: str
    repairs: int
    latency_ms: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgementView:
    """`evidence` is [start, end) in the shown text, in code points; `level` None carries its reason.

    `quote_unfound`: the judge quoted what the reply does not say, so the level has no evidence.
    """

    criterion_id: str
    level: float | None
    none_reason: str | None
    evidence: tuple[int, int] | None
    quote_unfound: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreView:
    """`implementation` is what the judge is (encoder, model); `human_evidence` what is known of it, as a sentence."""

    judge: str
    implementation: str
    human_evidence: str
    reward: float | None
    partial: bool
    by_dimension: dict[str, float | None]
    judgements: tuple[JudgementView, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyView:
    id: UUID
    seq: int
    status: str
    text: str
    code: str
    selected: bool
    sibling_index: int
    policy: str
    first_token_ms: float | None
    total_ms: float | None
    tokens: int | None
    feedback: int | None
    score: ScoreView | None


@dataclass(frozen=True, kw_only=True, slots=True)
class NoteView:
    id: UUID
    kind: str
    text: str
    author: str | None
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnView:
    id: UUID
    seq: int
    text: str
    created_at: datetime
    redacted: bool
    safety: tuple[VerdictView, ...]
    rubric: RubricView | None
    replies: tuple[ReplyView, ...]
    notes: tuple[NoteView, ...]
