"""A visitor without a browser, over the real socket: says hello, sends, and puts deltas together as a page does."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self
from uuid import UUID, uuid4

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from chat.protocol import MAX_FRAME_BYTES
from tests.flows.product import RunningProduct

Event = dict[str, Any]
PATIENCE_S = 150.0  # for a reply of 400 tokens on a machine that has other things to do
PING_EVERY_S = 20.0
STORYTELLER = "You write very long texts. Number what you write. Never end before number two hundred."
# Chapters: the small model tells of them for hundreds of tokens, while of a long list it soon says that it is done.
STORIES = tuple(
    f"Tell me a very long story about {subject}, in fifty numbered chapters."
    for subject in (
        *("a river and its fish", "a baker and her bread", "a train and its journey", "a village by the sea"),
        *("a garden through the four seasons", "a school and its children", "a ship and crew", "a dog and its hill"),
    )
)


class Guest:
    """Somebody with a token and a conversation; `page(web=1)` opens it at the second web process."""

    def __init__(self, product: RunningProduct, *, site: str = "demo", web: int = 0) -> None:
        answer = product.call("POST", "/api/chat/start", body={"site": site, "locale": "en"}, web=web)
        assert answer.status == 200, answer
        self.product = product
        self.token = str(answer.body["token"])
        self.id = UUID(answer.body["visitor"])
        self.conversation = UUID(answer.body["conversation"])

    def page(self, *, web: int = 0, last_seq: int = 0) -> Page:
        return Page(self, web=web, last_seq=last_seq)

    def call(self, method: str, path: str, *, body: object = None) -> Any:
        """A REST call with the visitor's token; it must succeed."""
        answer = self.product.call(method, path, token=self.token, body=body)
        assert answer.status < 300, answer
        return answer.body


class Page:
    """One open socket. Every event that came is in `seen`, in order."""

    def __init__(self, guest: Guest, *, web: int = 0, last_seq: int = 0) -> None:
        self.guest = guest
        address = guest.product.addresses[web]
        self._open = ExitStack()
        line = connect(
            f"{address.replace('http', 'ws', 1)}/ws/chat/",
            origin=Origin(address),
            compression=None,
            max_size=16 * MAX_FRAME_BYTES,
            max_queue=None,
            ping_interval=None,
            proxy=None,
            open_timeout=20,
        )
        self._socket: ClientConnection = self._open.enter_context(line)
        self.seen: list[Event] = []
        self._texts: dict[str, str] = {}
        self.send(type="hello", token=guest.token, last_seq=last_seq)
        self.welcome = self.until("welcome")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._open.close()

    @property
    def is_open(self) -> bool:
        """Whether the line still answers."""
        try:
            self.send(type="ping")
            self.until("pong", timeout_s=5)
        except (ConnectionClosed, TimeoutError):
            return False
        return True

    def send(self, **event: object) -> None:
        self._socket.send(json.dumps(event, default=str))

    def next(self, timeout_s: float = PATIENCE_S) -> Event:
        event: Event = json.loads(self._receive(time.monotonic() + timeout_s))
        event["at_s"] = time.monotonic()
        self.seen.append(event)
        self._apply(event)
        return event

    def _receive(self, deadline_s: float) -> str | bytes:
        """The next frame; a page that waits long says ping, or it would be closed as idle."""
        while (left_s := deadline_s - time.monotonic()) > PING_EVERY_S:
            try:
                return self._socket.recv(timeout=PING_EVERY_S)
            except TimeoutError:
                self.send(type="ping")
        return self._socket.recv(timeout=max(left_s, 0.0))

    def _apply(self, event: Event) -> None:
        """Put a reply's text together as a page does: a delta that overlaps is cut, after a gap it asks again."""
        if event["type"] == "welcome":
            self._texts |= {message["id"]: message["text"] for message in event["changes"]}
            if event["live"]:
                self._texts[event["live"]["message_id"]] = event["live"]["text"]
        elif event["type"] == "reply.finished":
            self._texts[event["message"]["id"]] = event["message"]["text"]
        elif event["type"] == "reply.delta":
            text = self._texts.get(event["message_id"], "")
            if event["offset"] > len(text):
                self.send(type="hello", token=self.guest.token, last_seq=0)
            else:
                self._texts[event["message_id"]] = text + event["text"][len(text) - event["offset"] :]

    def until(self, kind: str, timeout_s: float = PATIENCE_S, **fields: object) -> Event:
        """The next event of this type whose fields equal these. Raises TimeoutError."""
        deadline = time.monotonic() + timeout_s
        while True:
            event = self.next(deadline - time.monotonic())
            if event["type"] == kind and all(event.get(key) == value for key, value in fields.items()):
                return event

    def hear(self, seconds: float) -> list[Event]:
        """Everything that arrives within the time."""
        begin, deadline = len(self.seen), time.monotonic() + seconds
        try:
            while True:
                self.next(deadline - time.monotonic())
        except TimeoutError:
            return self.seen[begin:]

    def say(self, text: str) -> Event:
        """Send a message and wait for its acknowledgement; returns the message."""
        client_id = uuid4().hex
        self.send(type="message.send", client_id=client_id, text=text)
        message: Event = self.until("message.accepted", client_id=client_id)["message"]
        return message

    def taste(self, text: str) -> Event:
        """Send a message and stop the reply once it has begun to speak; returns `reply.finished`."""
        self.say(text)
        return self.stop(str(self.until("reply.delta")["message_id"]))

    def read(self, *, most_characters: int) -> Event:
        """Read the running reply to its end, or stop it when it goes on for too long; returns `reply.finished`."""
        has_stopped = False
        while True:
            event = self.next()
            if event["type"] == "reply.finished":
                return event
            is_long = event["type"] == "reply.delta" and len(self.text_of(event["message_id"])) > most_characters
            if is_long and not has_stopped:
                has_stopped = True
                self.send(type="reply.stop", message_id=event["message_id"])

    def begin_story(self, *, characters: int = 120) -> str:
        """Ask the storyteller; returns the id of a reply that is running and shows so many characters.

        Where the model made a short end of it, it is asked for another one.
        """
        for story in STORIES:
            self.say(story)
            reply_id = self.until_shown(characters)
            if reply_id is not None:
                return reply_id
        ended = [event["message"] for event in self.seen if event["type"] == "reply.finished"]
        how = ", ".join(f"{message['status']} after {len(message['text'])} characters" for message in ended)
        raise AssertionError(f"every story ended before {characters} characters were shown: {how}")

    def until_shown(self, characters: int) -> str | None:
        """Read on until a running reply shows so many characters; its id, or None where one ended before."""
        while True:
            event = self.next()
            if event["type"] == "reply.delta" and len(self.text_of(event["message_id"])) >= characters:
                return str(event["message_id"])
            if event["type"] == "reply.finished":
                return None

    def until_text(self, message_id: str, text: str, *, timeout_s: float = 20.0) -> None:
        """Read on until the page shows exactly this text of a reply. Raises TimeoutError."""
        deadline = time.monotonic() + timeout_s
        while self.text_of(message_id) != text:
            self.next(deadline - time.monotonic())

    def stop(self, reply_id: str) -> Event:
        """Stop a reply; returns its `reply.finished`."""
        self.send(type="reply.stop", message_id=reply_id)
        while True:
            finished = self.until("reply.finished")
            if finished["message"]["id"] == reply_id:
                return finished

    def begin_and_stop(self, reply_id: str) -> Event:
        """The `reply.finished` of a reply that was stopped at its first words; the safety check may end one before."""
        while True:
            event = self.next()
            if event["type"] == "reply.delta" and event["message_id"] == reply_id:
                return self.stop(reply_id)
            if event["type"] == "reply.finished" and event["message"]["id"] == reply_id:
                assert event["message"]["status"] in {"complete", "blocked"}
                return event

    def end(self, reply_id: str) -> Event:
        """The reply's `reply.finished`, by a stop where it still runs."""
        for event in self.seen:
            if event["type"] == "reply.finished" and event["message"]["id"] == reply_id:
                return event
        return self.stop(reply_id)

    def text_of(self, message_id: str) -> str:
        """What this page shows of a reply now."""
        return self._texts.get(message_id, "")
