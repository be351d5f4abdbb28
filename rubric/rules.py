"""The rules of content for criteria: what no rubric may hold, what is doubtful, what is said twice, what was copied.

`parsing` applies them to every rubric that comes in as text (docs/rubric.md lists them); training data also
asks `leaked_criteria`. Messages name criteria by id and never repeat their text, which may hold a visitor's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from rubric.criteria import Criterion, Dimension, Polarity

NEAR_DUPLICATE_JACCARD = 0.8
LEAK_NGRAM = 12  # neighbouring words that count as copied

# A character of a script without spaces is a word of its own, else two sentences would share all words or none.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")

_NEGATION = re.compile(
    r"\b(?:not|never|no|without|avoids?|avoiding|refrains?|instead of|rather than|stops? short of|\w+n[’']t)\b"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ForbiddenKind:
    """One thing that no criterion may reward; `says` completes "the criterion rewards ...".

    `pattern` names the thing itself, `opposite` its contrary: a criterion also rewards length where it avoids brevity.
    """

    name: str
    says: str
    pattern: re.Pattern[str]
    opposite: re.Pattern[str] | None = None


_WHO = r"(?:the |this |our )?(?:user|visitor|person|them|him|her|client|seeker)"
_SELF = r"(?:it|itself|the reply|the response|the answer|the assistant|the supporter|the model|i|he|she|they)"
_MANY = r"(?:\d{2,}|[2-9]|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|fifty|a hundred)"
_VIRTUE = (
    r"(?:empath\w*|compassion\w*|caring|supportive|understanding|helpful|kind|warm|sincere|non-?judg\w+|here to help|"
    r"good|safe|professional|trained)"
)

FORBIDDEN: tuple[ForbiddenKind, ...] = (
    ForbiddenKind(
        name="self_description",
        says="a reply that describes or praises itself",
        pattern=re.compile(
            rf"\b(?:says?|states?|claims?|declares?|mentions?|announces?|emphasi[sz]es?|stresses|assures? {_WHO})"
            rf"(?: that)? (?:{_SELF}(?:[’']s| is| are| am| was)|to be|being) (?:\w+ ){{0,2}}{_VIRTUE}"
            rf"|\b(?:describes?|calls?|presents?|labels?|praises?|introduces?) (?:itself|its own)\b"
            r"|\b(?:claims?|says?|states?|declares?) (?:that )?(?:\w+ ){0,2}(?:meets?|fulfil\w*|follows?|satisf\w+) "
            r"(?:\w+ ){0,2}(?:criteria|criterion|rubric|guide|checks?|requirements?)\b"
        ),
    ),
    ForbiddenKind(
        name="length",
        says="length",
        pattern=re.compile(
            r"\b(?:long|longer|lengthy|wordy|verbose) (?:reply|response|answer|message|text|sentence|paragraph)"
            r"|\b(?:reply|response|answer|message|it) is (?:\w+ )?(?:long|longer|lengthy|verbose)\b"
            r"|^(?:is|be|writes?|runs?) (?:\w+ )?(?:long|lengthy|at length)\b"
            rf"|\b(?:at least|more than|over|minimum of) {_MANY} (?:words?|sentences?|paragraphs?|characters?|lines?)\b"
            r"|\bword count\b|\b(?:several|many|multiple) (?:paragraphs|sentences)\b"
        ),
        opposite=re.compile(
            r"^(?:is|be|being|writes?|keeps? it) (?:\w+ )?(?:short|brief|concise|terse)\b"
            r"|\btoo (?:short|brief|concise|terse)\b"
            r"|\b(?:reply|response|answer|message|it) is (?:\w+ )?(?:short|brief|concise|terse)\b"
            r"|\b(?:short|brief|concise|terse) (?:reply|response|answer|message|text)\b"
            rf"|\b(?:fewer|less) than {_MANY} (?:words?|sentences?|paragraphs?|characters?|lines?)\b"
        ),
    ),
    ForbiddenKind(
        name="flattery",
        says="flattery",
        pattern=re.compile(
            rf"\bflatter(?:s|y|ing|ed)?\b|^compliments?\b|\bcompliments? {_WHO}\b"
            r"|\b(?:gives?|pays?|offers?|makes?) (?:\w+ ){0,2}compliments?\b"
            r"|\b(?:lavish|effusive|excessive|heavy) (?:praise|admiration)\b"
            r"|\b(?:tells?|assures?|reminds?) (?:\w+ ){0,2}(?:how|that) (?:\w+ ){0,3}"
            r"(?:amazing|awesome|wonderful|special|brilliant|incredible|perfect|fantastic|beautiful|the best)\b"
            r"|\b(?:agrees?|agreeing) with (?:everything|whatever|all)\b"
        ),
    ),
    ForbiddenKind(
        name="engagement",
        says="keeping the visitor talking or coming back",
        pattern=re.compile(
            r"\bkeep(?:s|ing)? (?:the |this )?(?:conversation|chat|dialogue) (?:\w+ )?(?:going|alive|open|running)"
            rf"|\bkeep(?:s|ing)? {_WHO} (?:\w+ )?(?:chatting|engaged|hooked|online|here|in the (?:chat|conversation))"
            r"|\b(?:prolong|extend|lengthen)(?:s|ed|ing)? (?:the |this )?(?:conversation|chat|dialogue|exchange)"
            r"|\b(?:user|visitor) engagement\b|\bengagement with (?:the |this )?(?:chat|app|service|assistant)\b"
            r"|\b(?:come|coming|comes|return|returns|returning) (?:back )?(?:again |soon |tomorrow |later )*"
            r"(?:to the (?:chat|app|service)|to this (?:chat|app|service|conversation)"
            r"|for (?:another|more) (?:chats?|conversations?|talk))\b"
            r"|\b(?:rely|relies|relying|depend|depends|depending|lean|leans) (?:\w+ )?on (?:this |the |our )?"
            r"(?:assistant|chat|service|reply|app|supporter|me|us)\b"
            r"|\b(?:continue|continues|continuing) (?:to )?(?:chat|chatting|the chat|the conversation|using)\b"
        ),
        opposite=re.compile(
            r"\b(?:end|ends|ending|close|closes|closing) (?:the |this )?(?:conversation|chat|dialogue)\b"
            r"|\b(?:user|visitor) (?:leave|leaves|leaving) (?:the |this )?(?:conversation|chat)\b"
        ),
    ),
)

_OUTCOME = re.compile(
    rf"\b(?:{_WHO}|user|visitor|person|they|he|she) (?:will|would|should|can|may|might|must)? ?(?:then )?"
    r"(?:feel|feels|felt|become|becomes|calm down|calms down|be (?:re)?assured|trust)\b"
    rf"|\b(?:makes?|helps?|leaves?|lets?) {_WHO} (?:to )?(?:feel|feeling|become|calm|trust|heal)\b"
)
_UNSEEN = re.compile(
    r"\b(?:genuinely|truly|really|sincerely|in (?:its|the) heart) (?:\w+ )?(?:cares?|feels?|wants?|understands?)\b"
)


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text, case folded, without punctuation; scripts without spaces give characters."""
    return tuple(_WORD.findall(text.casefold()))


def near_duplicates(criteria: Sequence[Criterion]) -> tuple[tuple[str, str], ...]:
    """Pairs of ids whose word sets overlap by a Jaccard index of .8 or more."""
    bags = [(criterion.id, frozenset(words_of(criterion.text))) for criterion in criteria]
    return tuple(
        (first, second)
        for (first, one), (second, other) in combinations(bags, 2)
        if _jaccard(one, other) >= NEAR_DUPLICATE_JACCARD
    )


def copied_criteria(criteria: Sequence[Criterion], known: Sequence[Criterion]) -> tuple[str, ...]:
    """Ids of criteria that say nearly the same as one of `known`."""
    bags = [frozenset(words_of(criterion.text)) for criterion in known]
    return tuple(
        criterion.id
        for criterion in criteria
        if any(_jaccard(frozenset(words_of(criterion.text)), bag) >= NEAR_DUPLICATE_JACCARD for bag in bags)
    )


def forbidden_rewards(criterion: Criterion) -> tuple[ForbiddenKind, ...]:
    """What the criterion would reward although no criterion may.

    Direction counts: wanting length is forbidden, avoiding it is not, nor is wanting "does not run long"; avoiding
    brevity is again.
    """
    text = criterion.text.casefold()
    return tuple(
        kind
        for kind in FORBIDDEN
        if _is_rewarded(text, kind.pattern, polarity=criterion.polarity)
        or (kind.opposite is not None and _is_punished(text, kind.opposite, polarity=criterion.polarity))
    )


def lint_criteria(criteria: Sequence[Criterion]) -> tuple[str, ...]:
    """Warnings that reject nothing: outcomes nobody can see in a reply, inner states, several avoids in a dimension."""
    warnings = []
    for criterion in criteria:
        text = criterion.text.casefold()
        if _OUTCOME.search(text):
            warnings.append(f"{criterion.id}: speaks of what the visitor will feel, which the reply cannot show")
        if _UNSEEN.search(text):
            warnings.append(f"{criterion.id}: speaks of an inner state, which the reply cannot show")
    for dimension in Dimension:
        avoided = sum(
            criterion.dimension is dimension and criterion.polarity is Polarity.AVOID for criterion in criteria
        )
        if avoided > 1:
            warnings.append(f"{dimension}: {avoided} criteria say what to avoid; one is enough")
    return tuple(warnings)


def leaked_criteria(criteria: Iterable[Criterion], reply: str) -> tuple[str, ...]:
    """Ids of criteria that share 12 neighbouring words with a known reply.

    For training data only, where the label writer has seen a reference: a rubric in use never sees the reply.
    """
    known = frozenset(_ngrams(words_of(reply)))
    return tuple(criterion.id for criterion in criteria if not known.isdisjoint(_ngrams(words_of(criterion.text))))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    union = one | other
    return len(one & other) / len(union) if union else 1.0


def _ngrams(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [words[start : start + LEAK_NGRAM] for start in range(len(words) - LEAK_NGRAM + 1)]


def _is_rewarded(text: str, pattern: re.Pattern[str], *, polarity: Polarity) -> bool:
    return any((polarity is Polarity.WANT) is not _is_negated(text, found.start()) for found in pattern.finditer(text))


def _is_punished(text: str, pattern: re.Pattern[str], *, polarity: Polarity) -> bool:
    return any((polarity is Polarity.WANT) is _is_negated(text, found.start()) for found in pattern.finditer(text))


def _is_negated(text: str, position: int) -> bool:
    """True where a negation stands before the position within its own clause."""
    clause = re.split(r"[.;:,]|\bbut\b", text[:position])[-1]
    return _NEGATION.search(clause) is not None
