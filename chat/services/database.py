"""Synchronous verbs from asynchronous doors: one thread hop, a second try when the database had gone away, and what
waits for the commit.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from channels.db import database_sync_to_async
from django.db import InterfaceError, OperationalError, transaction

logger = logging.getLogger(__name__)
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
RETRY_AFTER_S = (0.05, 0.5, 1.0, 2.0, 4.0)  # a restart of the database takes seconds


async def run_db(verb: Callable[Arguments, Result], /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
    """Call a verb in the database thread. Verbs are safe to repeat, so a lost connection is tried again (B5).

    Raises what the verb raises; OperationalError or InterfaceError only after about eight seconds.
    """
    call: Callable[Arguments, Awaitable[Result]] = database_sync_to_async(verb)
    for wait_s in RETRY_AFTER_S:
        try:
            return await call(*args, **kwargs)
        except (OperationalError, InterfaceError):
            await asyncio.sleep(wait_s)
    return await call(*args, **kwargs)


def after_commit(work: Callable[Arguments, object], /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
    """Do `work` once the running transaction is committed, at once where there is none.

    What fails there is logged by its type and takes neither the commit nor the rest with it. (Django's `robust` logs
    the error's own words, and fails itself where the callable has no `__qualname__`, as a partial has none.)
    """

    def call() -> None:
        try:
            work(*args, **kwargs)
        except Exception as error:
            name = getattr(work, "__qualname__", type(work).__name__)
            logger.error("failed after the commit work=%s error=%s", name, type(error).__name__)

    transaction.on_commit(call)
