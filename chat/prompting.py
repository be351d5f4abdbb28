"""From a conversation to the exact prompt: system text, first visitor turn, newest turns within the token budget.

Pure: rows come in as `Said`, token counts through a function. The prompt of a stored reply can be rebuilt from its
row: `context_from_seq`, `context_to_seq` and `prompt_version` say what went in, `prompt_sha256` proves it.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rubric import Role, Transcript, Utterance

TOKENS_PER_UTTERANCE = 8  # the chat template's own marks around each utterance, rounded up
_PROMPT_FILE = Path(__file__).parent / "data" / "system_prompt.md"

CountTokens = Callable[[str], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """One message of the context. `position` orders the conversation: a reply stands at its visitor message."""

    seq: int
    position: int
    role: Role
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """What is sent to the model, and how to find it again."""

    transcript: Transcript
    context_from_seq: int
    version: str

    @property
    def sha256(self) -> str:
        return self.transcript.sha256


@cache
def default_system_prompt() -> str:
    """The product's own system text (`chat/data/system_prompt.md`); a site may replace it."""
    return _PROMPT_FILE.read_text().strip()


def prompt_version(system: str) -> str:
    """Name of a system text: `prompt-<hash12>`."""
    return f"prompt-{hashlib.sha256(system.encode()).hexdigest()[:12]}"


def estimate_tokens(text: str) -> int:
    """Upper estimate without a tokenizer: three UTF-8 bytes a token (English has about four)."""
    return len(text.encode()) // 3 + 1


def order_context(said: Sequence[Said]) -> list[Said]:
    """By position, the visitor before the replies of the turn, then by `seq`."""
    return sorted(said, key=lambda one: (one.position, one.role is not Role.USER, one.seq))


def build_prompt(said: Sequence[Said], *, system: str, budget_tokens: int, count: CountTokens) -> Prompt:
    """The prompt for the next reply: `system`, the first visitor turn, and the newest turns within the budget.

    The budget counts everything but the system text. The newest visitor message always goes in, cut at its beginning
    if it alone is over the budget; the first turn is left out where it would take more than a third, or the room that
    the newest message needs. Neighbouring utterances of one role are joined, since templates demand alternation.
    """
    ordered = [one for one in order_context(said) if one.text]
    if not ordered:
        raise ValueError("There is nothing to answer: no message has text.")
    costs = [count(one.text) + TOKENS_PER_UTTERANCE for one in ordered]
    first = next((index for index, one in enumerate(ordered) if one.role is Role.USER), 0)
    keeps_first = costs[first] <= budget_tokens // 3 and costs[first] + costs[-1] <= budget_tokens
    left = budget_tokens - (costs[first] if keeps_first else 0)
    start = len(ordered)
    while start > 0 and costs[start - 1] <= left:
        start -= 1
        left -= costs[start]
    kept = ordered[start:] or [_cut(ordered[-1], budget_tokens=budget_tokens, count=count)]
    if start > first and keeps_first:
        kept = [ordered[first], *kept]
    utterances = (Utterance(Role.SYSTEM, system), *(Utterance(one.role, one.text) for one in kept))
    return Prompt(
        transcript=Transcript(utterances).merged(),
        context_from_seq=(ordered[start:] or ordered[-1:])[0].seq,
        version=prompt_version(system),
    )


def _cut(one: Said, *, budget_tokens: int, count: CountTokens) -> Said:
    """The newest end of a message that alone is over the budget: what was said last matters most."""
    text = one.text
    while len(text) > 1 and count(text) + TOKENS_PER_UTTERANCE > budget_tokens:
        share = budget_tokens / (count(text) + TOKENS_PER_UTTERANCE)
        text = text[-max(1, int(len(text) * min(share, 0.95))) :]
    return Said(seq=one.seq, position=one.position, role=one.role, text=text)


def context_transcript(said: Sequence[Said]) -> Transcript:
    """The context of a rubric: the whole conversation up to the visitor's newest message, no system text (rule 1)."""
    return Transcript(tuple(Utterance(one.role, one.text) for one in order_context(said) if one.text)).merged()
