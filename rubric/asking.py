"""One question to a language model, one answer in bounded JSON: what generator and judges have in common."""

from __future__ import annotations

import uuid

from rubric.answer_cache import AnswerCache, key_of
from rubric.dialogue import Transcript
from rubric.engine import ChatModel, Completion, Deadlines, Sampling
from rubric.json_types import JsonObject
from rubric.prompts import load_prompt

GRADING_PRIORITY = 10  # above 0 waits behind visitors, on engines that order their queue


async def ask(
    model: ChatModel,
    prompt: Transcript,
    *,
    purpose: str,
    sampling: Sampling,
    deadlines: Deadlines,
    schema: JsonObject,
) -> Completion:
    """Ask once; the schema is sent where the engine can hold an answer to it. Raises EngineError.

    `purpose` begins the request id ("rubric", "judge"), by which the engine's log tells the requests apart.
    """
    (completion,) = await model.complete(
        prompt,
        sampling=sampling,
        deadlines=deadlines,
        request_id=f"{purpose}-{uuid.uuid4().hex}",
        schema=schema if model.endpoint.features.schema else None,
        priority=GRADING_PRIORITY,
    )
    return completion


async def ask_or_recall(
    model: ChatModel,
    prompt: Transcript,
    *,
    prompt_name: str,
    sampling: Sampling,
    deadlines: Deadlines,
    schema: JsonObject,
    cache: AnswerCache | None,
) -> Completion:
    """The kept answer to this very question, else a new one, kept where it is whole. Raises EngineError.

    `prompt_name` is the prompt's file, and begins the request id.
    """
    if cache is None:
        return await ask(model, prompt, purpose=prompt_name, sampling=sampling, deadlines=deadlines, schema=schema)
    sha256 = load_prompt(prompt_name).sha256
    key = key_of(model.endpoint, prompt, prompt_sha256=sha256, sampling=sampling, schema=schema)
    if (kept := cache.find(key)) is not None:
        return kept
    answer = await ask(model, prompt, purpose=prompt_name, sampling=sampling, deadlines=deadlines, schema=schema)
    if answer.finish_reason == "stop":
        cache.keep(key, answer)
    return answer
