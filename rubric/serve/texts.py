"""How a text becomes what the encoder reads: cleaned, tokenised, cut into overlapping windows.

The recipe `screen` trains on exactly these windows and the encoder process reads them, so both call this file.
Nothing here is logged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer

CONTENT_TOKENS: Final = 94  # of a screening window, besides its first and last marker: 96 in all
OVERLAP_TOKENS: Final = 32  # a sentence cut by one window's end is whole in the next
EMBED_CONTENT_TOKENS: Final = 254  # what the encoder was trained with

_INVISIBLE: Final = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff\x00-\x08\x0b-\x1f]")
_LONG_RUN: Final = re.compile(r"(.)\1{2,}", re.DOTALL)
_SPELLED_OUT: Final = re.compile(r"(?<![^\W_])(?:[^\W\d_][ .\-_*]){3,}[^\W\d_](?![^\W_])")
_MASKED_WORD: Final = re.compile(
    r"(?<![\w@])(?=[\w@$!*]*[a-z])[a-z0-9@$!*]*[a-z][0-9@$!*]+[a-z][a-z0-9@$!*]*", re.IGNORECASE
)
_LETTER_OF: Final = str.maketrans(
    {"0": "o", "1": "i", "3": "e", "4": "a", "5": "s", "7": "t", "@": "a", "$": "s", "!": "i"}
)
_ORDINAL: Final = re.compile(r"^\d+[a-z]{1,2}$|^[a-z]+\d+$|^\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Window:
    """Token ids with their first and last marker, what one run of the network reads, and the piece of text it is."""

    ids: tuple[int, ...]
    text: str = ""

    @property
    def tokens(self) -> int:
        """What a round counts it as."""
        return len(self.ids)


def clean(text: str) -> str:
    """The text without the tricks that hide words: look-alike forms, invisible marks, l3tters, s p a c e s, runs.

    `"I want to d.i.e. s0000 much"` -> `"I want to die. soo much"`. Lone surrogates become U+FFFD.
    """
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    visible = _INVISIBLE.sub("", unicodedata.normalize("NFKC", whole))
    joined = _SPELLED_OUT.sub(lambda found: re.sub(r"[ .\-_*]", "", found.group()), visible)
    unmasked = _MASKED_WORD.sub(_unmask, joined)
    return " ".join(_LONG_RUN.sub(r"\1\1", unmasked).split())


def _unmask(found: re.Match[str]) -> str:
    word = found.group()
    return word if _ORDINAL.match(word) else word.translate(_LETTER_OF)


def open_tokenizer(path: Path) -> Tokenizer:
    """The word-piece tokenizer without truncation or padding: windows are ours to cut."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def screening_windows(text: str, tokenizer: Tokenizer) -> tuple[Window, ...]:
    """Cleaned, then windows of at most 96 tokens that overlap by 32; a short text is one window."""
    return _windows(clean(text), tokenizer, content=CONTENT_TOKENS, overlap=OVERLAP_TOKENS)


def embedding_windows(text: str, tokenizer: Tokenizer) -> tuple[Window, ...]:
    """Windows of at most 256 tokens side by side; the text is not cleaned, since embeddings describe it as it is."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _windows(whole, tokenizer, content=EMBED_CONTENT_TOKENS, overlap=0)


def _windows(text: str, tokenizer: Tokenizer, *, content: int, overlap: int) -> tuple[Window, ...]:
    encoded = tokenizer.encode(text)
    first, inner, last = encoded.ids[0], encoded.ids[1:-1], encoded.ids[-1]
    spans = encoded.offsets[1:-1]
    starts = range(0, max(1, len(inner) - overlap), content - overlap)
    return tuple(
        Window((first, *inner[start : start + content], last), _piece(text, spans[start : start + content]))
        for start in starts
    )


def _piece(text: str, spans: Sequence[tuple[int, int]]) -> str:
    return text[spans[0][0] : spans[-1][1]] if spans else ""
