"""The hold-back before the output screen: which part of a running reply may be screened and released next.

A span ends at a sentence end, after 24 tokens or after 400 ms, whichever comes first (rule 7). Pure: `reply` hands in
the clock. Offsets count code points.
"""

import re
from dataclasses import dataclass, field

SPAN_TOKENS = 24
SPAN_SECONDS = 0.4
CONTEXT_CHARS = 400  # of what was shown before a span, for the screen
SPANS_AT_ONCE = 4  # read in one request; more would keep the first of them waiting for the last
_SENTENCE_END = re.compile(r"[.!?…](?:[\"'”’)\]]*)(?=\s|$)|\n")


@dataclass(slots=True)
class SpanBuffer:
    """Text that came from the engine: released, waiting for the screen in finished spans, held until a span ends.

    No step reads or copies more than what is new: a reply costs as much as it is long.
    """

    waiting: list[str] = field(default_factory=list)  # oldest first
    held: str = ""
    held_tokens: int = 0
    held_since_s: float | None = field(default=None)
    # So much of the held text was searched for sentence ends; none begins in it, whatever follows.
    _searched_chars: int = field(default=0, init=False)
    _shown: list[str] = field(default_factory=list, init=False)  # joined when somebody asks for the whole
    _shown_chars: int = field(default=0, init=False)
    _shown_last: str = field(default="", init=False)

    @property
    def released(self) -> str:
        """All that the screen passed so far."""
        if len(self._shown) > 1:
            self._shown = ["".join(self._shown)]
        return self._shown[0] if self._shown else ""

    def add(self, text: str, *, tokens: int, now_s: float) -> None:
        """Take a piece from the engine, without what nobody sees: white space before the first word, and NUL.

        PostgreSQL keeps no NUL; a reply that holds one could never be finished (B10).
        """
        text = text.replace("\x00", "")
        if not (self._shown or self.waiting or self.held):
            text = text.lstrip()
        if not text:
            return
        if not self.held:
            self.held_since_s = now_s
        self.held += text
        self.held_tokens += max(tokens, 1)

    def due(self, *, now_s: float) -> str:
        """The span to screen now, or "" where it is too early."""
        if not self.held or self.held_since_s is None:
            return ""
        if self.held_tokens >= SPAN_TOKENS or now_s - self.held_since_s >= SPAN_SECONDS:
            return self.held
        ends = list(_SENTENCE_END.finditer(self.held, self._searched_chars))
        if ends:
            return self.held[: ends[-1].end()]
        self._searched_chars = len(self.held)
        return ""

    def wait_s(self, *, now_s: float) -> float | None:
        """How long until the held text is due by the clock; None where nothing is held."""
        if self.held_since_s is None or not self.held:
            return None
        return max(0.0, self.held_since_s + SPAN_SECONDS - now_s)

    def cut(self, span: str, *, now_s: float) -> None:
        """Let `span`, a beginning of the held text, wait for the screen."""
        if not self.held.startswith(span):
            raise ValueError(f"The span of {len(span)} characters is not what is held ({len(self.held)} characters).")
        self.waiting.append(span)
        self.held = self.held[len(span) :]
        self.held_tokens = self._searched_chars = 0
        self.held_since_s = now_s if self.held else None

    def to_screen(self, *, most: int, context_chars: int = CONTEXT_CHARS) -> list[str]:
        """The texts the screen reads next: up to `most` waiting spans, each with what stands just before it."""
        before, texts = self._shown_last[-context_chars:] if context_chars else "", []
        for span in self.waiting[:most]:
            texts.append(before + span)
            before = texts[-1][-context_chars:] if context_chars else ""
        return texts

    def release(self) -> tuple[int, str]:
        """The screen passed the span that waits first. Returns the offset at which it is shown, and the span."""
        offset, span = self._shown_chars, self.waiting.pop(0)
        self._shown.append(span)
        self._shown_chars += len(span)
        self._shown_last = (self._shown_last + span)[-CONTEXT_CHARS:]
        return offset, span
