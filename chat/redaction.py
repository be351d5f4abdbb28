"""What a person may be found by is taken out of a text: first version, by rules. Pure.

E-mail addresses, links, phone numbers, long digit ids, and names that somebody introduces ("my name is ..."). Each
find becomes a mark such as `[email_1]`; the same value gets the same mark everywhere in the text, and in all texts that
share a `Ledger`. Spans count Unicode code points. `REDACTOR_VERSION` is stored with each redacted text; a later version
replaces this one and its recall is measured. Called by the transcript page (staff see redacted text) and the export.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

REDACTOR_VERSION = "rules-1"

_LINK = re.compile(r"(?:https?://|www\.)[^\s<>\"')\]]+", re.IGNORECASE)
_EMAIL = re.compile(r"[\w.+%-]{1,64}@(?:[\w-]{1,63}\.)+\w{2,24}")
_DATE = re.compile(r"(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{2,4})")
_PHONE = re.compile(r"(?<![\w+])(?:\+|\(\+?)?\d(?:[ ()./-]{0,2}\d){7,14}(?!\w)")
_NUMBER = re.compile(r"(?<!\w)[A-Z]{0,3}\d{6,}[A-Z]{0,2}(?!\w)")
_NAME = r"[^\W\d_a-zß-öø-ÿ][^\W\d_]+(?:[-'’][^\W\d_]+)?"
_INTRODUCED = re.compile(
    r"\b(?:(?:[Mm]y (?:full |first |last |real )?name(?:['’]s| is)|(?:[Pp]lease )?[Cc]all me|[Tt]his is)\s+"
    r"|[Ii](?:['’]m| am)\s+)"
    rf"(?P<name>{_NAME}(?:\s+{_NAME}){{0,2}})"
)
# Capitals that follow "I'm" without being names; titles and nationalities are left to the next version.
_NO_NAMES = frozenset(
    {
        "A",
        "Afraid",
        "Alone",
        "Also",
        "Always",
        "An",
        "Angry",
        "At",
        "Back",
        "Bad",
        "Done",
        "English",
        "Feeling",
        "Fine",
        "Friday",
        "Glad",
        "God",
        "Going",
        "Good",
        "Happy",
        "He",
        "Here",
        "How",
        "I",
        "In",
        "It",
        "Just",
        "Lonely",
        "Lost",
        "Monday",
        "My",
        "Never",
        "Not",
        "Now",
        "OK",
        "Okay",
        "On",
        "Only",
        "Really",
        "Sad",
        "Saturday",
        "Scared",
        "She",
        "So",
        "Sorry",
        "Still",
        "Stuck",
        "Sunday",
        "Sure",
        "That",
        "The",
        "They",
        "This",
        "Thursday",
        "Tired",
        "Too",
        "Trying",
        "Tuesday",
        "Very",
        "We",
        "Wednesday",
        "What",
        "When",
        "Where",
        "Why",
        "Worried",
        "You",
        "Your",
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RedactedSpan:
    """One find: `[start, end)` in the original text, what kind it is, and the mark that stands there now."""

    start: int
    end: int
    kind: str  # link, email, phone, number, name
    mark: str


@dataclass(slots=True)
class Ledger:
    """Which mark stands for which value; share one over a conversation, in order, to keep its marks the same.

    A name that was introduced in one text is a name in every later text too.
    """

    names: set[str] = field(default_factory=set)
    marks: dict[tuple[str, str], str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def mark_for(self, kind: str, value: str) -> str:
        key = (kind, re.sub(r"[\s()./-]", "", value).casefold())
        if key not in self.marks:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.marks[key] = f"[{kind}_{self.counts[kind]}]"
        return self.marks[key]


@dataclass(frozen=True, kw_only=True, slots=True)
class Redacted:
    """A text without what a person may be found by."""

    text: str
    spans: tuple[RedactedSpan, ...]
    version: str = REDACTOR_VERSION

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where `[start, end)` of the original lies in the redacted text; a touched mark is taken in whole."""
        return place_span([(span.start, span.end, len(span.mark)) for span in self.spans], start, end)


def redact(text: str, *, ledger: Ledger | None = None) -> Redacted:
    """The text with marks instead of finds. Deterministic; a text without finds comes back unchanged."""
    marks = ledger or Ledger()
    finds = sorted(_without_overlaps(_find(text, names=marks.names)))
    spans = tuple(
        RedactedSpan(start=start, end=end, kind=kind, mark=marks.mark_for(kind, text[start:end]))
        for start, end, kind in finds
    )
    parts, position = [], 0
    for span in spans:
        parts += [text[position : span.start], span.mark]
        position = span.end
    return Redacted(text="".join([*parts, text[position:]]), spans=spans)


def place_span(marks: list[tuple[int, int, int]], start: int, end: int) -> tuple[int, int]:
    """`[start, end)` moved past marks given as (start, end, length of the mark), in order of start."""
    shift_start = shift_end = 0
    for mark_start, mark_end, length in marks:
        change = length - (mark_end - mark_start)
        if mark_end <= start:
            shift_start += change
        elif mark_start < start:
            shift_start += mark_start - start
        if mark_end <= end:
            shift_end += change
        elif mark_start < end:
            shift_end += mark_start + length - end
    return start + shift_start, end + shift_end


def _find(text: str, *, names: set[str]) -> Iterator[tuple[int, int, str]]:
    """Every find, the more certain kinds first."""
    for found in _LINK.finditer(text):
        yield (*found.span(), "link")
    for found in _EMAIL.finditer(text):
        yield (*found.span(), "email")
    for found in _PHONE.finditer(text):
        if not _DATE.fullmatch(found.group()):
            yield (*found.span(), "phone")
    for found in _NUMBER.finditer(text):
        yield (*found.span(), "number")
    yield from _find_names(text, names=names)


def _find_names(text: str, *, names: set[str]) -> Iterator[tuple[int, int, str]]:
    for found in _INTRODUCED.finditer(text):
        words = []
        for word in found.group("name").split():
            if word in _NO_NAMES:
                break
            words.append(word)
        names.update(words)
    for word in sorted(names, key=len, reverse=True):  # a name that was introduced is a name wherever it stands
        for found in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text):
            yield (*found.span(), "name")


def _without_overlaps(finds: Iterator[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    kept: list[tuple[int, int, str]] = []
    for start, end, kind in finds:
        if all(end <= other_start or start >= other_end for other_start, other_end, _ in kept):
            kept.append((start, end, kind))
    return kept
