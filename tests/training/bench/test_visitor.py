"""A page under load puts a reply together as the real one does."""

from uuid import uuid4

import orjson

from training.bench.turns import hold_back_ms
from training.bench.visitor import Door, Heard, Seat, Visitor

SEAT = Seat(token="t", conversation="c", visitor="v")


class Deaf:
    """Takes what the visitor sends."""

    def __init__(self) -> None:
        self.sent: list[dict[str, object]] = []

    def send(self, payload: bytes) -> None:
        self.sent.append(orjson.loads(payload))


def visitor() -> tuple[Visitor, Deaf]:
    one, line = Visitor(SEAT, Door(url="ws://here/", origin="http://here")), Deaf()
    one._socket = line  # type: ignore[assignment]
    return one, line


def delta(offset: int, text: str) -> bytes:
    return orjson.dumps({"type": "reply.delta", "message_id": str(uuid4()), "offset": offset, "text": text})


def test_an_overlap_is_cut_and_a_gap_is_asked_for() -> None:
    one, line = visitor()
    one._take(delta(0, "I hear "))
    one._take(delta(5, "r you."))
    one._take(delta(50, "later"))
    assert one.heard.text == "I hear you."
    assert one.heard.gaps == 1
    assert [event["type"] for event in line.sent] == ["hello"]


def test_a_welcome_brings_the_running_text() -> None:
    one, _ = visitor()
    live = {"message_id": str(uuid4()), "text": "I hear", "offset": 6}
    one._take(orjson.dumps({"type": "welcome", "live": live, "changes": []}))
    one._take(delta(6, " you."))
    assert one.heard.text == "I hear you."


def test_a_welcome_after_the_end_brings_the_whole_text() -> None:
    one, _ = visitor()
    message = {"kind": "reply", "status": "complete", "text": "I hear you.", "changed_seq": 4}
    one._take(orjson.dumps({"type": "welcome", "live": None, "changes": [message]}))
    assert (one.heard.final_text, one.heard.status, one.last_seq) == ("I hear you.", "complete", 4)


def test_the_hold_back_counts_from_a_delta_s_first_token() -> None:
    heard = Heard(sent_s=0.0, deltas=[(1.0, 0, 9), (2.0, 9, 10)])
    assert [round(wait) for wait in hold_back_ms(heard, [0.9, 0.95, 1.5, 1.6])] == [100, 500]
