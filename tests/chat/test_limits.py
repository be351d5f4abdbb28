"""How much may be sent: one atomic count for socket and REST, on a real Redis, and in the process while it is away."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from asgiref.sync import async_to_sync
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from chat import limits
from chat.limits import WINDOW_S, LocalWindows, Sender, has_token_budget, spend_tokens, take_message
from chat.store import close_redis_here, redis_here, redis_sync
from tests.fakes.engine import closed_port

pytestmark = pytest.mark.redis
ANN = Sender(visitor="ann", site="shop", address="10.0.0.1")


@pytest.fixture(autouse=True)
async def few_messages(clean_redis: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    settings.RAPPORT_MESSAGES_PER_MINUTE = 3
    settings.RAPPORT_SITE_MESSAGES_PER_MINUTE = 50
    settings.RAPPORT_ADDRESS_MESSAGES_PER_MINUTE = 50
    monkeypatch.setattr(limits, "_local", LocalWindows())
    yield
    await close_redis_here()


@pytest.fixture
def redis_away(settings: Settings) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{closed_port()}/0"


def pass_time(seconds: float) -> None:
    """As if every message had been sent so much earlier."""
    client = redis_sync()
    for key in client.keys("rapport:rate:*"):
        for member in client.zrange(key, 0, -1):
            client.zincrby(key, -seconds * 1000, str(member))


async def taken(sender: Sender, count: int, *, prefix: str = "m") -> list[float]:
    return [await take_message(sender, member=f"{prefix}{number}") for number in range(count)]


async def test_message_over_the_limit_waits_for_the_oldest_to_leave_the_window() -> None:
    assert await taken(ANN, 3) == [0.0, 0.0, 0.0]
    pass_time(20)
    assert await take_message(ANN, member="four") == pytest.approx(WINDOW_S - 20, abs=2)
    pass_time(WINDOW_S - 20 + 1)
    assert await take_message(ANN, member="four") == 0.0


async def test_window_slides_message_by_message() -> None:
    await take_message(ANN, member="early")
    pass_time(40)
    await taken(ANN, 2)
    assert 0 < await take_message(ANN, member="x") <= 20
    pass_time(21)
    assert await take_message(ANN, member="x") == 0.0
    assert await take_message(ANN, member="y") > 30


async def test_fifty_takes_at_once_let_exactly_the_limit_through(settings: Settings) -> None:
    settings.RAPPORT_MESSAGES_PER_MINUTE = 20
    waits_s = await asyncio.gather(*(take_message(ANN, member=f"m{number}") for number in range(50)))
    assert waits_s.count(0.0) == 20
    assert all(0 < wait_s <= WINDOW_S + 1 for wait_s in waits_s if wait_s)


def test_socket_and_rest_are_counted_together() -> None:
    take = async_to_sync(take_message)  # as the REST door calls it
    assert take(ANN, member="rest") == 0.0
    assert asyncio.run(taken(ANN, 2)) == [0.0, 0.0]
    assert take(ANN, member="again") > 0


async def test_refused_message_costs_nothing_in_any_window() -> None:
    await taken(ANN, 3)
    before = {key: redis_sync().zcard(key) for key in redis_sync().keys("rapport:rate:*")}
    for number in range(10):
        assert await take_message(ANN, member=f"refused{number}") > 0
    assert {key: redis_sync().zcard(key) for key in redis_sync().keys("rapport:rate:*")} == before
    assert set(before.values()) == {3}


async def test_resent_message_is_counted_once() -> None:
    for _ in range(10):
        assert await take_message(ANN, member="same") == 0.0
    assert await taken(ANN, 2) == [0.0, 0.0]
    assert await take_message(ANN, member="another") > 0


async def test_resent_message_is_let_through_where_the_window_is_full() -> None:
    assert await taken(ANN, 3) == [0.0, 0.0, 0.0]
    assert await take_message(ANN, member="m1") == 0.0
    assert await take_message(ANN, member="new") > 0


async def test_resending_does_not_keep_a_message_in_the_window_for_ever() -> None:
    await take_message(ANN, member="same")
    pass_time(WINDOW_S - 5)
    await take_message(ANN, member="same")
    pass_time(6)
    assert await taken(ANN, 3) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("subject", "other"),
    [
        ("visitor", Sender(visitor="ann", site="other", address="10.9.9.9")),
        ("site", Sender(visitor="bob", site="shop", address="10.9.9.9")),
        ("address", Sender(visitor="bob", site="other", address="10.0.0.1")),
    ],
)
async def test_each_of_the_three_subjects_has_its_own_limit(settings: Settings, subject: str, other: Sender) -> None:
    settings.RAPPORT_MESSAGES_PER_MINUTE = 2 if subject == "visitor" else 50
    settings.RAPPORT_SITE_MESSAGES_PER_MINUTE = 2 if subject == "site" else 50
    settings.RAPPORT_ADDRESS_MESSAGES_PER_MINUTE = 2 if subject == "address" else 50
    await taken(ANN, 2)
    assert await take_message(other, member="shared") > 0
    stranger = Sender(visitor="zoe", site="elsewhere", address="10.8.8.8")
    assert await take_message(stranger, member="alone") == 0.0


async def test_longest_of_several_waits_is_told(settings: Settings) -> None:
    settings.RAPPORT_ADDRESS_MESSAGES_PER_MINUTE = 4
    neighbour = Sender(visitor="bob", site="shop", address="10.0.0.1")
    await take_message(neighbour, member="first")
    pass_time(50)
    await taken(ANN, 3)
    assert await take_message(ANN, member="more") > 50


async def test_windows_leave_nothing_behind_in_redis() -> None:
    await taken(ANN, 2)
    keys = redis_sync().keys("rapport:rate:*")
    assert len(keys) == 3
    assert all(0 < redis_sync().pttl(key) <= WINDOW_S * 1000 for key in keys)


@pytest.mark.usefixtures("redis_away")
async def test_count_inside_the_process_stands_in_while_redis_is_away_and_is_quick() -> None:
    started_s = time.monotonic()
    assert await taken(ANN, 3) == [0.0, 0.0, 0.0]
    assert 0 < await take_message(ANN, member="four") <= WINDOW_S
    assert await take_message(ANN, member="m2") == 0.0
    assert time.monotonic() - started_s < 0.5


def windows(visitor: int, site: int) -> tuple[tuple[str, int], ...]:
    return (("visitor", visitor), ("site", site))


def test_local_windows_slide_and_charge_nothing_when_they_refuse() -> None:
    local = LocalWindows()
    assert [local.take(windows(2, 9), member=f"m{n}", now_s=float(n)) for n in range(2)] == [0.0, 0.0]
    for n in range(20):
        assert local.take(windows(2, 9), member=f"refused{n}", now_s=10.0) == WINDOW_S - 10
    assert local.take((("site", 3),), member="other", now_s=10.0) == 0.0
    assert local.take(windows(2, 9), member="later", now_s=WINDOW_S + 0.5) == 0.0


@given(
    st.lists(st.tuples(st.floats(0, 30), st.integers(0, 8)), max_size=60),
    st.integers(0, 5),
)
def test_local_windows_never_let_more_through_than_their_limit(sends: list[tuple[float, int]], limit: int) -> None:
    local, now_s = LocalWindows(), 0.0
    let_through: dict[int, float] = {}
    for gap_s, member in sends:
        now_s += gap_s
        wait_s = local.take((("k", limit),), member=str(member), now_s=now_s)
        let_through = {one: at_s for one, at_s in let_through.items() if at_s > now_s - WINDOW_S}
        if wait_s == 0.0:
            let_through.setdefault(member, now_s)
        else:
            assert member not in let_through
            assert 0 < wait_s <= WINDOW_S + 1e-6
        assert len(let_through) <= limit


async def test_token_budget_is_spent_by_what_was_used_and_by_site() -> None:
    assert await has_token_budget(1, budget=100)
    await spend_tokens(1, tokens=60)
    assert await has_token_budget(1, budget=100)
    await asyncio.gather(*(spend_tokens(1, tokens=10) for _ in range(4)))
    assert not await has_token_budget(1, budget=100)
    assert await has_token_budget(2, budget=100)
    (key,) = redis_sync().keys("rapport:tokens:1:*")
    assert redis_sync().ttl(key) > 86_400


async def test_token_budget_begins_anew_with_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    await spend_tokens(1, tokens=100)
    assert not await has_token_budget(1, budget=100)
    tomorrow = time.time() + limits.DAY_S
    monkeypatch.setattr(time, "time", lambda: tomorrow)
    assert await has_token_budget(1, budget=100)


@pytest.mark.usefixtures("redis_away")
async def test_people_come_before_budgets_while_redis_is_away() -> None:
    await spend_tokens(1, tokens=1_000)
    assert await has_token_budget(1, budget=1)


async def test_budget_of_nothing_lets_nothing_through() -> None:
    assert not await has_token_budget(1, budget=0)
    assert await redis_here().get("rapport:tokens:1:0") is None
