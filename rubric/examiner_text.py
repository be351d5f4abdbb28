"""What the examiner reads off the surface of a reply: words, counts, its tie to the message, signs of being none.

Pure functions from texts to numbers; `rubric.examiner` and the recipe `examiner` call the same ones. Each table names
its columns, so that weights can be read. Texts of any length are taken: only the beginning of a very long one is looked
at, but its length counts in full.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

MOST_CHARS: Final = 12_000  # of a reply, looked at; 1,500 words and more are no reply to a message either way
MOST_EARLIER_CHARS: Final = 6_000  # of the talk before the newest message, its end

_TOKEN: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*|[?!]")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
_CLOSED: Final = re.compile(r"[.?!][\"'\u201d\u2019)]?\s*$")
_MARKS: Final = frozenset("?!")

_CARE: Final = re.compile(
    r"\b(sorry|hard|tough|sad|hurts?|painful|awful|difficult|feel|glad|proud|lonely|scared|afraid|tired|care|hope"
    r"|understandable|heavy|unfair|brave)\b",
    re.IGNORECASE,
)
_SHARED: Final = re.compile(
    r"\b(i (?:have been|went through|had|know|used to|felt|also)|me too|same (?:here|thing)|my own)\b", re.IGNORECASE
)
_QUESTION_WORD: Final = re.compile(r"\b(what|how|why|when|where|who|which)\b", re.IGNORECASE)
_HEDGES: Final = frozenset({"perhaps", "could", "might", "should", "must"})
_PRAISE: Final = re.compile(
    r"\b(amazing\w*|wonderful\w*|incredib\w+|brillian\w+|awesome|fantastic\w*|perfect\w*|beautiful\w*|inspir\w+|admir\w+"
    r"|impress\w+|remarkabl\w+|extraordinar\w+|gifted|genius|unique|talent\w*|clever\w*|smart\w*|wise|great\w*"
    r"|excellent\w*|exceptional\w*|outstanding|superb|best|favou?rite|love|stunning|marvell?ous|lovely|delight\w*"
    r"|charming|kindest|finest|magnificent|thoughtful)\b",
    re.IGNORECASE,
)
_ABOUT_REPLIES: Final = re.compile(
    r"\b(repl(?:y|ies|ied)|respon[sd]\w*|criteri\w+|rubric\w*|scor\w+|grad(?:e|es|ed|er|ers|ing)|levels?|rating|rated?"
    r"|rank\w*|evaluat\w+|judg\w+|instruct\w+|prompts?|system|assistant|model|output|empath\w+|compassion\w*|validat\w+"
    r"|acknowledg\w+|reflect\w*|supportive|ignore|disregard|override|previous|maximum|marks?|verified|requirement\w*"
    r"|quality|visitor|user|open question|feelings?|emotions?)\b",
    re.IGNORECASE,
)
_FUNCTION_WORDS: Final = frozenset(
    (
        *("the", "a", "an", "and", "or", "of", "to", "in", "on", "at", "for", "with", "that", "this", "it", "is"),
        *("was", "are", "were", "be", "been", "i", "you", "he", "she", "they", "we", "my", "your", "his", "her"),
        *("their", "our", "me", "him", "them", "us", "not", "no", "do", "did", "does", "have", "has", "had", "but"),
        *("so", "as", "if", "then", "there", "what", "how", "who", "which", "when", "where", "would", "could", "can"),
        *("will", "just", "one", "all", "out", "up", "about", "from", "by"),
    )
)
_ME: Final = frozenset({"i", "i'm", "i've", "me", "my", "i'd", "i'll"})
_YOU: Final = frozenset({"you", "your", "you're", "you've", "you'd", "you'll", "yourself"})
_PLAIN_SIGNS: Final = frozenset(".,?!'\u2019\u201c\u201d\"-;:")
_PRINT_SIGNS: Final = frozenset("\u2019\u201c\u201d\u2018\u2013\u2014\u2026")

SURFACE: Final = ("questions", "shouts", "log_words", "ends_asking", "care", "shared", "question_words", "i", "you")
TIE: Final = (
    *("shared_with_message", "shared_with_earlier", "sentences", "commas", "longest", "quotes", "opens_on_message"),
    *("sentences_with_you", "sentences_asking", "hedges"),
)
VALIDITY: Final = (
    *("log_words", "unknown", "repeated_runs", "repeated_words", "copied", "odd_signs", "digits", "function_words"),
    *("capitals", "word_length", "you", "i", "is_closed", "overlap", "colons", "not_latin", "praise", "about_replies"),
    *("asking", "shouting"),
)


def words(text: str) -> list[str]:
    """Words in small letters; "?" and "!" are words. `"Don’t! Why?"` -> `["don't", "!", "why", "?"]`."""
    return [found.replace("\u2019", "'") for found in _TOKEN.findall(text.lower())]


def surface_counts(reply: str) -> Numbers:
    """[len(SURFACE)]: the counts that tell mechanisms apart beside the words."""
    read = words(reply[:MOST_CHARS])
    counts = (
        reply.count("?"),
        reply.count("!"),
        np.log1p(len(read)),
        reply.rstrip().endswith("?"),
        bool(_CARE.search(reply[:MOST_CHARS])),
        bool(_SHARED.search(reply[:MOST_CHARS])),
        len(_QUESTION_WORD.findall(reply[:MOST_CHARS])),
        sum(word == "i" or word.startswith("i'") for word in read),
        sum(word in {"you", "your", "you're", "you've"} for word in read),
    )
    return np.array(counts, dtype=np.float64)


def tie_counts(reply: str, *, message: str, earlier: str) -> Numbers:
    """[len(TIE)]: how the reply takes up the message and what was said before it, and how it is built."""
    shown = reply[:MOST_CHARS]
    content = {word for word in words(shown) if word not in _FUNCTION_WORDS}
    in_message, in_earlier = set(words(message)), set(words(earlier[-MOST_EARLIER_CHARS:]))
    sentences = sentences_of(shown)
    first = set(words(sentences[0]))
    counts = (
        len(content & in_message) / max(1, len(content)),
        len(content & (in_earlier - in_message)) / max(1, len(content)),
        len(sentences),
        shown.count(",") / len(sentences),
        np.log1p(max(map(len, sentences))),
        '"' in shown,
        len((first & in_message) - _FUNCTION_WORDS) / max(1, len(first)),
        sum("you" in words(sentence) for sentence in sentences) / len(sentences),
        sum(sentence.endswith("?") for sentence in sentences) / len(sentences),
        sum(word in _HEDGES for word in words(shown)),
    )
    return np.array(counts, dtype=np.float64)


def validity_counts(reply: str, *, message: str, earlier: str, known: Set[str]) -> Numbers:
    """[len(VALIDITY)]: what tells a reply from text that is none; `known` are the words of everyday English."""
    shown = reply[:MOST_CHARS]
    read = [word for word in words(shown) if word not in _MARKS]
    count, chars = max(1, len(read)), max(1, len(shown.strip()))
    said = words(f"{message} . {earlier[-MOST_EARLIER_CHARS:]}")
    runs, said_runs = _runs(read), set(_runs(said))
    content = {word for word in read if word not in _FUNCTION_WORDS}
    sentences = sentences_of(shown)
    counts = (
        np.log1p(len(read) * len(reply) / max(1, len(shown))),
        sum(word not in known for word in read) / count if read else 1.0,
        1 - len(set(runs)) / len(runs) if runs else 0.0,
        1 - len(set(read)) / len(read) if read else 0.0,
        sum(run in said_runs for run in runs) / len(runs) if runs else 0.0,
        sum(not (char.isalnum() or char.isspace() or char in _PLAIN_SIGNS) for char in shown) / chars,
        sum(char.isdigit() for char in shown) / chars,
        sum(word in _FUNCTION_WORDS for word in read) / count,
        sum(char.isupper() for char in shown) / chars,
        sum(map(len, read)) / count,
        sum(word in _YOU for word in read) / count,
        sum(word in _ME for word in read) / count,
        bool(_CLOSED.search(reply[-8:])),
        len(content & set(words(message))) / max(1, len(content)),
        shown.count(":") / max(1.0, count / 20),
        sum(not char.isascii() and char not in _PRINT_SIGNS for char in shown) / chars,
        np.sqrt(len(_PRAISE.findall(shown)) / count),
        np.sqrt(len(_ABOUT_REPLIES.findall(shown)) / count),
        shown.count("?") / len(sentences),
        shown.count("!") / len(sentences),
    )
    return np.array(counts, dtype=np.float64)


def sentences_of(text: str) -> list[str]:
    """The sentences, at least one, which may be ""."""
    return [part for part in _SENTENCE_END.split(text) if part.strip()] or [""]


def _runs(read: Sequence[str]) -> list[tuple[str, ...]]:
    """All runs of three words."""
    return [tuple(read[at : at + 3]) for at in range(len(read) - 2)]
