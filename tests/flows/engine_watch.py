"""What the model server itself counts: how many tokens it generated, how many slots work. Real numbers, not ours."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from dataclasses import dataclass

from rubric import Completion, Deadlines, Endpoint, HttpChatModel, Sampling, Transcript, open_client

PATIENT = Deadlines(connect_s=5.0, first_token_s=60.0, between_tokens_s=30.0, whole_s=120.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One look: `finished_tokens` of requests that ended, `running_tokens` of each busy slot."""

    finished_tokens: int
    running_tokens: tuple[int, ...]

    @property
    def busy_slots(self) -> int:
        return len(self.running_tokens)


def look_at(endpoint: Endpoint) -> Work:
    """What llama.cpp says at /metrics and /slots."""
    metrics = _get(endpoint, "/metrics").decode()
    found = re.search(r"^llamacpp:tokens_predicted_total (\S+)$", metrics, re.MULTILINE)
    slots = json.loads(_get(endpoint, "/slots"))
    busy = [slot for slot in slots if slot["is_processing"]]
    return Work(
        finished_tokens=int(float(found[1])) if found else 0,
        running_tokens=tuple(sum(step["n_decoded"] for step in slot.get("next_token", ())) for slot in busy),
    )


def _get(endpoint: Endpoint, path: str) -> bytes:
    headers = {"Authorization": f"Bearer {endpoint.api_key}"}
    with urllib.request.urlopen(
        urllib.request.Request(endpoint.base_url + path, headers=headers), timeout=20
    ) as answer:
        content: bytes = answer.read()
    return content


def generate(endpoint: Endpoint, transcript: Transcript, sampling: Sampling) -> Completion:
    """One whole reply straight from the engine."""

    async def ask() -> Completion:
        async with open_client() as client:
            model = HttpChatModel(endpoint, client)
            answers = await model.complete(transcript, sampling=sampling, deadlines=PATIENT, request_id="flow")
        return answers[0]

    return asyncio.run(ask())


def tokens_per_s(endpoint: Endpoint) -> float:
    """The speed of one request that runs alone."""
    sampling = Sampling(max_tokens=48, temperature=0.0)

    async def ask() -> float:
        async with open_client() as client:
            model = HttpChatModel(endpoint, client)
            story = Transcript.of(("user", "Tell me a long story about a river."))
            stream = model.stream(story, sampling=sampling, deadlines=PATIENT, request_id="pace")
            async for step in stream:
                if isinstance(step, Completion):
                    return 1000 * (len(step.token_ids) - 1) / (step.total_ms - (step.first_token_ms or 0.0))
        raise AssertionError("the stream had no end")

    return asyncio.run(ask())
