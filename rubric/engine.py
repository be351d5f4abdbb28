"""The one client of every model server: OpenAI-compatible chat completions, streamed or whole.

`chat.reply` streams, `rubric.generator` and `rubric.judge` ask for whole answers. The client knows endpoints, not
servers: see `rubric.engine_values.Dialect`. Leaving a stream early (`aclose`, cancellation) drops the connection at
once, which is how an engine learns to stop; wrap every `stream()` in `contextlib.aclosing`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import aiohttp

from rubric.dialogue import Transcript
from rubric.engine_reply import ReplyBuilder, RequestClock
from rubric.engine_stream import EventSplitter
from rubric.engine_values import (
    Completion,
    Deadlines,
    Dialect,
    Endpoint,
    EngineFeatures,
    LogprobKind,
    Piece,
    Sampling,
    TemplateNeeds,
)
from rubric.engine_wire import DONE, fit_transcript, parse_answer, parse_chunk, request_body
from rubric.errors import EngineBroken, EngineRefused, EngineTimeout, EngineUnreachable
from rubric.json_types import JsonObject

__all__ = [
    "ChatModel",
    "Completion",
    "Deadlines",
    "Dialect",
    "Endpoint",
    "EngineFeatures",
    "HttpChatModel",
    "LogprobKind",
    "Piece",
    "Sampling",
    "TemplateNeeds",
    "fit_transcript",
    "open_client",
]

_COMPLETIONS = "/v1/chat/completions"
_USAGE_WAIT_S = 2.0  # for the usage event after the finish reason; a whole reply is not lost for its counts
_KEEP_ALIVE_S = 3.0  # below the 5 s after which common servers close, so that no request meets a closing connection


class ChatModel(Protocol):
    """A model that answers a transcript; tests bring their own."""

    endpoint: Endpoint

    def stream(
        self,
        transcript: Transcript,
        *,
        sampling: Sampling,
        deadlines: Deadlines,
        request_id: str,
        priority: int = 0,
    ) -> AsyncGenerator[Piece | Completion]:
        """Give the reply piece by piece; the Completion comes last. `aclose()` stops the engine's work."""

    async def complete(
        self,
        transcript: Transcript,
        *,
        sampling: Sampling,
        deadlines: Deadlines,
        request_id: str,
        schema: JsonObject | None = None,
        n: int = 1,
        priority: int = 0,
    ) -> tuple[Completion, ...]:
        """Give `n` whole replies, held to `schema` where one is given."""


def open_client() -> aiohttp.ClientSession:
    """Open the HTTP client that all models of one process share; the caller closes it.

    No limit on connections: admission decides how many requests run, and a pool's queue would hide waiting.
    """
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S)
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        read_bufsize=1 << 18,
        trust_env=False,
    )


class HttpChatModel:
    """The model behind one endpoint."""

    def __init__(self, endpoint: Endpoint, client: aiohttp.ClientSession) -> None:
        self.endpoint = endpoint
        self._client = client

    async def stream(
        self,
        transcript: Transcript,
        *,
        sampling: Sampling,
        deadlines: Deadlines,
        request_id: str,
        priority: int = 0,
    ) -> AsyncGenerator[Piece | Completion]:
        """See ChatModel. Raises EngineError; what was yielded before stays with the caller."""
        body = request_body(
            self.endpoint, transcript, sampling=sampling, request_id=request_id, is_stream=True, priority=priority
        )
        clock = RequestClock(deadlines)
        reply = ReplyBuilder(self.endpoint, sampling, request_id=request_id)
        splitter = EventSplitter()
        async with self._posted(body, clock) as response:
            while not reply.is_over and (data := await self._more(response, clock, reply)):
                for payload in splitter.feed(data):
                    if payload == DONE:
                        reply.is_over = True
                        break
                    piece = reply.take(parse_chunk(payload))
                    if piece is not None:
                        clock.note_token()
                        yield piece
                        clock.resume()
        if reply.finish_reason is None:
            raise EngineBroken(reason=f"the stream ended after {reply.pieces} pieces without a finish reason")
        yield reply.completion(clock)

    async def complete(
        self,
        transcript: Transcript,
        *,
        sampling: Sampling,
        deadlines: Deadlines,
        request_id: str,
        schema: JsonObject | None = None,
        n: int = 1,
        priority: int = 0,
    ) -> tuple[Completion, ...]:
        """See ChatModel. Only the connect and the whole deadline apply, since nothing arrives before the end."""
        body = request_body(
            self.endpoint,
            transcript,
            sampling=sampling,
            request_id=request_id,
            schema=schema,
            n=n,
            priority=priority,
        )
        clock = RequestClock(deadlines, is_whole=True)
        async with self._posted(body, clock) as response:
            payload = await clock.waited(response.read())
        completions = []
        for chunk in parse_answer(payload):
            reply = ReplyBuilder(self.endpoint, sampling, request_id=request_id)
            reply.take(chunk)
            if reply.finish_reason is None:
                raise EngineBroken(reason="an answer without a finish reason")
            completions.append(reply.completion(clock))
        if not completions:
            raise EngineBroken(reason="an answer without choices")
        return tuple(completions)

    @staticmethod
    async def _more(response: aiohttp.ClientResponse, clock: RequestClock, reply: ReplyBuilder) -> bytes:
        """Wait for the next bytes; b"" at the end. Once the finish reason is here only the usage may still come."""
        if reply.finish_reason is None:
            return await clock.waited(response.content.readany())
        try:
            return await asyncio.wait_for(response.content.readany(), _USAGE_WAIT_S)
        except (TimeoutError, aiohttp.ClientError, OSError):
            return b""

    @asynccontextmanager
    async def _posted(self, body: bytes, clock: RequestClock) -> AsyncIterator[aiohttp.ClientResponse]:
        """Post, refuse what is not 200, and close the connection however the block is left."""
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self.endpoint.api_key:
            headers["Authorization"] = f"Bearer {self.endpoint.api_key}"
        if self.endpoint.dialect.closes_connections:
            headers["Connection"] = "close"
        connect_s = clock.deadlines.connect_s
        try:
            response = await clock.waited(
                self._client.post(
                    self.endpoint.base_url + _COMPLETIONS,
                    data=body,
                    headers=headers,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_s),
                )
            )
        except aiohttp.ConnectionTimeoutError as error:
            raise EngineTimeout(stage="connect", limit_s=connect_s) from error
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
            raise EngineUnreachable(base_url=self.endpoint.base_url, reason=type(error).__name__) from error
        except (aiohttp.ClientError, OSError) as error:
            raise EngineBroken(reason=f"no answer came ({type(error).__name__})") from error
        try:
            if response.status != 200:
                detail = await clock.waited(response.content.read(1 << 16))
                raise EngineRefused(status=response.status, detail_chars=len(detail))
            yield response
        except (aiohttp.ClientError, OSError) as error:
            raise EngineBroken(reason=f"the connection broke ({type(error).__name__})") from error
        finally:
            response.close()  # a connection whose answer was read to its end is back in the pool and stays open
