"""The calls to the crisis screen, before the model and on its output. Fails closed (rule 7).

`safety` holds the table of what follows; here is only the asking. Nothing that people wrote is logged.
"""

import logging
from collections.abc import Sequence
from functools import cache

from django.conf import settings

from chat import safety
from chat.metrics import ERRORS
from rubric import EncoderClient, EncoderError, ScreenReading, texts_to_screen

logger = logging.getLogger(__name__)
UNKNOWN_SCREEN = "screen-unknown"


@cache
def _client_for(url: str, timeout_s: float) -> EncoderClient:
    return EncoderClient(url, timeout_s=timeout_s)


def encoder() -> EncoderClient:
    """The process's client of the encoder."""
    return _client_for(settings.RAPPORT_ENCODER_URL, settings.RAPPORT_SCREEN_TIMEOUT_S)


async def screen_visitor(text: str, *, before: tuple[str, ...]) -> safety.Reading:
    """Screen a message alone and joined with the visitor's messages before it. Never raises: failing is a reading."""
    try:
        readings = await encoder().screen(texts_to_screen((*before, text)), direction="visitor")
    except (TimeoutError, EncoderError) as error:
        ERRORS.labels(code="screen_failed").inc()
        logger.error("screen did not answer error=%s chars=%d", type(error).__name__, len(text))
        return safety.Reading(
            levels=(), probability=None, is_covered=True, version=UNKNOWN_SCREEN, failure=type(error).__name__
        )
    return safety.Reading(
        levels=tuple(reading.level for reading in readings),
        probability=max(reading.probability for reading in readings),
        is_covered=readings[0].is_covered,
        version=readings[0].version,
    )


async def screen_spans(texts: Sequence[str]) -> tuple[ScreenReading, ...]:
    """Screen spans of what the model says, one reading each. Raises EncoderError; the caller blocks the reply then."""
    return await encoder().screen(texts, direction="reply")
