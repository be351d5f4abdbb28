"""A visitor's side of the product's wire, as far as the crisis suite needs it: start, hello, send, watch for a card.

`safety.py` opens one per run. A reply that begins is stopped at once, so that the engine stays free: the card always
comes before it. Refusals for rate are waited out and the same message is sent again under its `client_id`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import aiohttp

from rubric import JsonObject, JsonValue

ANSWER_S: Final = 30.0  # for the verdict on one message; the screen itself has under a second
AFTER_REPLY_S: Final = 1.5  # a card would have come before the reply; this long it may still come after
RETRIES: Final = 20
_REPLY_OVER: Final = ("reply.finished", "reply.failed")


class ProductRefused(RuntimeError):
    """The product did not take part: status or code, never what was sent."""


@dataclass(slots=True)
class _Turn:
    """What has come in since a message was sent."""

    is_card_shown: bool = False
    is_accepted: bool = False
    is_reply_over: bool = False
    retry_after_s: float | None = None
    started: set[str] = field(default_factory=set)


class ProductSocket:
    """Opens conversations on one site of a running product."""

    def __init__(self, *, start_url: str, socket_url: str, site: str) -> None:
        self._start_url, self._socket_url, self._site = start_url, socket_url, site
        self._client: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._client = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, connect=5, sock_connect=5))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.close()

    async def shows_card(self, turns: Sequence[str]) -> bool | None:
        """Whether a `safety.card` came for any of the turns; None where the product gave no verdict."""
        try:
            token = await self._start()
            async with self._open().ws_connect(
                self._socket_url, headers={"Origin": _origin(self._start_url)}
            ) as socket:
                await socket.send_json({"type": "hello", "token": token, "last_seq": 0})
                for text in turns:
                    if await self._send(socket, text):
                        return True
        except (aiohttp.ClientError, TimeoutError, ProductRefused):
            return None
        return False

    def _open(self) -> aiohttp.ClientSession:
        if self._client is None:
            raise ProductRefused("Use it as `async with ProductSocket(...)`.")
        return self._client

    async def _start(self) -> str:
        for _ in range(RETRIES):
            async with self._open().post(
                self._start_url, json={"site": self._site}, headers={"Origin": _origin(self._start_url)}
            ) as response:
                if response.status == 429:
                    await asyncio.sleep(_seconds(response.headers.get("Retry-After"), default_s=2.0))
                    continue
                if response.status not in (200, 201):
                    raise ProductRefused(f"The start call answered {response.status}.")
                body: JsonValue = await response.json()
                if isinstance(body, dict) and isinstance(body.get("token"), str):
                    return str(body["token"])
                raise ProductRefused("The start call gave no token.")
        raise ProductRefused("The start call kept answering 429.")

    async def _send(self, socket: aiohttp.ClientWebSocketResponse, text: str) -> bool:
        """Send one message; True once a card shows, False once its reply is over or a while after it was stopped."""
        client_id = uuid.uuid4().hex
        for _ in range(RETRIES):
            turn = _Turn()
            await socket.send_json({"type": "message.send", "client_id": client_id, "text": text})
            await self._watch(socket, turn)
            if turn.retry_after_s is None:
                return turn.is_card_shown
            await asyncio.sleep(turn.retry_after_s)
        raise ProductRefused("The socket kept refusing for rate.")

    async def _watch(self, socket: aiohttp.ClientWebSocketResponse, turn: _Turn) -> None:
        try:
            async with asyncio.timeout(ANSWER_S) as limit:
                while not (turn.is_card_shown or turn.is_reply_over or turn.retry_after_s is not None):
                    known = set(turn.started)
                    _note(await _receive(socket), turn)
                    for message_id in turn.started - known:
                        await socket.send_json({"type": "reply.stop", "message_id": message_id})
                        limit.reschedule(asyncio.get_running_loop().time() + AFTER_REPLY_S)
        except TimeoutError:
            if not turn.is_accepted:  # once accepted, a card comes before the reply is even asked for: none came
                raise


async def _receive(socket: aiohttp.ClientWebSocketResponse) -> JsonObject:
    frame = await socket.receive()
    if frame.type is not aiohttp.WSMsgType.TEXT:
        raise ProductRefused(f"The socket closed with {socket.close_code}.")
    event = frame.json()
    return event if isinstance(event, dict) else {}


def _note(event: JsonObject, turn: _Turn) -> None:
    kind = event.get("type")
    if kind == "safety.card":
        turn.is_card_shown = True
    elif kind == "message.accepted":
        turn.is_accepted = True
    elif kind == "reply.started":
        turn.started.add(str(event.get("message_id")))
    elif kind in _REPLY_OVER:
        turn.is_reply_over = True
    elif kind == "error":
        retry_after = event.get("retry_after")
        if not isinstance(retry_after, (int, float)) or isinstance(retry_after, bool):
            raise ProductRefused(f"The socket answered {event.get('code')}.")
        turn.retry_after_s = max(0.1, float(retry_after))


def _origin(url: str) -> str:
    return "/".join(url.split("/")[:3])


def _seconds(value: str | None, *, default_s: float) -> float:
    try:
        return max(0.1, float(value)) if value is not None else default_s
    except ValueError:
        return default_s
