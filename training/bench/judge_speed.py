"""What grading costs (G12): beside the model, through the encoder process against the bare encoder, replies a second.

Bare is the graph that reads a reply, run in a loop on sequences that are ready; through the process come HTTP, the
queue, cutting texts into tokens and eight criteria that it knows. Short rounds of both alternate on the measured core;
whoever asks has the other one. Ratio and scoring go by CPU seconds, so that others on the machine count little; replies
a second go by the clock.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import aiohttp
import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from rubric import Dimension, Interval, Rubric, reward_of
from rubric.corpus.records import read_corpus
from rubric.corpus.rubrics import rubric_of
from rubric.encoder_values import judge_reading_of
from rubric.serve.bundle import JUDGE_READ, TOKENIZER
from rubric.serve.readings import build_reading, context_text
from training.bench import machine
from training.bench.figures import Figure, of_rounds, ratios
from training.bench.judge_asking import AT_ONCE, faults_of, levels_of_reading, score_of_levels
from training.bench.judge_calibration import GivenReply, replies_of
from training.bench.judge_rows import Row, row

ROUNDS: Final = 9
REPLIES: Final = 40  # in a round, all different
CRITERIA: Final = 8
CPU_STEP_S: Final = 0.01  # of the kernel's count
SCORED: Final = 1_500  # in a round without the model


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """The encoder process that is measured."""

    url: str
    pid: int
    folder: Path  # its export


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A reply to grade under exactly eight criteria."""

    reply: GivenReply
    rubric: Rubric

    @property
    def payload(self) -> str:
        """The request, as the client writes it."""
        return json.dumps(
            {
                "context": context_text(self.reply.context),
                "reply": self.reply.text,
                "criteria": [criterion.text for criterion in self.rubric],
                "wants_evidence": False,
                "deadline_ms": 30_000,
            }
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """Replies graded by the process: by the clock, by seconds of its CPU, and what it answered."""

    per_s: float
    per_cpu_s: float
    answers: Sequence[bytes]


async def measure(served: Served) -> list[Row]:
    """The rows of the part `speed`."""
    samples = _samples()
    measured, other = machine.cores()
    everything = os.sched_getaffinity(0)
    machine.pin([served.pid], [measured])
    try:
        bare: list[float] = []
        rounds: list[Round] = []
        session = _open(served.folder / JUDGE_READ)
        feeds = [_feed(sample, Tokenizer.from_file(str(served.folder / TOKENIZER))) for sample in samples]
        async with aiohttp.ClientSession() as client:
            await _ask_all(client, served, samples)  # criteria come into the process's memory once
            for _ in range(ROUNDS):
                machine.pin([os.getpid()], [measured])
                bare.append(_bare_rate(session, feeds))
                machine.pin([os.getpid()], [other])
                rounds.append(await _round(client, served, samples))
        scored = [_scoring_rate(samples, rounds[0].answers) for _ in range(ROUNDS)]
    finally:
        machine.pin([served.pid, os.getpid()], everything)
    return [
        _row("speed.G12_scoring", of_rounds(scored)),
        _row("speed.G12_rate", _percent(ratios([one.per_cpu_s for one in rounds], bare))),
        _row("speed.G12_replies", of_rounds([one.per_s for one in rounds])),
    ]


def _samples() -> list[Sample]:
    """Replies of the corpus whose turns have eight criteria or more, spread over all conversations."""
    found = [
        Sample(reply=reply, rubric=with_eight(rubric_of(reply.turn)))
        for reply in replies_of(read_corpus())
        if len(rubric_of(reply.turn).criteria) >= CRITERIA
    ]
    return found[:: len(found) // REPLIES][:REPLIES]


def with_eight(rubric: Rubric) -> Rubric:
    """Dimension by dimension in turn, so that none is left without one."""
    by_dimension = [list(rubric.criteria_of(dimension)) for dimension in Dimension]
    chosen = [one[at] for at in range(max(map(len, by_dimension))) for one in by_dimension if at < len(one)]
    return replace(rubric, criteria=tuple(chosen[:CRITERIA]))


def _open(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _feed(sample: Sample, tokenizer: Tokenizer) -> dict[str, np.ndarray]:
    reading = build_reading(context_text(sample.reply.context), sample.reply.text, tokenizer)
    ids = np.asarray([reading.ids], dtype=np.int64)
    return {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "reply_mask": np.asarray([reading.reply_mask], dtype=np.int64),
        "surface": np.asarray([reading.surface], dtype=np.float32),
    }


def _bare_rate(session: onnxruntime.InferenceSession, feeds: Sequence[dict[str, np.ndarray]]) -> float:
    """Replies per second of this process's CPU."""
    began_s = time.process_time()
    for feed in feeds:
        session.run(None, feed)
    return len(feeds) / (time.process_time() - began_s)


async def _round(client: aiohttp.ClientSession, served: Served, samples: Sequence[Sample]) -> Round:
    began_s, cpu_began_s = time.perf_counter(), machine.cpu_s(served.pid)
    answers = await _ask_all(client, served, samples)
    took_s, cpu_took_s = time.perf_counter() - began_s, machine.cpu_s(served.pid) - cpu_began_s
    return Round(per_s=len(samples) / took_s, per_cpu_s=len(samples) / max(cpu_took_s, CPU_STEP_S), answers=answers)


async def _ask_all(client: aiohttp.ClientSession, served: Served, samples: Sequence[Sample]) -> list[bytes]:
    free = asyncio.Semaphore(AT_ONCE)

    async def one(sample: Sample) -> bytes:
        headers = {"Content-Type": "application/json"}
        async with free, client.post(f"{served.url}/v1/judge", data=sample.payload, headers=headers) as answer:
            answer.raise_for_status()
            return await answer.read()

    return list(await asyncio.gather(*(one(sample) for sample in samples)))


def _scoring_rate(samples: Sequence[Sample], answers: Sequence[bytes]) -> float:
    """From context and rubric to the request, and from the answer to a stored score and its reward."""
    pairs = list(zip(samples, answers, strict=True))
    began_s = time.process_time()
    for at in range(SCORED):
        sample, answer = pairs[at % len(pairs)]
        sample.payload  # noqa: B018 - what it costs is measured
        score_answer(sample, answer)
    return SCORED / (time.process_time() - began_s)


def score_answer(sample: Sample, answer: bytes) -> str:
    reading = judge_reading_of(
        json.loads(answer), criteria=len(sample.rubric.criteria), reply_characters=len(sample.reply.text)
    )
    score = score_of_levels(levels_of_reading(reading, faults_of(sample.rubric)), sample.rubric)
    reward = reward_of(score, sample.rubric)
    return json.dumps([score.to_json(), None if reward is None else reward.value])


def _percent(figure: Figure) -> Figure:
    return Figure(value=100 * figure.value, low=100 * figure.low, high=100 * figure.high, n=figure.n)


def _row(key: str, figure: Figure) -> Row:
    """The interval is the lowest and the highest round."""
    found = Interval(estimate=figure.value, low=figure.low, high=figure.high)
    return row(key, found, n=figure.n)
