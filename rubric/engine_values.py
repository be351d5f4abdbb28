"""The values that cross the engine's border: where a model is, what is asked of it, what came back.

The drivers in `deploy/engines` make an `Endpoint`; chat, generators and judges pass `Sampling` and `Deadlines` and
read `Piece` and `Completion`. Nothing here opens a connection, and nothing here knows a model server by name: what
differs between servers is written into `Dialect` and `TemplateNeeds` by the driver that knows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self, TypeVar

import orjson

from rubric.json_types import JsonObject, JsonValue

Part = TypeVar("Part", "EngineFeatures", "Dialect", "TemplateNeeds")
LogprobKind = Literal["processed", "raw", "none"]  # processed: of the distribution really sampled from


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineFeatures:
    """What an engine can do; the product switches off and names the features that need what is missing."""

    adapters: bool = False  # trained versions can be served
    logprobs: bool = False  # the log-probability of each sampled token comes back
    schema: bool = False  # replies can be held to a JSON schema
    token_ids: bool = False  # the sampled token ids come back
    priority: bool = False  # queued requests are ordered by priority
    prompt_logprobs: bool = False  # a given reply can be scored

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of what this engine cannot do."""
        return tuple(name for name in self.__dataclass_fields__ if not getattr(self, name))


@dataclass(frozen=True, kw_only=True, slots=True)
class TemplateNeeds:
    """What a model's chat template refuses; the client reshapes the transcript before it sends it."""

    folds_system: bool = False  # no system role: its text goes in front of the first user text
    merges_roles: bool = False  # roles must alternate: equal neighbours become one
    starts_with_user: bool = False  # an assistant text may not come first


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """How a server spells what the common request leaves open."""

    extras: Mapping[str, JsonValue] = field(default_factory=dict)  # in every request
    sampled_extras: Mapping[str, JsonValue] = field(default_factory=dict)  # in requests with temperature > 0
    repetition_field: str = ""  # the penalty's field name; "" where the server has none
    penalty_extras: Mapping[str, JsonValue] = field(default_factory=dict)  # in requests with a penalty
    sampled_kind: LogprobKind = "raw"  # of log-probabilities at temperature > 0
    greedy_kind: LogprobKind = "raw"  # the same at temperature 0
    closes_connections: bool = False  # the server closes each connection after its answer
    min_top_logprobs: int = 0  # fewer alternatives than this bring no log-probability at all
    sends_request_id: bool = False  # the body may carry `request_id`


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """One served version: an address, the name to ask for there, and what may be asked."""

    base_url: str  # up to and without "/v1"
    model: str
    driver: str  # "llamacpp", "vllm" or "remote": for people and metrics, never for decisions
    api_key: str = field(default="", repr=False)
    features: EngineFeatures = EngineFeatures()
    slots: int = 8  # requests that run at once; further ones wait at the engine
    context_tokens: int = 2048  # prompt and reply together
    dialect: Dialect = Dialect()
    template: TemplateNeeds = TemplateNeeds()

    def to_json(self) -> str:
        """Write the whole value as JSON, the key included: it goes into the endpoint directory only."""
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote; keys that this code does not know are dropped, so that old readers live on.

        Raises ValueError for what is not a JSON object with the three required texts.
        """
        raw = orjson.loads(text)
        if not isinstance(raw, dict) or not all(isinstance(raw.get(k), str) for k in ("base_url", "model", "driver")):
            raise ValueError(f"An endpoint needs base_url, model and driver ({len(text)} characters came).")
        parts: dict[str, Any] = {
            "features": _known(EngineFeatures, raw.pop("features", {})),
            "dialect": _known(Dialect, raw.pop("dialect", {})),
            "template": _known(TemplateNeeds, raw.pop("template", {})),
        }
        return cls(**parts, **{k: v for k, v in raw.items() if k in cls.__dataclass_fields__})


def _known(kind: type[Part], raw: JsonObject) -> Part:
    """Build `kind` from the keys that it knows."""
    known: dict[str, Any] = {k: v for k, v in raw.items() if k in kind.__dataclass_fields__}
    return kind(**known)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How to draw a reply. temperature 0 is greedy; top_p 1 and repetition_penalty 1 leave the distribution alone.

    The defaults keep the distribution that was sampled from reproducible: softmax(logits / temperature).
    """

    max_tokens: int
    temperature: float = 0.7
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    seed: int | None = None
    wants_logprobs: bool = True

    @property
    def is_greedy(self) -> bool:
        """Whether the likeliest token is always taken."""
        return self.temperature <= 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadlines:
    """Seconds after which an engine counts as gone. Time that the caller takes between pieces counts for `whole_s`."""

    connect_s: float = 2.0
    first_token_s: float = 30.0  # from the request to the first text or token
    between_tokens_s: float = 10.0  # keep-alive lines do not count as tokens
    whole_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Piece:
    """One step of a reply; `text` may be "" where a token ends inside a character."""

    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float | None, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """One whole reply. `text` equals the joined texts of its pieces.

    `logprob_gap` says why log-probabilities are missing or fewer than the tokens; None means that each token of the
    text has its id and its log-probability (a final end token may be left out by the server).
    """

    text: str
    finish_reason: str  # "stop", "length", "cancelled" or what else the server said
    token_ids: tuple[int, ...]
    logprobs: tuple[float | None, ...]
    logprob_kind: LogprobKind
    logprob_gap: str | None
    prompt_tokens: int | None  # None where the server did not say
    completion_tokens: int | None
    request_id: str
    first_token_ms: float | None
    total_ms: float
