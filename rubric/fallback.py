"""The generic rubric: what any decent reply of support does, whatever the conversation.

It stands in, flagged and with a reason, where no valid rubric came about, and it is the `criteria=uniform` arm of the
ablations. Its ids begin with G, which `parsing` keeps from everybody else: levels given for a turn's own criteria can
so never be taken for levels of these.
"""

from __future__ import annotations

from rubric.criteria import Criterion, Dimension, Polarity, Rubric, Weights

RESERVED_ID_PREFIX = "G"

GENERIC_CRITERIA: tuple[Criterion, ...] = (
    Criterion(
        id="GC1",
        dimension=Dimension.COGNITIVE,
        text="Takes up a particular thing that the visitor said, so that it could not be sent to anyone else",
    ),
    Criterion(
        id="GC2",
        dimension=Dimension.COGNITIVE,
        text="Asserts facts, causes or motives that nothing in the conversation supports",
        polarity=Polarity.AVOID,
    ),
    Criterion(
        id="GA1",
        dimension=Dimension.AFFECTIVE,
        text="Puts into plain words a feeling that the visitor's message carries",
    ),
    Criterion(
        id="GA2",
        dimension=Dimension.AFFECTIVE,
        text="Plays the trouble down, corrects the feeling, or hurries past it to something cheerful",
        polarity=Polarity.AVOID,
    ),
    Criterion(
        id="GP1",
        dimension=Dimension.PROACTIVE,
        text="Opens one manageable way on, as an idea or a question, that suits what was asked for",
    ),
    Criterion(
        id="GP2",
        dimension=Dimension.PROACTIVE,
        text="Treats the choice as the visitor's own: proposes and asks where it could have given orders",
    ),
)


def fallback_rubric(reason: str, *, repairs: int = 0) -> Rubric:
    """Equal weights and two generic criteria per dimension, flagged with a short reason code such as "length"."""
    return Rubric(
        weights=Weights.uniform(),
        criteria=GENERIC_CRITERIA,
        is_fallback=True,
        fallback_reason=reason,
        repairs=repairs,
    )
