"""The chat-completions wire: a request's body and what one answer or one chunk of a stream says.

Only `rubric.engine` calls this. Parsing is defensive, since any server may be behind an address: what is not of the
expected shape raises EngineBroken, what is merely missing is None.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from rubric.dialogue import JOINT, Role, Transcript, Utterance
from rubric.engine_values import Endpoint, LogprobKind, Sampling, TemplateNeeds
from rubric.errors import EngineBroken
from rubric.json_types import JsonObject

DONE = b"[DONE]"


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one event of a stream, or one choice of a whole answer, adds."""

    text: str = ""
    token_bytes: bytes | None = None  # what the tokens are, where `text` may hide it
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float | None, ...] = ()
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


def fit_transcript(transcript: Transcript, needs: TemplateNeeds) -> Transcript:
    """Reshape a transcript for a template that refuses system texts, equal neighbours or a first assistant text."""
    said = list(transcript.utterances)
    if needs.folds_system:
        system = JOINT.join(one.text for one in said if one.role is Role.SYSTEM)
        said = [one for one in said if one.role is not Role.SYSTEM]
        first = next((i for i, one in enumerate(said) if one.role is Role.USER), None)
        if system and first is None:
            said.insert(0, Utterance(Role.USER, system))
        elif system and first is not None:
            said[first] = Utterance(Role.USER, system + JOINT + said[first].text)
    if needs.starts_with_user:
        speakers = [i for i, one in enumerate(said) if one.role is not Role.SYSTEM]
        if speakers and said[speakers[0]].role is Role.ASSISTANT:
            # Such templates refuse an empty user text as well; dots say that nothing was said.
            said.insert(speakers[0], Utterance(Role.USER, "..."))
    fitted = Transcript(tuple(said))
    return fitted.merged() if needs.merges_roles else fitted


def request_body(
    endpoint: Endpoint,
    transcript: Transcript,
    *,
    sampling: Sampling,
    request_id: str,
    is_stream: bool = False,
    schema: JsonObject | None = None,
    n: int = 1,
    priority: int = 0,
) -> bytes:
    """Write one request in the endpoint's dialect."""
    dialect, features = endpoint.dialect, endpoint.features
    fitted = fit_transcript(transcript, endpoint.template)
    body: dict[str, Any] = {
        "model": endpoint.model,
        "messages": [{"role": said.role.value, "content": _encodable(said.text)} for said in fitted],
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        **dialect.extras,
    }
    if not sampling.is_greedy:
        body |= dialect.sampled_extras
    if sampling.repetition_penalty != 1.0 and dialect.repetition_field:
        body |= {dialect.repetition_field: sampling.repetition_penalty, **dialect.penalty_extras}
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if sampling.seed is not None:
        body["seed"] = sampling.seed
    if sampling.wants_logprobs and features.logprobs:
        body |= {"logprobs": True, "top_logprobs": dialect.min_top_logprobs}
    if is_stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if schema is not None:
        named = {"name": "answer", "schema": schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    if n > 1:
        body["n"] = n
    if features.priority and priority:
        body["priority"] = priority
    if dialect.sends_request_id:
        body["request_id"] = request_id
    return orjson.dumps(body)


def _encodable(text: str) -> str:
    """Replace lone surrogates, which no wire carries, by U+FFFD: an old row must not poison every later turn."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def logprob_kind_of(endpoint: Endpoint, sampling: Sampling) -> LogprobKind:
    """Say which distribution the log-probabilities of an answer belong to, if any come back."""
    if not (sampling.wants_logprobs and endpoint.features.logprobs):
        return "none"
    return endpoint.dialect.greedy_kind if sampling.is_greedy else endpoint.dialect.sampled_kind


def parse_chunk(payload: bytes) -> Chunk:
    """Read one event of a stream; a role-only or usage-only event gives a chunk without text.

    Raises EngineBroken for an error event (under status 200, too) and for what is no chunk.
    """
    raw, is_raw_bytes = _load(payload)
    usage = raw.get("usage")
    prompt_tokens, completion_tokens = _usage(usage) if usage else (None, None)
    choices = raw.get("choices")
    if not choices:
        if "error" in raw or choices is None:
            raise EngineBroken(reason=f"an error event of {len(payload)} bytes in mid-stream")
        return Chunk(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
    try:
        choice = choices[0]
        text = choice["delta"].get("content") or ""
        return _chunk_of(
            choice,
            text,
            is_raw_bytes=is_raw_bytes,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise EngineBroken(reason=f"a chunk of {len(payload)} bytes without a readable choice") from error


def parse_answer(payload: bytes) -> tuple[Chunk, ...]:
    """Read a whole answer: one chunk per choice, in the order of their indexes.

    With several choices the completion tokens of each are unknown (the server gives their sum): None.
    """
    raw, is_raw_bytes = _load(payload)
    try:
        prompt_tokens, completion_tokens = _usage(raw.get("usage") or {})
        choices = sorted(raw["choices"], key=lambda choice: choice.get("index", 0))
        return tuple(
            _chunk_of(
                choice,
                choice["message"].get("content") or "",
                is_raw_bytes=is_raw_bytes,
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens if len(choices) == 1 else None,
            )
            for choice in choices
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise EngineBroken(reason=f"an answer of {len(payload)} bytes without readable choices") from error


def _load(payload: bytes) -> tuple[dict[str, Any], bool]:
    """Parse; where orjson refuses (half characters) stdlib reads on, raw bytes marked by surrogate escapes."""
    is_raw_bytes = False
    try:
        raw = orjson.loads(payload)
    except orjson.JSONDecodeError:
        try:
            try:
                text = payload.decode()
            except UnicodeDecodeError:
                text, is_raw_bytes = payload.decode("utf-8", "surrogateescape"), True
            raw = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise EngineBroken(reason=f"{len(payload)} bytes that are not JSON") from error
    if not isinstance(raw, dict):
        raise EngineBroken(reason=f"{len(payload)} bytes of JSON that are no object")
    return raw, is_raw_bytes


def _usage(usage: dict[str, Any]) -> tuple[int | None, int | None]:
    return usage.get("prompt_tokens"), usage.get("completion_tokens")


def _chunk_of(
    choice: dict[str, Any],
    text: str,
    *,
    is_raw_bytes: bool,
    prompt_tokens: int | None,
    completion_tokens: int | None,
) -> Chunk:
    entries = (choice.get("logprobs") or {}).get("content") or ()
    token_bytes: bytes | None = None
    if is_raw_bytes:
        token_bytes = text.encode("utf-8", "surrogateescape")
        text = token_bytes.decode("utf-8", "replace")
    elif "\ufffd" in text or (entries and not text):
        token_bytes = _bytes_of(entries)
    ids = choice.get("token_ids")
    if ids is None:
        ids = [entry["id"] for entry in entries if "id" in entry]
    return Chunk(
        text,
        token_bytes,
        tuple(ids),
        tuple(map(_logprob_of, entries)),
        choice.get("finish_reason"),
        prompt_tokens,
        completion_tokens,
    )


def _bytes_of(entries: Iterable[dict[str, Any]]) -> bytes | None:
    """Join the bytes of the tokens; None where the server leaves any of them out."""
    parts = [entry.get("bytes") for entry in entries]
    known = [bytes(part) for part in parts if part is not None]
    return b"".join(known) if parts and len(known) == len(parts) else None


def _logprob_of(entry: dict[str, Any]) -> float | None:
    """Read `logprob`, or `prob` (of the distribution sampled from); None for what is not finite."""
    value = entry.get("logprob")
    if value is None:
        probability = entry.get("prob")
        value = math.log(probability) if probability else None
    return value if value is not None and math.isfinite(value) else None
