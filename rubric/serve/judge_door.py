"""The judge's door in the encoder process: `POST /v1/judge`.

A request is `{"context", "reply", "criteria": [...], "wants_evidence", "deadline_ms"}`, the context as
`readings.context_text` renders it. The answer has a place per criterion in `levels` (five probabilities), `expected`,
`evidence` (a span of the reply) and `none_reasons`, all as of an attempt at a reply; `genuine` (how sure it is that it
is one) and `mechanisms` are of the reply alone. Judging waits while anybody's
text waits to be screened.
"""

from __future__ import annotations

import numpy as np
from aiohttp import web

from rubric.json_types import JsonObject, JsonValue
from rubric.score import NONE_EMPTY_CRITERION, NONE_EMPTY_REPLY
from rubric.serve.judging import (
    CriterionText,
    Graded,
    JudgedReply,
    JudgeNetwork,
    find_evidence,
    sentence_spans,
    without_each,
)
from rubric.serve.queue import Job, Vector, WindowQueue
from rubric.serve.requests import JudgeRequest, parse_judge_request, read_body

Spans = list[tuple[int, int] | None]


class JudgeDoor:
    """Answers for one judge through one queue."""

    def __init__(self, network: JudgeNetwork, queue: WindowQueue, *, version: str) -> None:
        self._network, self._queue, self._version = network, queue, version

    async def answer(self, request: web.Request) -> web.Response:
        """Levels for one reply."""
        asked = parse_judge_request(await read_body(request))
        graded, evidence = await self._judge(asked)
        return web.json_response({"version": self._version, **_answer(graded, evidence, count=len(asked.criteria))})

    async def _judge(self, asked: JudgeRequest) -> tuple[Graded | None, Spans]:
        """New criteria, the reply, and for evidence the reply without each sentence: as one request to the queue."""
        job = JudgedReply(asked.context, asked.reply, asked.criteria)
        new = [CriterionText(text) for text in dict.fromkeys(asked.criteria) if not self._network.knows(text)]
        spans = sentence_spans(asked.reply) if asked.wants_evidence else ()
        without = without_each(job, spans)
        jobs = [*(Job("judge", one) for one in new), *(Job("judge", one) for one in (job, *without))]
        vectors = await self._queue.submit(jobs, deadline_s=asked.deadline_s, is_background=True)
        graded, *rest = [Graded.of(vector) for vector in vectors[len(new) :]]
        no_evidence: Spans = [None] * len(asked.criteria)
        return graded, no_evidence if graded is None or not rest else find_evidence(graded, rest, spans)


def _answer(graded: Graded | None, evidence: Spans, *, count: int) -> JsonObject:
    if graded is None:
        nothing: list[JsonValue] = [None] * count
        reasons: list[JsonValue] = [NONE_EMPTY_REPLY] * count
        return {
            "levels": nothing,
            "expected": nothing,
            "evidence": nothing,
            "none_reasons": reasons,
            "genuine": None,
            "mechanisms": None,
        }
    return {
        "levels": [None if np.isnan(row).any() else _numbers(row) for row in graded.levels],
        "expected": list(graded.expected()),
        "evidence": [None if span is None else list(span) for span in evidence],
        "none_reasons": [NONE_EMPTY_CRITERION if np.isnan(row).any() else None for row in graded.levels],
        "genuine": round(graded.genuine, 6),
        "mechanisms": [_numbers(row) for row in graded.mechanisms],
    }


def _numbers(row: Vector) -> list[JsonValue]:
    return [min(max(round(float(number), 6), 0.0), 1.0) for number in row]
