"""Is an endpoint well? Only a real token with a finite log-probability says so; drivers and the keeper ask here."""

from __future__ import annotations

import math
import time
import uuid
from typing import Final

import aiohttp

from deploy.engines.driver import EngineHealth
from rubric import Deadlines, Endpoint, EngineError, HttpChatModel, Sampling, Transcript

_ONE_TOKEN: Final = Sampling(max_tokens=1, temperature=0.0)
# A question of a few tokens, but behind what the engine works on already.
PROBE_S: Final = Deadlines(connect_s=2.0, whole_s=20.0)


async def ask_one_token(
    endpoint: Endpoint, client: aiohttp.ClientSession, *, deadlines: Deadlines | None = None
) -> EngineHealth:
    """Ask for one token. An endpoint without log-probabilities is well when any text or length comes back."""
    started_at = time.monotonic()
    model = HttpChatModel(endpoint, client)
    request_id = f"health-{uuid.uuid4().hex[:12]}"
    # Never the same twice: a server that has all of a prompt in its cache computes nothing of it, and llama.cpp warns.
    question = Transcript.of(("user", f"Say yes to {request_id}."))
    try:
        (answer,) = await model.complete(
            question, sampling=_ONE_TOKEN, deadlines=deadlines or PROBE_S, request_id=request_id
        )
    except EngineError as error:
        return _health(started_at, is_well=False, detail=error.code)
    if endpoint.features.logprobs:
        values = [value for value in answer.logprobs if value is not None]
        if not values or not all(map(math.isfinite, values)):
            return _health(started_at, is_well=False, detail="no finite log-probability")
    elif not answer.text and answer.finish_reason != "length":
        return _health(started_at, is_well=False, detail="no token")
    return _health(started_at, is_well=True, detail="a token")


def _health(started_at: float, *, is_well: bool, detail: str) -> EngineHealth:
    return EngineHealth(is_well=is_well, detail=detail, took_ms=(time.monotonic() - started_at) * 1000)
