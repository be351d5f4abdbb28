"""How every process writes its log: one line an event, an error by its type and place, never by its message.

An exception's message may quote what a person wrote (a database that refuses a value says which), so it stays out of
the log (rule 10). Used by `deploy.settings` for web and commands, and by `deploy.celery` for workers.
"""

import logging
import traceback
from types import TracebackType

_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
# Libraries that put an exception, or a task's arguments, into their message: only what names the event is kept.
_NAMING_KEYS = ("name", "id", "description")


def describe_error(error: BaseException) -> str:
    """`ValueError at views.py:10 < base.py:20 | caused by KeyError at ...`: types and places, no messages."""
    described, seen = [], set[int]()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        frames = reversed(traceback.extract_tb(current.__traceback__))
        places = " < ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames)
        described.append(f"{type(current).__name__} at {places or 'unknown'}")
        current = current.__cause__ or current.__context__
    return " | caused by ".join(described)


class QuietFormatter(logging.Formatter):
    """Formats a record without the message of any exception."""

    def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802 - the base class's name
        return describe_error(ei[1]) if ei[1] is not None else ""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the base class's name
        if isinstance(record.args, dict) and "exc" in record.args:
            named = " ".join(f"{key}={record.args[key]}" for key in _NAMING_KEYS if key in record.args)
            record.message = f"task failed {named}"
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # another handler may have cached its own words
        text = super().format(record)
        record.exc_text = None
        return text


class ReadinessFilter(logging.Filter):
    """Leaves out that /readyz was not ready: whoever asks for it reads the answer, and it is asked all the time."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (isinstance(record.args, tuple) and "/readyz" in map(str, record.args))
