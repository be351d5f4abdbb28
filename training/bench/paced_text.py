"""What the paced engine says, token by token: the engine writes it, the measurements know it and check what arrived."""

from __future__ import annotations

TOKEN_CHARS = 5
SENTENCE_TOKENS = 20
# Quiet words: the real encoder reads them too, and must find nothing in them.
WORDS = (
    *("that", "walk", "with", "your", "good", "tree", "lake"),
    *("bird", "warm", "calm", "soft", "rain", "came", "over"),
    *("hill", "then", "home", "look", "wide"),
)


def token_text(index: int) -> str:
    """Five characters: a space and a word, in no order that repeats soon; at a sentence's end ` far.`."""
    if index % SENTENCE_TOKENS == SENTENCE_TOKENS - 1:
        return " far."
    return f" {WORDS[(index * 7 + index // 13) % len(WORDS)]}"


def reply_text(tokens: int) -> str:
    """What a page shows of a whole reply: white space before the first word is nobody's."""
    return "".join(map(token_text, range(tokens))).lstrip()
