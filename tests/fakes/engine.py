"""A programmable model server: it speaks the chat-completions wire and misbehaves on demand.

    async with FakeEngine(Script(tokens=("Hel", "lo"), die_at=1)) as engine:
        model = HttpChatModel(engine.endpoint(), client)

It counts the tokens that it generated and notices when its client went away, as a real engine does. Used by the
tests of `rubric.engine` and of `chat.reply`.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web

from rubric.engine import Dialect, Endpoint, EngineFeatures

FULL = EngineFeatures(adapters=True, logprobs=True, schema=True, token_ids=True, priority=True)


@dataclass(frozen=True, kw_only=True)
class Script:
    """What the server does with a request."""

    tokens: Sequence[str] = tuple(f"word{i} " for i in range(10))
    status: int = 200  # any other: answered with a JSON error
    hangs: bool = False  # takes the request and never answers
    hang_at: int | None = None  # falls silent before this token
    ping_s: float | None = None  # while silent, a comment line each so many seconds
    die_at: int | None = None  # cuts the connection before this token
    error_at: int | None = None  # an error event under status 200 before this token
    garbage_at: int | None = None  # an event that is no JSON before this token
    first_s: float = 0.0  # silence before the first token
    gap_s: float = 0.0  # silence before each further token
    sends_role: bool = True  # a role-only first chunk
    sends_usage: bool = True  # a usage-only last chunk with no choices
    sends_done: bool = True
    finish_reason: str | None = "stop"  # None: the stream just ends
    has_entries: bool = True  # a log-probability entry for each token
    entry_step: int = 1  # one entry for so many tokens (characters of several tokens)
    logprob: float | None = -0.5
    uses_prob: bool = False  # `prob` in place of `logprob`
    extra_tokens: int = 0  # counted in the usage, without an entry
    token_bytes: Sequence[bytes] | None = None  # what the tokens are; `tokens` then says what a server makes of them
    raw: Sequence[bytes] | None = None  # sent as they are, in place of any of this


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request as it arrived."""

    body: dict[str, Any]
    headers: dict[str, str]


class FakeEngine:
    """One server on a free port of the loopback; change `script` between requests."""

    def __init__(self, script: Script | None = None, *, port: int = 0) -> None:
        self.script = script or Script()
        self.asked: list[Asked] = []
        self.generated_tokens = 0
        self.lost_clients = 0
        self.running = 0
        self._port = port  # until it is started: where nobody listens

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/health", self._listens)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def endpoint(self, *, features: EngineFeatures = FULL, dialect: Dialect | None = None, **rest: Any) -> Endpoint:
        return Endpoint(
            base_url=self.base_url,
            model="fake-1",
            driver="fake",
            features=features,
            dialect=dialect or Dialect(sampled_kind="processed"),
            **rest,
        )

    async def _listens(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(Asked(body=json.loads(await request.read()), headers=dict(request.headers)))
        self.running += 1
        try:
            return await self._answer(request, self.script)
        except (asyncio.CancelledError, ConnectionError):
            self.lost_clients += 1
            raise
        finally:
            self.running -= 1

    async def _answer(self, request: web.Request, script: Script) -> web.StreamResponse:
        if script.status != 200:
            return web.json_response({"error": {"message": "no", "code": script.status}}, status=script.status)
        if script.hangs:
            await asyncio.sleep(3600)
        if not self.asked[-1].body.get("stream"):
            return await self._whole(request, script)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for part in script.raw or ():
            await response.write(part)
            await asyncio.sleep(0.005)
        if script.raw is None:
            await self._stream(request, response, script)
        return response

    async def _stream(self, request: web.Request, response: web.StreamResponse, script: Script) -> None:
        if script.sends_role:
            await response.write(_event(_delta({"role": "assistant", "content": None})))
        for index, token in enumerate([*script.tokens, None]):
            if await self._misbehave(request, response, index) or token is None:
                break
            await asyncio.sleep(script.gap_s if index else script.first_s)
            self.generated_tokens += 1
            await response.write(_event(_delta({"content": token}, entries=_entries(script, index))))
        else:
            return
        if request.transport is None or request.transport.is_closing():
            return
        if script.finish_reason is not None:
            await response.write(_event(_delta({}, finish_reason=script.finish_reason)))
        if script.sends_usage:
            await response.write(_event({"choices": [], "usage": _usage(script)}))
        if script.sends_done:
            await response.write(b"data: [DONE]\n\n")

    async def _misbehave(self, request: web.Request, response: web.StreamResponse, index: int) -> bool:
        """Do what the script has for this place; True ends the tokens."""
        script = self.script
        if script.die_at == index:
            assert request.transport is not None
            await asyncio.sleep(0.02)  # what was written is on its way
            request.transport.abort()
            raise ConnectionResetError
        if script.hang_at == index:
            while True:
                await asyncio.sleep(script.ping_s or 3600)
                await response.write(b": ping\n\n")
        if script.error_at == index:
            await response.write(_event({"error": {"code": 500, "message": "engine dead"}}))
        if script.garbage_at == index:
            await response.write(b"data: {half\n\n")
        return False

    async def _whole(self, request: web.Request, script: Script) -> web.StreamResponse:
        if script.raw is not None:
            return web.Response(body=b"".join(script.raw), content_type="application/json")
        for index in range(len(script.tokens)):
            await self._misbehave(request, web.StreamResponse(), index)
            await asyncio.sleep(script.gap_s if index else script.first_s)
            self.generated_tokens += 1
        entries = [entry for i in range(len(script.tokens)) for entry in _entries(script, i)]
        choices = [
            {
                "index": i,
                "message": {"role": "assistant", "content": "".join(script.tokens)},
                "finish_reason": script.finish_reason,
                "logprobs": {"content": entries} if entries else None,
            }
            for i in reversed(range(self.asked[-1].body.get("n", 1)))
        ]
        return web.json_response({"choices": choices, "usage": _usage(script)})


def closed_port() -> int:
    """A port of the loopback on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _event(payload: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def _delta(
    delta: dict[str, Any], *, entries: list[dict[str, Any]] | None = None, finish_reason: str | None = None
) -> dict[str, Any]:
    choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    if entries:
        choice["logprobs"] = {"content": entries}
    return {"id": "chatcmpl-fake", "choices": [choice]}


def _entries(script: Script, index: int) -> list[dict[str, Any]]:
    if not script.has_entries or index % script.entry_step:
        return []
    value = {"prob": 2.718281828459045**script.logprob} if script.uses_prob and script.logprob else {}
    known = (
        script.token_bytes[index] if script.token_bytes is not None else script.tokens[index].encode("utf-8", "replace")
    )
    return [
        {
            "id": 1000 + index,
            "token": script.tokens[index],
            "bytes": list(known),
            **(value or {"logprob": script.logprob}),
        }
    ]


def _usage(script: Script) -> dict[str, int]:
    tokens = len(script.tokens) + script.extra_tokens
    return {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": tokens + 7}
