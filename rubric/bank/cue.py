"""Which words of a visitor may stand inside a criterion. A criterion is stored and sent to judges, so little passes.

The rule is for English, as the bank is: whatever is written in other letters is refused, since no list here reads it.
"""

from __future__ import annotations

import re

MAX_CUE_CHARS = 40
MAX_CUE_WORDS = 5

# Lower case throughout: a capital may begin a name. No digits, signs or line breaks, so no address and no number.
_SHAPE = re.compile(rf"[a-z]+(?:['’][a-z]+)*(?: [a-z]+(?:['’][a-z]+)*){{0,{MAX_CUE_WORDS - 1}}}")

# Begins of words. Talk of danger is never quoted into a guide for replies, not even where it is harmless.
_CRISIS = re.compile(
    r"\b(?:kill|die|dies|dying|dead|death|overdos|pills?\b|tablets?\b|knife|knives|blade|razor|noose|rope\b|gun|"
    r"weapon|bullet|hang|cut|slit|bleed|blood|stab|shoot|poison|drown|burn|harm|selfharm|hurt|abus|rape|assault|murder|"
    r"attack|beat|strangl|chok|starv|purg|bridge|cliff|rooftop|jump|goodbye|farewell|funeral|burden|worthless|"
    r"hopeless|disappear|unaliv|kms\b|kys\b|end (?:it|my|me|things)|not (?:be )?here)"
)
_CRISIS_JOINED = re.compile("suicid|overdos|selfharm")  # looked for with the spaces taken out
_LONE_LETTER = re.compile(r"(?<![a-z'’])(?![ai]\b)[a-z](?![a-z'’])")  # a word spelled out, as in "k i l l"
# What speaks to a judge or a model instead of naming something in the visitor's life.
_COMMAND = re.compile(
    r"\b(?:ignor|disregard|forget|instruct|prompt|system|score|grade|marks?\b|points\b|rating|level|judge|rubric|"
    r"criteri|repl(?:y|ies)|respon[sd]|answer|assistant|model|bot\b|always|never|must)"
)


def safe_cue(cue: str) -> bool:
    """True where the words may fill a slot: 2 to 40 characters, at most 5 words, letters a to z, apostrophes, spaces.

    Refused besides: capitals, words of danger, and words that could speak to the judge. A name typed in lower case
    cannot be told from a word; whoever picks cues keeps to common nouns.
    """
    if not (2 <= len(cue) <= MAX_CUE_CHARS and _SHAPE.fullmatch(cue)):
        return False
    if _CRISIS.search(cue) or _COMMAND.search(cue):
        return False
    return not (_CRISIS_JOINED.search(cue.replace(" ", "")) or _LONE_LETTER.search(cue))
