"""A talk as plain text for a prompt, its newest part within a budget of tokens.

The generator and the judge show it inside a fence. Tokens are estimated, since `rubric` knows no tokenizer: the
estimate is a little high for English and, more so, for other scripts, so that a prompt fits where it should.
"""

from __future__ import annotations

import re

from rubric.dialogue import Role, Transcript, Utterance
from rubric.errors import ContextInvalid

LEFT_OUT = "[...]"
SPEAKERS = {Role.USER: "Visitor", Role.ASSISTANT: "Supporter"}
_LETTERS_PER_TOKEN = 4
_TOKENS = re.compile(r"[A-Za-z]+|[^\sA-Za-z]|\n")


def estimate_tokens(text: str) -> int:
    """About how many tokens a byte-level tokenizer makes of it.

    A word counts one per four letters begun, a digit, sign or line end one, any other character one per byte.
    """
    return sum(_estimate(found.group()) for found in _TOKENS.finditer(text))


def said_before_reply(context: Transcript) -> list[Utterance]:
    """What visitor and supporter said, neighbours merged. Raises ContextInvalid unless the visitor speaks last."""
    said = [utterance for utterance in context.merged() if utterance.role is not Role.SYSTEM]
    if not said or said[-1].role is not Role.USER or not said[-1].text.strip():
        raise ContextInvalid(utterances=len(context))
    return said


def render_dialogue(context: Transcript, *, max_tokens: int) -> str:
    """The talk as lines "Visitor: ..." and "Supporter: ...", newest kept, within about `max_tokens` tokens.

    System texts are left out: they are the product's own, and may hold an earlier rubric. Lines inside an utterance are
    indented, so that nobody speaks in the other's name. The newest utterance always stays, its middle cut if need be.
    Raises ContextInvalid unless the visitor speaks last.
    """
    said = said_before_reply(context)
    lines: list[str] = []
    left = max_tokens
    for utterance in reversed(said):
        line = _speaker_line(utterance, max_tokens=max_tokens)
        if lines and estimate_tokens(line) > left:
            lines.append(LEFT_OUT)
            break
        lines.append(line)
        left -= estimate_tokens(line) + 1
    return "\n".join(reversed(lines))


def shorten_middle(text: str, *, max_tokens: int) -> str:
    """Keep both ends of a long text, where the point of it usually stands."""
    if estimate_tokens(text) <= max_tokens:
        return text
    low, high = 1, len(text) // 2
    while low < high:  # the largest half that fits
        half = (low + high + 1) // 2
        low, high = (half, high) if estimate_tokens(_both_ends(text, half)) <= max_tokens else (low, half - 1)
    return _both_ends(text, low)


def _both_ends(text: str, half: int) -> str:
    return f"{text[:half]} {LEFT_OUT} {text[-half:]}"


def _estimate(piece: str) -> int:
    if piece.isascii():
        return -(-len(piece) // _LETTERS_PER_TOKEN)
    return len(piece.encode("utf-8", "replace"))


def _speaker_line(utterance: Utterance, *, max_tokens: int) -> str:
    text = shorten_middle(utterance.text.strip(), max_tokens=max_tokens)
    return f"{SPEAKERS[utterance.role]}: " + "\n  ".join(text.splitlines())
