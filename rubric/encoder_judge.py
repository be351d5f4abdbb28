"""The judge that a small encoder is: `EncoderJudge` asks the encoder process and makes a `Score` of its levels.

The process sees criteria without weight, dimension and polarity; what is no attempt at a reply is settled here, where
the polarity is known. Levels are calibrated expectations in [0, 1]; what could not be
read is None with a reason. A process that is away, slow, or serves another judge is an error, never a number.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Final

from rubric.criteria import Polarity, Rubric
from rubric.dialogue import Transcript
from rubric.dialogue_text import said_before_reply
from rubric.encoder import EncoderClient
from rubric.encoder_values import CriterionReading, JudgeReading, level_of
from rubric.errors import EncoderUnavailable
from rubric.score import NONE_EMPTY_REPLY, NONE_TOO_LONG, Judgement, Score
from rubric.serve.readings import context_text

REPLY_CHARACTERS_MAX: Final = 65_536  # the process refuses more; of a long reply it reads both ends


@dataclass(frozen=True, slots=True)
class EncoderJudge:
    """Asks one encoder process for levels, once per call: the same input gets the same levels, whatever the seed.

    `name` is the version that must be served there, so that a score never carries the name of another judge.
    `wants_evidence` costs one more reading per sentence of the reply.
    """

    client: EncoderClient
    name: str
    _: KW_ONLY
    wants_evidence: bool = True
    clock: Callable[[], float] = time.perf_counter

    async def judge(self, context: Transcript, reply: str, *, rubric: Rubric, seed: int) -> Score:
        """Grade `reply`.

        Raises ContextInvalid where the visitor does not speak last, and EncoderUnavailable or EncoderTimeout as the
        client gives them.
        """
        started_s = self.clock()
        said_before_reply(context)
        reason = _why_not(reply)
        read = await self._ask(context, reply, rubric=rubric) if reason is None else _unread(rubric, reason)
        return Score(
            judgements=tuple(
                Judgement(
                    criterion_id=criterion.id,
                    level=level_of(reading, genuine=read.genuine, names_fault=criterion.polarity is Polarity.AVOID),
                    none_reason=reading.none_reason,
                    evidence=reading.evidence,
                )
                for criterion, reading in zip(rubric.criteria, read.criteria, strict=True)
            ),
            judge=self.name,
            prompt_sha256="",
            attempts=1,
            latency_ms=(self.clock() - started_s) * 1000,
        )

    async def _ask(self, context: Transcript, reply: str, *, rubric: Rubric) -> JudgeReading:
        texts = tuple(criterion.text for criterion in rubric.criteria)
        reading: JudgeReading = await self.client.judge(
            context_text(context), reply, criteria=texts, wants_evidence=self.wants_evidence
        )
        if reading.version != self.name:
            reason = f"it serves {reading.version}, not {self.name}"
            raise EncoderUnavailable(base_url=self.client.base_url, reason=reason)
        return reading


def _why_not(reply: str) -> str | None:
    """Why a reply is not even sent; None where it is."""
    if not reply.strip():
        return NONE_EMPTY_REPLY
    return NONE_TOO_LONG if len(reply) > REPLY_CHARACTERS_MAX else None


def _unread(rubric: Rubric, reason: str) -> JudgeReading:
    nothing = (CriterionReading(expected=None, none_reason=reason),) * len(rubric.criteria)
    return JudgeReading(version="", criteria=nothing, mechanisms=(), genuine=None)
