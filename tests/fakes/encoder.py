"""A programmable encoder process: answers the wire of screen and judge with the levels a test wants, or misbehaves.

async with FakeEncoder(visitor={"crisis": "high"}) as encoder: a text that contains the key gets the level.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Self

from aiohttp import web

JUDGE = "judge-00000000fade"
PROBABILITY = {"none": 0.02, "watch": 0.6, "high": 0.97}


class FakeEncoder:
    """One server on a free port; change `visitor`, `reply`, `judged`, `takes_s`, `hangs`, `status` at any time."""

    def __init__(self, *, visitor: Mapping[str, str] | None = None, reply: Mapping[str, str] | None = None) -> None:
        self.visitor = dict(visitor or {})
        self.reply = dict(reply or {})
        self.uncovered = "zzz"
        self.takes_s = 0.0
        self.hangs = False
        self.status = 200
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.judge_version = JUDGE
        self.judged: tuple[float | None, ...] = ()  # the levels, in the order of the criteria
        self.evidence: tuple[int, int] | None = None
        self.asked_to_judge: list[dict[str, Any]] = []

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/screen", self._screen)
        app.router.add_post("/v1/judge", self._judge)
        app.router.add_get("/healthz", self._health)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _misbehave(self) -> web.Response | None:
        await asyncio.sleep(self.takes_s)
        if self.hangs:
            await asyncio.sleep(3600)
        return None if self.status == 200 else web.json_response({"error": "no"}, status=self.status)

    async def _health(self, _: web.Request) -> web.Response:
        versions = {"encoder_version": "encoder-fake", "screen_version": "screen-fake"}
        return web.json_response({**versions, "judge_version": self.judge_version, "waiting_windows": 0})

    async def _judge(self, request: web.Request) -> web.Response:
        self.asked_to_judge.append(json.loads(await request.read()))
        if (refusal := await self._misbehave()) is not None:
            return refusal
        levels = self.judged
        return web.json_response(
            {
                "version": self.judge_version,
                "levels": [None if one is None else [1 - one, 0.0, 0.0, 0.0, one] for one in levels],
                "expected": list(levels),
                "evidence": [None if one is None else self.evidence for one in levels],
                "none_reasons": ["empty_criterion" if one is None else None for one in levels],
                "genuine": 1.0,
                "mechanisms": [[1.0, 0.0, 0.0]] * 3,
            }
        )

    async def _screen(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        self.asked.append((body["direction"], tuple(body["texts"])))
        if (refusal := await self._misbehave()) is not None:
            return refusal
        table = self.visitor if body["direction"] == "visitor" else self.reply
        return web.json_response(
            {"version": "screen-fake", "readings": [self._reading(text, table) for text in body["texts"]]}
        )

    def _reading(self, text: str, table: Mapping[str, str]) -> dict[str, object]:
        level = next((level for key, level in table.items() if key in text), "none")
        return {"probability": PROBABILITY[level], "level": level, "is_covered": self.uncovered not in text}
