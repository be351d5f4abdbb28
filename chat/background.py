"""Tasks that outlive whoever started them.

Inside an HTTP request Django binds database work to a thread that ends with the request; a task that inherited that
context could reach the database no more once the answer is out. So such tasks begin with an empty context.
"""

import asyncio
import contextvars
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def start_task(work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
    """Run `work` in the background of this loop, free of the caller's context. The caller keeps the reference."""
    return asyncio.get_running_loop().create_task(work, context=contextvars.Context())
