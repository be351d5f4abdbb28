"""What an erasure does outside the database: stop the replies that run, and clear their text from Redis."""

import logging
from collections.abc import Sequence
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer

from chat.layer import process_group
from chat.store import RedisError, live_key, redis_sync

logger = logging.getLogger(__name__)


def forget_live(replies: Sequence[tuple[UUID, str]]) -> None:
    """Given (message id, process that runs it): ask each process to stop, and delete the texts so far. Never raises.

    A text that a process lays down again before it stops runs out by itself within ten minutes.
    """
    layer = get_channel_layer()
    try:
        for message_id, owner in replies:
            stop = {"type": "reply.stop", "message_id": str(message_id)}
            async_to_sync(layer.group_send)(process_group(owner), stop)
        if replies:
            redis_sync().delete(*(live_key(message_id) for message_id, _ in replies))
    except (RedisError, OSError) as error:
        logger.error(
            "live texts of an erasure stay until they run out replies=%d error=%s", len(replies), type(error).__name__
        )
