"""Answers of a model, kept so that the same question is not asked of it twice.

`ModelJudge` and `PairJudge` look here before they ask. The key names the model, the prompt file and everything that was
sent: a changed prompt, criterion, reply or seed is another question. Only whole answers are kept (`finish_reason`
"stop"). Names of versions are content hashes, so a name always means the same weights; where an operator's own model
changes behind its name, a new cache has to be made.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol

from rubric.dialogue import Transcript
from rubric.engine import Completion, Endpoint, Sampling
from rubric.json_types import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerKey:
    """What an answer depends on."""

    model: str  # address and served name
    prompt_sha256: str  # of the prompt file
    input_sha256: str  # of the filled prompt, the schema and the sampling


class AnswerCache(Protocol):
    """Keeps answers, perhaps not for ever; safe to share between judges of one event loop."""

    def find(self, key: AnswerKey) -> Completion | None:
        """The answer that was kept, None where there is none."""

    def keep(self, key: AnswerKey, answer: Completion) -> None:
        """Keep an answer in place of an older one."""


class RecentAnswers:
    """The newest answers of one process, in memory: nothing that people wrote reaches a disk."""

    def __init__(self, *, most: int = 1_024) -> None:
        self.most = most
        self.found = 0
        self.missed = 0
        self._answers: OrderedDict[AnswerKey, Completion] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def find(self, key: AnswerKey) -> Completion | None:
        """The answer, which now counts as the newest."""
        answer = self._answers.get(key)
        if answer is None:
            self.missed += 1
            return None
        self.found += 1
        self._answers.move_to_end(key)
        return answer

    def keep(self, key: AnswerKey, answer: Completion) -> None:
        """Keep it; the one that was longest unused goes where there are too many."""
        self._answers[key] = answer
        self._answers.move_to_end(key)
        while len(self._answers) > self.most:
            self._answers.popitem(last=False)


def key_of(
    endpoint: Endpoint, prompt: Transcript, *, prompt_sha256: str, sampling: Sampling, schema: JsonObject
) -> AnswerKey:
    """The key of one question. The schema counts whether the engine can hold an answer to it or not."""
    sent = json.dumps([prompt.sha256, repr(sampling), schema], sort_keys=True, ensure_ascii=True)
    return AnswerKey(
        model=f"{endpoint.base_url} {endpoint.model}",
        prompt_sha256=prompt_sha256,
        input_sha256=hashlib.sha256(sent.encode("ascii")).hexdigest(),
    )
