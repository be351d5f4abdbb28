"""Every named error that leaves `rubric`, with its facts as attributes; doors turn them into codes and statuses.

No message here carries what a person or a model wrote: ids, lengths, statuses and stages only.
"""

from __future__ import annotations

from typing import ClassVar, Literal

TimeoutStage = Literal["connect", "first_token", "between_tokens", "whole"]


class RubricError(Exception):
    """Base of every error that `rubric` raises on purpose."""


# ---- the engine (a model server reached over HTTP) ----------------------------------------------------------------


class EngineError(RubricError):
    """A model server did not answer as asked; `code` goes onto the wire, `is_retryable` says whether again may help."""

    code: str = "engine_error"
    is_retryable: bool = True


class EngineUnreachable(EngineError):
    """No connection came about: refused, no route, or an address that is none."""

    code = "engine_unreachable"

    def __init__(self, *, base_url: str, reason: str) -> None:
        super().__init__(f"No connection to the engine at {base_url} ({reason}).")
        self.base_url = base_url
        self.reason = reason


class EngineTimeout(EngineError):
    """One of the four deadlines passed; `stage` says which."""

    def __init__(self, *, stage: TimeoutStage, limit_s: float) -> None:
        super().__init__(f"The engine passed the {stage} deadline of {limit_s:g} s.")
        self.stage: TimeoutStage = stage
        self.limit_s = limit_s
        self.code = f"timeout_{stage}"


class EngineRefused(EngineError):
    """The engine answered with a status other than 200; only 429 and 5xx are worth another try."""

    code = "engine_refused"
    RETRYABLE_STATUSES: ClassVar[frozenset[int]] = frozenset({408, 425, 429})

    def __init__(self, *, status: int, detail_chars: int = 0) -> None:
        super().__init__(f"The engine refused with status {status} ({detail_chars} characters of detail).")
        self.status = status
        self.detail_chars = detail_chars
        self.is_retryable = status >= 500 or status in self.RETRYABLE_STATUSES


class EngineBroken(EngineError):
    """The engine died, cut the stream short, or sent what is not a stream of completions."""

    code = "engine_broken"

    def __init__(self, *, reason: str) -> None:
        super().__init__(f"The engine broke off: {reason}.")
        self.reason = reason


# ---- the encoder process (embeddings and the crisis screen) -------------------------------------------------------


class EncoderError(RubricError):
    """The encoder process gave no reading; whoever screens counts that as the highest level."""


class EncoderUnavailable(EncoderError):
    """It refused, died, was full, or sent what is not a reading."""

    def __init__(self, *, base_url: str, reason: str) -> None:
        super().__init__(f"The encoder at {base_url} gave no reading ({reason}).")
        self.base_url = base_url
        self.reason = reason


class EncoderTimeout(EncoderError):
    """It did not answer within the deadline, which grows with the length of what was sent."""

    def __init__(self, *, base_url: str, limit_s: float) -> None:
        super().__init__(f"The encoder at {base_url} passed the deadline of {limit_s:g} s.")
        self.base_url = base_url
        self.limit_s = limit_s


# ---- rubrics and judgements ---------------------------------------------------------------------------------------


class RubricInvalid(RubricError):
    """A rubric breaks rules; `problems` names each by id or place, without its text, fit for a repair prompt."""

    def __init__(self, *, problems: tuple[str, ...]) -> None:
        super().__init__(
            f"The rubric is invalid ({len(problems)} problems; first: {problems[0] if problems else 'none'})."
        )
        self.problems = problems


class ContextInvalid(RubricError):
    """A generator was handed something else than a transcript that ends with the visitor's newest message."""

    def __init__(self, *, utterances: int) -> None:
        super().__init__(f"The context ({utterances} utterances) does not end with a visitor's message.")
        self.utterances = utterances


class JudgeReplyInvalid(RubricError):
    """What the judge wrote holds no levels at all; `reason` says why, and only the length of what it wrote is kept."""

    def __init__(self, *, reason: str, raw_chars: int) -> None:
        super().__init__(f"The judge's answer cannot be read: {reason} ({raw_chars} characters came back).")
        self.reason = reason
        self.raw_chars = raw_chars


class ScoreInvalid(RubricError):
    """A judgement or a score is none: a level that is no number in [0, 1], or a stored form that was damaged."""

    def __init__(self, *, reason: str) -> None:
        super().__init__(f"The score is invalid: {reason}.")
        self.reason = reason


class ScoreMismatch(RubricError):
    """A score holds judgements of criteria that are not in the rubric it is read with."""

    def __init__(self, *, unknown_ids: tuple[str, ...], rubric_sha256: str) -> None:
        super().__init__(f"{len(unknown_ids)} judgements belong to no criterion of rubric {rubric_sha256[:12]}.")
        self.unknown_ids = unknown_ids
        self.rubric_sha256 = rubric_sha256


class BankInvalid(RubricError):
    """A line of the bank of criteria breaks its schema; `reason` names the field and quotes nothing."""

    def __init__(self, *, file: str, line_number: int, reason: str) -> None:
        super().__init__(f"The bank cannot be read: {file}, line {line_number}: {reason}.")
        self.file = file
        self.line_number = line_number
        self.reason = reason


class CueRefused(RubricError):
    """The words meant for the slot of a criterion are missing or not safe; only their length is kept."""

    def __init__(self, *, criterion_id: str, cue_chars: int) -> None:
        super().__init__(f"Criterion {criterion_id} is not used: its slot takes no cue of {cue_chars} characters.")
        self.criterion_id = criterion_id
        self.cue_chars = cue_chars


class EpisodeInvalid(RubricError):
    """A line of an episode file, or a text meant for one, cannot be used; `reason` quotes nothing of it."""

    def __init__(self, *, reason: str) -> None:
        super().__init__(f"The episode is invalid: {reason}.")
        self.reason = reason
