"""Who may use the engine now: its slots, a first-come queue of 16, and the grading that yields (rule 11).

State lies in Redis as leases that run out by themselves, so a killed process frees its places. While Redis is away the
slots that this process holds are counted inside it. Several processes do not know of each other then: together they may
hold as many times the engine's slots as they are, and the engine's own queue orders the rest.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from django.conf import settings

from chat.store import RedisError, redis_here, redis_sync

LEASE_S = 15.0
POLL_S = 0.1
GRADING_LOCK_S = 15  # a lease that whoever grades renews: a killed worker holds the others up for this long at most
EXPECTED_REPLY_S = 6.0  # until the engine has shown how long its replies take
_RUNNING, _QUEUE, _SEEN, _FIRST = (f"rapport:engine:{name}" for name in ("running", "queue", "seen", "first"))
_PACE = "rapport:engine:pace"
_GRADING = "rapport:engine:grading"

# KEYS: running, queue, seen. ARGV: now, member, slots, queue length, lease.
# Returns 0 admitted, n > 0 place in the queue, -1 the queue is full. Places are kept in order of arrival.
_ADMIT = """
local now, lease = tonumber(ARGV[1]), tonumber(ARGV[5])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now)) do
  redis.call('ZREM', KEYS[2], gone)
  redis.call('ZREM', KEYS[3], gone)
end
local rank = redis.call('ZRANK', KEYS[2], ARGV[2])
local free = tonumber(ARGV[3]) - redis.call('ZCARD', KEYS[1])
local ahead = rank or redis.call('ZCARD', KEYS[2])
if ahead < free then
  redis.call('ZREM', KEYS[2], ARGV[2])
  redis.call('ZREM', KEYS[3], ARGV[2])
  redis.call('ZADD', KEYS[1], now + lease, ARGV[2])
  return 0
end
if not rank then
  if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then return -1 end
  redis.call('ZADD', KEYS[2], now, ARGV[2])
end
redis.call('ZADD', KEYS[3], now + lease, ARGV[2])
return redis.call('ZRANK', KEYS[2], ARGV[2]) + 1
"""

_LEAVE = "for _, key in ipairs(KEYS) do redis.call('ZREM', key, ARGV[1]) end"


class Overloaded(Exception):
    """The engine's queue is full; the visitor's message is kept and may be tried again."""


class LocalSlots:
    """The slots that this process holds, whoever gave them, and its queue for the time that Redis is away."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.queue: list[str] = []

    def admit(self, member: str, *, slots: int, queue: int) -> int:
        """As the script: 0 admitted, n place, -1 full."""
        ahead = self.queue.index(member) if member in self.queue else len(self.queue)
        if ahead < slots - len(self.running):
            self.hold(member)
            return 0
        if member not in self.queue:
            if len(self.queue) >= queue:
                return -1
            self.queue.append(member)
        return self.queue.index(member) + 1

    def hold(self, member: str) -> None:
        self.leave(member)
        self.running.add(member)

    def leave(self, member: str) -> None:
        self.running.discard(member)
        if member in self.queue:
            self.queue.remove(member)


_local = LocalSlots()


async def _admit(member: str, *, slots: int) -> int:
    queue = settings.RAPPORT_ENGINE_QUEUE
    try:
        place = await redis_here().eval(_ADMIT, 3, _RUNNING, _QUEUE, _SEEN, time.time(), member, slots, queue, LEASE_S)
    except (RedisError, OSError):
        return _local.admit(member, slots=slots, queue=queue)
    if int(place) == 0:
        _local.hold(member)
    return int(place)


async def _expected_wait_s(place: int, *, slots: int) -> float:
    try:
        pace = await redis_here().get(_PACE)
    except (RedisError, OSError):
        pace = None
    return round(place * float(pace or EXPECTED_REPLY_S) / max(slots, 1), 1)


@asynccontextmanager
async def engine_place(member: str, *, slots: int, on_queued: Callable[[int, float], None]) -> AsyncIterator[None]:
    """Wait for a slot of the engine and hold it. Raises Overloaded.

    `on_queued(place, expected_wait_s)` is called whenever the place changes.
    """
    shown = 0
    try:
        while (place := await _admit(member, slots=slots)) != 0:
            if place < 0:
                raise Overloaded
            if place != shown:
                shown = place
                on_queued(place, await _expected_wait_s(place, slots=slots))
            _heed_cancellation()
            await asyncio.sleep(POLL_S)
        started_s = time.monotonic()
        await _mark_waiting(member)
        _heed_cancellation()
        yield
        await _note_pace(time.monotonic() - started_s)
    finally:
        await leave(member)


def _heed_cancellation() -> None:
    """End here where a stop came while Redis was asked.

    redis-py sends through `asyncio.wait_for`, which in Python 3.11 loses a cancellation that arrives as it ends; the
    reply would go on to the engine although it was stopped.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def _mark_waiting(member: str) -> None:
    try:
        await redis_here().zadd(_FIRST, {member: time.time() + settings.RAPPORT_FIRST_TOKEN_S})
    except (RedisError, OSError):
        return


async def mark_first_token(member: str) -> None:
    """The visitor sees words now: grading may start again."""
    with suppress(RedisError, OSError):
        await redis_here().zrem(_FIRST, member)
    _heed_cancellation()


async def _note_pace(seconds: float) -> None:
    """Running mean of how long a reply holds its slot."""
    try:
        earlier = await redis_here().get(_PACE)
        pace = seconds if earlier is None else 0.8 * float(earlier) + 0.2 * seconds
        await redis_here().set(_PACE, f"{pace:.3f}", ex=3600)
    except (RedisError, OSError):
        return


async def leave(member: str) -> None:
    """Give the slot or the place in the queue back."""
    _local.leave(member)
    try:
        await redis_here().eval(_LEAVE, 4, _RUNNING, _QUEUE, _SEEN, _FIRST, member)
    except (RedisError, OSError):
        return


async def renew(members: list[str]) -> None:
    """Keep the leases of replies that still run; called with their heartbeat.

    A slot that was given while Redis was away, or that it forgot, gets its lease here.
    """
    held = [member for member in members if member in _local.running]
    if not held:
        return
    try:
        await redis_here().zadd(_RUNNING, dict.fromkeys(held, time.time() + LEASE_S))
    except (RedisError, OSError):
        return


def may_grade() -> bool:
    """Whether no visitor waits for a slot or a first token (rule 11). False while Redis is away: grading can wait."""
    try:
        client = redis_sync()
        now = time.time()
        return client.zcount(_FIRST, now, "+inf") == 0 and client.zcount(_SEEN, now, "+inf") == 0
    except (RedisError, OSError):
        return False


def take_grading_lock(holder: str) -> bool:
    """One grading request in flight in the whole installation."""
    try:
        return bool(redis_sync().set(_GRADING, holder, nx=True, ex=GRADING_LOCK_S))
    except (RedisError, OSError):
        return False


async def keep_grading_lock(holder: str) -> None:
    """Renew the lock until cancelled. A lock that is somebody else's by now stays theirs."""
    while True:
        await asyncio.sleep(GRADING_LOCK_S / 3)
        try:
            held_by = await redis_here().get(_GRADING)
            if held_by == holder:
                await redis_here().expire(_GRADING, GRADING_LOCK_S)
            elif held_by is None:  # Redis was away and has forgotten
                await redis_here().set(_GRADING, holder, nx=True, ex=GRADING_LOCK_S)
        except (RedisError, OSError):
            continue


def drop_grading_lock(holder: str) -> None:
    """Give the lock back if it is still ours."""
    try:
        if redis_sync().get(_GRADING) == holder:
            redis_sync().delete(_GRADING)
    except (RedisError, OSError):
        return
