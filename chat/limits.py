"""How much may be sent: messages a minute by visitor, site and address, and tokens a day by site.

One atomic script in Redis serves socket and REST together. While Redis is away a count inside the process stands in,
so an outage neither opens the door nor closes it.
"""

import time
from collections import defaultdict
from dataclasses import dataclass

from django.conf import settings

from chat.store import RedisError, redis_here

WINDOW_S = 60
DAY_S = 86_400

# Sliding windows as sorted sets. All windows are checked before any is charged, so a refused message costs nothing; a
# member that a window has counted already is not counted again and is not refused by it.
# KEYS: one window per subject. ARGV: now in ms, window in ms, member, then one limit per key.
# Returns 0, or the milliseconds until the fullest window has room.
_TAKE = """
local now, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local wait = 0
for i, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - window)
  if not redis.call('ZSCORE', key, ARGV[3]) and redis.call('ZCARD', key) >= tonumber(ARGV[3 + i]) then
    local oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    wait = math.max(wait, tonumber(oldest[2] or now) + window - now, 1)
  end
end
if wait > 0 then return wait end
for _, key in ipairs(KEYS) do
  redis.call('ZADD', key, 'NX', now, ARGV[3])
  redis.call('PEXPIRE', key, window)
end
return 0
"""

_SPEND = """
redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2])
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sender:
    """Who wants to send: the three subjects that are counted."""

    visitor: str
    site: str
    address: str


def _windows(sender: Sender) -> tuple[tuple[str, int], ...]:
    return (
        (f"rapport:rate:visitor:{sender.visitor}", settings.RAPPORT_MESSAGES_PER_MINUTE),
        (f"rapport:rate:site:{sender.site}", settings.RAPPORT_SITE_MESSAGES_PER_MINUTE),
        (f"rapport:rate:address:{sender.address}", settings.RAPPORT_ADDRESS_MESSAGES_PER_MINUTE),
    )


class LocalWindows:
    """The same sliding windows inside one process, for the time that Redis is away."""

    def __init__(self) -> None:
        self._sent: defaultdict[str, dict[str, float]] = defaultdict(dict)  # member to when it was sent, oldest first

    def take(self, windows: tuple[tuple[str, int], ...], *, member: str, now_s: float) -> float:
        """0.0 and charge every window, or the seconds until there is room."""
        wait_s = 0.0
        for key, limit in windows:
            sent = self._sent[key]
            for gone in [one for one, sent_s in sent.items() if sent_s <= now_s - WINDOW_S]:
                del sent[gone]
            if member not in sent and len(sent) >= limit:
                wait_s = max(wait_s, next(iter(sent.values()), now_s) + WINDOW_S - now_s)
        if wait_s == 0.0:
            for key, _ in windows:
                self._sent[key].setdefault(member, now_s)
        if len(self._sent) > 50_000:  # subjects that fell silent are not kept for ever
            self._sent.clear()
        return wait_s


_local = LocalWindows()


async def take_message(sender: Sender, *, member: str) -> float:
    """Count one message; 0.0, or the seconds to wait. `member` makes a resent message count once."""
    windows = _windows(sender)
    try:
        waited_ms = await redis_here().eval(
            _TAKE,
            len(windows),
            *(key for key, _ in windows),
            int(time.time() * 1000),
            WINDOW_S * 1000,
            member,
            *(limit for _, limit in windows),
        )
    except (RedisError, OSError):
        return _local.take(windows, member=member, now_s=time.monotonic())
    return int(waited_ms) / 1000


def _budget_key(site_id: int) -> str:
    return f"rapport:tokens:{site_id}:{int(time.time()) // DAY_S}"


async def has_token_budget(site_id: int, *, budget: int) -> bool:
    """Whether the site has tokens left today (UTC). An absent Redis counts as yes: people come before budgets."""
    try:
        spent = await redis_here().get(_budget_key(site_id))
    except (RedisError, OSError):
        return True
    return int(spent or 0) < budget


async def spend_tokens(site_id: int, *, tokens: int) -> None:
    """Charge a finished reply's prompt and completion tokens to the site's day."""
    try:
        await redis_here().eval(_SPEND, 1, _budget_key(site_id), tokens, 2 * DAY_S)
    except (RedisError, OSError):
        return
