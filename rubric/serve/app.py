"""The encoder process's HTTP door: `GET /healthz`, `POST /v1/screen`, `POST /v1/embed`, `POST /v1/judge`.

The judge's door has a file of its own, `judge_door.py`. A request of the others is `{"texts": [...], "direction":
"visitor" | "reply", "deadline_ms": n}` (direction for screen only). Errors are `{"error": {"code",
"message"}}`: 400 malformed, 413 too large, 503 full (`Retry-After`), 504 deadline. Texts are never logged nor echoed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from aiohttp import web

from rubric.json_types import JsonValue
from rubric.serve.judge_door import JudgeDoor
from rubric.serve.networks import Networks, join_embeddings
from rubric.serve.queue import ComputeFailed, DeadlinePassed, Job, QueueFull, Vector, WindowQueue
from rubric.serve.requests import BODY_BYTES_MAX, RequestInvalid, parse_request, read_body
from rubric.serve.texts import Window

WINDOWS_MAX: Final = 1_024  # may wait at once: about 15 s of one core's work at worst

_NETWORKS: Final = web.AppKey("networks", Networks)
_QUEUE: Final = web.AppKey("queue", WindowQueue)


def build_app(networks: Networks, *, windows_max: int = WINDOWS_MAX) -> web.Application:
    """The application; its queue starts and stops with it."""
    app = web.Application(client_max_size=BODY_BYTES_MAX, middlewares=[_errors])
    app[_NETWORKS] = networks
    app[_QUEUE] = queue = WindowQueue(networks.compute, windows_max=windows_max)
    app.cleanup_ctx.append(_run_queue)
    app.add_routes([web.get("/healthz", health), web.post("/v1/screen", screen), web.post("/v1/embed", embed)])
    door = JudgeDoor(networks.judge, queue, version=networks.bundle.judge_version)
    app.add_routes([web.post("/v1/judge", door.answer)])
    return app


async def _run_queue(app: web.Application) -> AsyncIterator[None]:
    app[_QUEUE].start()
    yield
    await app[_QUEUE].stop()


async def health(request: web.Request) -> web.Response:
    """Versions by content hash and how much waits."""
    bundle = request.app[_NETWORKS].bundle
    return web.json_response(
        {
            "status": "ok",
            "encoder_version": bundle.encoder_version,
            "screen_version": bundle.screen_version,
            "judge_version": bundle.judge_version,
            "waiting_windows": request.app[_QUEUE].waiting_windows,
        }
    )


async def screen(request: web.Request) -> web.Response:
    """One reading per text, in order."""
    networks = request.app[_NETWORKS]
    asked = parse_request(await read_body(request), wants_direction=True)
    windows = [networks.screen_windows(text) for text in asked.texts]
    vectors = await _compute(request, "screen", windows, deadline_s=asked.deadline_s)
    readings: list[JsonValue] = []
    for text, of_text in zip(asked.texts, vectors, strict=True):
        reading = networks.reading(text, of_text, direction=asked.direction)
        readings.append(
            {"probability": reading.probability, "level": reading.level.value, "is_covered": reading.is_covered}
        )
    return web.json_response({"version": networks.bundle.screen_version, "readings": readings})


async def embed(request: web.Request) -> web.Response:
    """One unit vector per text, in order."""
    networks = request.app[_NETWORKS]
    asked = parse_request(await read_body(request), wants_direction=False)
    windows = [networks.embed_windows(text) for text in asked.texts]
    vectors = await _compute(request, "embed", windows, deadline_s=asked.deadline_s)
    embeddings = [join_embeddings(of_text, cut) for of_text, cut in zip(vectors, windows, strict=True)]
    return web.json_response({"version": networks.bundle.encoder_version, "embeddings": embeddings})


async def _compute(
    request: web.Request, network: str, windows: Sequence[tuple[Window, ...]], *, deadline_s: float
) -> list[list[Vector]]:
    """The vectors of each text's windows, through the queue as one request."""
    jobs = [Job(network, window) for of_text in windows for window in of_text]
    vectors = iter(await request.app[_QUEUE].submit(jobs, deadline_s=deadline_s))
    return [[next(vectors) for _ in of_text] for of_text in windows]


@web.middleware
async def _errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Named errors become statuses with a code."""
    try:
        return await handler(request)
    except RequestInvalid as error:
        return _error(error.status, "too_large" if error.status == 413 else "invalid_request", str(error))
    except QueueFull as error:
        return _error(503, "queue_full", str(error), headers={"Retry-After": "1"})
    except DeadlinePassed as error:
        return _error(504, "deadline_passed", str(error))
    except ComputeFailed as error:
        return _error(500, "compute_failed", str(error))
    except web.HTTPRequestEntityTooLarge:
        return _error(413, "too_large", f"The body has more than {BODY_BYTES_MAX} bytes.")


def _error(status: int, code: str, message: str, *, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"error": {"code": code, "message": message}}, status=status, headers=headers)
