"""What Celery does: grade turns, notify staff, apply retention. The broker only carries hints (rule 5).

Grading yields to visitors (rule 11): one request in flight in the whole installation, none started while somebody
waits for a slot or a first token. A task that may not run now comes back by itself; `grade_missed` finds what was lost.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from uuid import UUID

from celery import shared_task

from chat import admission, grading
from chat.alerts import notify_pending_alerts
from chat.layer import end_tasks
from chat.metrics import ERRORS, GRADINGS_FAILED
from chat.policies import close_client_here
from chat.services.alarm import call_after_alert
from chat.services.endings import call_after_reply
from chat.services.erasure import apply_retention as apply_retention_now
from chat.store import RedisError, close_redis_here, redis_sync
from rubric import EncoderError, EngineError

logger = logging.getLogger(__name__)
COME_BACK_S = 1.0
MAX_ATTEMPTS = 5  # of one reply; then it stays ungraded and counted, so that no reply is graded for ever
# Rest after a failure, four times as long each time: the last attempt comes an hour and a half after the first, so that
# an encoder or engine that is away for some minutes costs no grade.
FIRST_REST_S = 60
REST_GROWTH = 4
ATTEMPTS_KEPT_S = 86_400
MISSED_AT_ONCE = 20
MISSED_LOOKED_AT = 1_000
WAITING_KEPT_S = 300


class BrokerRequests:
    """Carries requests to the broker in a thread of its own: one that is away keeps a caller waiting for seconds.

    The caller is the thread that does all database work of a web process. What is lost here, beat finds: `grade_missed`
    and the next `notify_alerts`.
    """

    def __init__(self, *, most_waiting: int = 1_000) -> None:
        self._waiting: queue.Queue[Callable[[], object]] = queue.Queue(maxsize=most_waiting)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def put(self, request: Callable[[], object]) -> None:
        """Returns at once; where too many wait already this one is dropped."""
        try:
            self._waiting.put_nowait(request)
        except queue.Full:
            logger.warning("request not sent to the broker error=Full")
        with self._starting:
            if self._thread is None or not self._thread.is_alive():  # also in the child of a fork
                self._thread = threading.Thread(target=self._send, name="broker-requests", daemon=True)
                self._thread.start()

    def _send(self) -> None:
        while True:
            request = self._waiting.get()
            try:
                request()
            except Exception as error:
                logger.warning("request not sent to the broker error=%s", type(error).__name__)


_requests = BrokerRequests()


def enqueue_grading(reply_id: UUID) -> None:
    """Ask for a grade; returns at once and never raises."""
    _requests.put(partial(grade_turn.apply_async, (str(reply_id),), retry=False))


def enqueue_notification() -> None:
    """Ask that staff be told now; returns at once and never raises."""
    _requests.put(partial(notify_alerts.apply_async, retry=False))


call_after_reply(enqueue_grading)
call_after_alert(enqueue_notification)


def _attempts(reply_id: str) -> int:
    key = f"rapport:grade-attempts:{reply_id}"
    client = redis_sync()
    attempts = int(client.incr(key))
    client.expire(key, ATTEMPTS_KEPT_S)
    return attempts


def _is_given_up(reply_id: str) -> bool:
    return int(redis_sync().get(f"rapport:grade-attempts:{reply_id}") or 0) >= MAX_ATTEMPTS


def _rest(reply_id: str) -> None:
    """Keep `grade_missed` from asking again too soon; where Redis is away it asks at once, as often as is left."""
    with suppress(RedisError, OSError):
        client = redis_sync()
        attempts = int(client.get(f"rapport:grade-attempts:{reply_id}") or 1)
        client.set(f"rapport:grade-rests:{reply_id}", 1, ex=FIRST_REST_S * REST_GROWTH ** (attempts - 1))


def _is_resting(reply_id: str) -> bool:
    return bool(redis_sync().exists(f"rapport:grade-rests:{reply_id}"))


def _come_back(reply_id: str) -> None:
    """Ask again in a moment, and leave a mark, so that `grade_missed` does not send a second task after this one.

    Every waiting task comes back each second: without the mark they would grow in number for as long as visitors wait.
    """
    grade_turn.apply_async((reply_id,), countdown=COME_BACK_S)
    with suppress(RedisError, OSError):
        redis_sync().set(f"rapport:grade-waiting:{reply_id}", 1, ex=WAITING_KEPT_S)


def _is_waiting(reply_id: str) -> bool:
    return bool(redis_sync().exists(f"rapport:grade-waiting:{reply_id}"))


def _is_due(reply_id: str) -> bool:
    return not (_is_given_up(reply_id) or _is_waiting(reply_id) or _is_resting(reply_id))


@shared_task(name="chat.tasks.grade_turn")
def grade_turn(reply_id: str) -> str:
    """Grade one reply; comes back later where a visitor waits or another grading runs. Returns what became of it."""
    if not admission.may_grade() or not admission.take_grading_lock(reply_id):
        _come_back(reply_id)
        return "yielded"
    try:
        redis_sync().delete(f"rapport:grade-waiting:{reply_id}")
        if _attempts(reply_id) > MAX_ATTEMPTS:
            return "given up"
        return str(asyncio.run(_grade(UUID(reply_id))))
    except (EngineError, EncoderError, TimeoutError) as error:
        ERRORS.labels(code="grading").inc()
        GRADINGS_FAILED.labels(kind=type(error).__name__).inc()
        logger.warning("grading failed reply=%s error=%s", reply_id, type(error).__name__)
        _rest(reply_id)
        return "failed"
    finally:
        admission.drop_grading_lock(reply_id)


async def _grade(reply_id: UUID) -> grading.Graded:
    keeping = asyncio.create_task(admission.keep_grading_lock(str(reply_id)))
    try:
        async with asyncio.timeout(grading.grade_deadline_s()):
            return await grading.grade_reply(reply_id)
    finally:
        await end_tasks([keeping])
        await close_client_here()
        await close_redis_here()


@shared_task(name="chat.tasks.grade_missed")
def grade_missed() -> int:
    """Enqueue what finished a while ago and has no score; returns how many."""
    missed = grading.missed_replies(limit=MISSED_LOOKED_AT, older_than_s=60)
    try:  # before the cut, so that twenty that are given up do not hide the rest for a day
        found = list(islice((one for one in missed if _is_due(str(one))), MISSED_AT_ONCE))
    except (RedisError, OSError):
        return 0
    for reply_id in found:
        enqueue_grading(reply_id)
    return len(found)


@shared_task(name="chat.tasks.notify_alerts")
def notify_alerts() -> int:
    """Send what staff have not been told yet; returns how many alerts went out."""
    return notify_pending_alerts()


@shared_task(name="chat.tasks.apply_retention")
def apply_retention() -> int:
    """Erase what is older than each site keeps; returns how many conversations went."""
    return apply_retention_now()


@shared_task(name="chat.tasks.echo")
def echo(key: str) -> None:
    """Answer a readiness check: the round trip broker, worker, Redis works."""
    redis_sync().set(f"rapport:echo:{key}", "1", ex=30)
