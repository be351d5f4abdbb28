"""The words for a visitor's state: what is felt, what it is about, what is needed. Shared by bank, corpus, generator.

Emotions and problem areas are those of emotional-support research (ESConv names eleven and twelve), with what a help
desk and a good day add. Needs are ours: what a reply can serve, not what a person should want.
"""

from __future__ import annotations

from enum import StrEnum


class Emotion(StrEnum):
    """What the visitor feels most at a turn."""

    ANGER = "anger"
    ANXIETY = "anxiety"
    DEPRESSION = "depression"
    DISGUST = "disgust"
    FEAR = "fear"
    GUILT = "guilt"
    JEALOUSY = "jealousy"
    NERVOUSNESS = "nervousness"
    PAIN = "pain"
    SADNESS = "sadness"
    SHAME = "shame"
    FRUSTRATION = "frustration"
    JOY = "joy"
    PRIDE = "pride"
    RELIEF = "relief"
    CALM = "calm"


class Area(StrEnum):
    """What a conversation is about."""

    LOW_MOOD = "low_mood"
    BREAKUP = "breakup"
    JOB = "job"
    FRIENDS = "friends"
    STUDY = "study"
    PROCRASTINATION = "procrastination"
    ALCOHOL = "alcohol"
    PARENTS = "parents"
    SLEEP = "sleep"
    APPEARANCE = "appearance"
    BULLYING = "bullying"
    CHILDREN = "children"
    CUSTOMER_SUPPORT = "customer_support"
    GOOD_NEWS = "good_news"


class Need(StrEnum):
    """What would serve the visitor at a turn, said or not."""

    HEARD = "heard"  # to tell it and have it taken in
    UNDERSTOOD = "understood"  # that somebody grasps the point
    SENSE = "sense"  # to make sense of what happens
    VALIDATED = "validated"  # that the feeling is allowed
    COMPANY = "company"  # not to be alone with it
    CALM = "calm"  # to come down
    FACTS = "facts"  # information, at once
    OPTIONS = "options"  # ways that are open
    DECISION = "decision"  # to settle something
    CONFIDENCE = "confidence"  # to trust in being able to
    REPAIR = "repair"  # that a poor reply is put right
    FIXED = "fixed"  # a matter of customer support settled
    SPACE = "space"  # to be left in peace, to end


# The eleven that the corpus plans its coverage by; the others come up inside conversations or in areas of their own.
CORE_EMOTIONS = (
    *(Emotion.ANGER, Emotion.ANXIETY, Emotion.DEPRESSION, Emotion.DISGUST, Emotion.FEAR, Emotion.GUILT),
    *(Emotion.JEALOUSY, Emotion.NERVOUSNESS, Emotion.PAIN, Emotion.SADNESS, Emotion.SHAME),
)
CORE_AREAS = tuple(area for area in Area if area not in {Area.CUSTOMER_SUPPORT, Area.GOOD_NEWS})
