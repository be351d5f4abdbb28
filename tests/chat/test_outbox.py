"""What waits for one socket: in order, complete after a pause, small while it lasts, and silent once closed."""

import asyncio
import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat import outbox as outboxes
from chat.outbox import Outbox

REPLY = uuid4()
OTHER = uuid4()


class Peer:
    """A reader that can pause; keeps what it was sent."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.is_reading = asyncio.Event()
        self.is_reading.set()
        self.error: Exception | None = None

    async def send(self, message: dict[str, object]) -> None:
        await self.is_reading.wait()
        if self.error is not None:
            raise self.error
        self.got.append(dict(message))

    @property
    def frames(self) -> list[dict[str, Any]]:
        return [json.loads(message["text"]) for message in self.got if message["type"] == "websocket.send"]

    def text_of(self, reply_id: UUID) -> str:
        text = ""
        for frame in self.frames:
            if frame["type"] == "reply.delta" and frame["message_id"] == str(reply_id):
                assert frame["offset"] == len(text)
                text += frame["text"]
        return text


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_frames_arrive_in_the_order_they_were_put() -> None:
    peer = Peer()
    outbox = Outbox(peer.send)
    for number in range(20):
        outbox.put(json.dumps({"type": "n", "n": number}))
        if number % 3 == 0:
            await settle()
    await outbox.drain()
    assert [frame["n"] for frame in peer.frames] == list(range(20))


async def test_deltas_of_a_paused_reader_are_joined_and_complete() -> None:
    peer = Peer()
    outbox = Outbox(peer.send)
    peer.is_reading.clear()
    words = [f"wörd{n} " for n in range(5_000)]
    offset = 0
    for word in words:
        outbox.put_delta(REPLY, offset=offset, text=word)
        offset += len(word)
        if offset % 7 == 0:
            await asyncio.sleep(0)
    peer.is_reading.set()
    await outbox.drain()
    assert peer.text_of(REPLY) == "".join(words)
    assert len(peer.frames) <= 3


async def test_reader_that_keeps_up_gets_every_delta_at_once() -> None:
    peer = Peer()
    outbox = Outbox(peer.send)
    for number in range(3):
        outbox.put_delta(REPLY, offset=2 * number, text="ab")
        await outbox.drain()
    assert [frame["text"] for frame in peer.frames] == ["ab", "ab", "ab"]


async def test_frame_for_a_reader_that_keeps_up_takes_no_task() -> None:
    peer = Peer()
    outbox = Outbox(peer.send)
    before = asyncio.all_tasks()
    outbox.put("{}")
    await asyncio.sleep(0)
    assert peer.got == [{"type": "websocket.send", "text": "{}"}]
    assert asyncio.all_tasks() == before


async def test_put_again_while_the_reader_is_slow_starts_no_second_writer() -> None:
    peer = Peer()
    outbox = Outbox(peer.send)
    peer.is_reading.clear()
    before = asyncio.all_tasks()
    for number in range(5):
        outbox.put(json.dumps({"type": "n", "n": number}))
        await settle()
    assert len(asyncio.all_tasks() - before) == 1
    peer.is_reading.set()
    await outbox.drain()
    assert [frame["n"] for frame in peer.frames] == list(range(5))


async def test_frame_between_two_deltas_keeps_its_place() -> None:
    peer = Peer()
    outbox = Outbox(peer.send)
    peer.is_reading.clear()
    outbox.put_delta(REPLY, offset=0, text="a")
    outbox.put('{"type":"safety.card"}')
    outbox.put_delta(REPLY, offset=1, text="b")
    outbox.put_delta(REPLY, offset=2, text="c")
    peer.is_reading.set()
    await outbox.drain()
    assert [(frame["type"], frame.get("text")) for frame in peer.frames] == [
        ("reply.delta", "a"),
        ("safety.card", None),
        ("reply.delta", "bc"),
    ]


async def test_deltas_of_two_replies_are_not_mixed() -> None:
    peer = Peer()
    outbox = Outbox(peer.send)
    peer.is_reading.clear()
    for offset in range(3):
        outbox.put_delta(REPLY, offset=offset, text="a")
        outbox.put_delta(OTHER, offset=offset, text="b")
    peer.is_reading.set()
    await outbox.drain()
    assert (peer.text_of(REPLY), peer.text_of(OTHER)) == ("aaa", "bbb")


async def test_delta_that_does_not_fit_the_one_before_stays_apart() -> None:
    peer = Peer()
    outbox = Outbox(peer.send)
    peer.is_reading.clear()
    outbox.put("{}")
    outbox.put_delta(REPLY, offset=0, text="ab")
    outbox.put_delta(REPLY, offset=5, text="fg")
    peer.is_reading.set()
    await outbox.drain()
    assert [(frame["offset"], frame["text"]) for frame in peer.frames[1:]] == [(0, "ab"), (5, "fg")]


async def test_blocked_since_says_how_long_the_reader_has_been_stuck() -> None:
    peer = Peer()
    outbox = Outbox(peer.send)
    since_s = [outbox.blocked_since_s]
    peer.is_reading.clear()
    for _ in range(2):
        outbox.put("{}")
        await asyncio.sleep(0.02)
        since_s.append(outbox.blocked_since_s)
    peer.is_reading.set()
    await outbox.drain()
    since_s.append(outbox.blocked_since_s)
    assert since_s == [None, since_s[1], since_s[1], None]
    assert since_s[1] is not None


async def test_reader_far_behind_is_overfull_and_not_any_more_once_it_has_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outboxes, "MAX_WAITING_CHARS", 100)
    peer = Peer()
    outbox = Outbox(peer.send)
    peer.is_reading.clear()
    outbox.put("{}")
    await settle()
    outbox.put_delta(REPLY, offset=0, text="x" * 100)
    was_overfull = [outbox.is_overfull]
    outbox.put_delta(REPLY, offset=100, text="x")
    was_overfull.append(outbox.is_overfull)
    peer.is_reading.set()
    await outbox.drain()
    assert [*was_overfull, outbox.is_overfull] == [False, True, False]


@pytest.mark.parametrize("code", [4400, 4401, 4408, 4409, 4413, 4430])
async def test_close_is_sent_with_its_code_in_place_of_what_waits(code: int) -> None:
    peer = Peer()
    outbox = Outbox(peer.send)
    outbox.put("{}")
    outbox.put("{}")
    outbox.close(code)
    outbox.close(1012)
    await settle()
    assert peer.got == [{"type": "websocket.close", "code": code}]


async def test_close_reaches_a_reader_that_was_stuck() -> None:
    peer = Peer()
    outbox = Outbox(peer.send)
    peer.is_reading.clear()
    outbox.put("{}")
    await settle()
    outbox.close(4430)
    peer.is_reading.set()
    await settle()
    assert peer.got == [{"type": "websocket.close", "code": 4430}]


async def test_close_without_a_code_says_nothing() -> None:
    peer = Peer()
    outbox = Outbox(peer.send)
    outbox.put("{}")
    outbox.close()
    await settle()
    assert peer.got == []


async def test_closed_outbox_keeps_nothing() -> None:
    peer = Peer()
    outbox = Outbox(peer.send)
    peer.is_reading.clear()
    for _ in range(10):
        outbox.put("{}")
        await settle()
    outbox.close(4430)
    assert not outbox._waiting
    for number in range(1_000):
        outbox.put("{}")
        outbox.put_delta(REPLY, offset=number, text="x")
    assert not outbox._waiting
    peer.is_reading.set()
    await settle()
    assert len(peer.got) == 1


@pytest.mark.parametrize("error", [ConnectionResetError(), RuntimeError("closed")])
async def test_peer_that_went_away_ends_the_writing_without_an_error(error: Exception) -> None:
    peer = Peer()
    outbox = Outbox(peer.send)
    peer.error = error
    outbox.put("{}")
    await settle()
    assert outbox.is_closed
    outbox.put("{}")
    await settle()
    assert peer.got == []


entries = st.lists(
    st.tuples(st.sampled_from(["frame", "delta", "other", "pause", "go", "wait"]), st.text(min_size=1, max_size=5)),
    max_size=40,
)


@given(entries)
def test_whatever_the_pauses_every_text_arrives_whole_and_frames_in_order(run: list[tuple[str, str]]) -> None:
    async def go() -> None:
        peer = Peer()
        outbox = Outbox(peer.send)
        texts = {REPLY: "", OTHER: ""}
        frames = 0
        for kind, text in run:
            if kind == "frame":
                outbox.put(json.dumps({"type": "n", "n": frames}))
                frames += 1
            elif kind in {"delta", "other"}:
                reply = REPLY if kind == "delta" else OTHER
                outbox.put_delta(reply, offset=len(texts[reply]), text=text)
                texts[reply] += text
            elif kind == "wait":
                await settle()
            else:
                (peer.is_reading.clear if kind == "pause" else peer.is_reading.set)()
        peer.is_reading.set()
        await outbox.drain()
        assert [frame["n"] for frame in peer.frames if frame["type"] == "n"] == list(range(frames))
        assert {reply: peer.text_of(reply) for reply in texts} == texts

    asyncio.run(go())
