"""What follows from a verdict of the screen: the table of rule 7. Pure; `screening` makes the calls.

Level *high*: card, a message of kind `safety`, no model call, staff alerted. Level *watch*: card, then a screened
reply. A screen that did not answer counts as high. A language outside its coverage shows the card once a conversation.
"""

from dataclasses import dataclass

from rubric import Level, combine_levels

WATCH_AFTER_MISUNDERSTANDING = 3  # visitor turns that stay at watch after "you misunderstood me": lowered, not cleared


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What the screen made of one visitor message: alone, and joined with the messages before it."""

    levels: tuple[Level, ...]
    probability: float | None
    is_covered: bool
    version: str
    failure: str = ""  # "timeout" or "unavailable" where the screen did not answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What the conversation already carries, before this message."""

    turn: int  # number of this visitor message, from 1
    watch_until_turn: int
    has_language_card: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What to do with one visitor message."""

    level: Level
    own_level: Level
    card: Level
    calls_model: bool
    raises_alert: bool
    excluded_reason: str
    watch_until_turn: int
    shows_language_card: bool
    probability: float | None
    screen_version: str
    failure: str


def decide(reading: Reading, standing: Standing, *, watched_turns: int) -> Decision:
    """The decision for a message, from the screen's reading and what the conversation carries over.

    `watched_turns` is how many visitor turns after a high stay at least at watch (denial after disclosure).
    """
    own = Level.HIGH if reading.failure else combine_levels(reading.levels, messages_since_high=None)
    is_watched = standing.turn <= standing.watch_until_turn
    level = Level.WATCH if own is Level.NONE and is_watched else own
    is_first_uncovered = not reading.is_covered and not reading.failure and not standing.has_language_card
    card = Level.WATCH if level is Level.NONE and is_first_uncovered else level
    until = standing.turn + watched_turns if own is Level.HIGH and not reading.failure else standing.watch_until_turn
    return Decision(
        level=level,
        own_level=own,
        card=card,
        calls_model=level is not Level.HIGH,
        raises_alert=level is Level.HIGH,
        excluded_reason="" if level is Level.NONE else f"safety_{level.value}",
        watch_until_turn=max(until, standing.watch_until_turn),
        shows_language_card=is_first_uncovered,
        probability=reading.probability,
        screen_version=reading.version,
        failure=reading.failure,
    )


def lower_after_misunderstanding(*, turn: int, watch_until_turn: int) -> int:
    """Until which turn the conversation stays at watch once the visitor says that the card was a mistake."""
    return min(watch_until_turn, turn + WATCH_AFTER_MISUNDERSTANDING)
