"""Start the encoder process: `python -m rubric.serve --model DIR --port N [--host 127.0.0.1]`.

It prints one line when it listens, serves until SIGTERM or SIGINT, then refuses new connections, lets what runs end
(at most 5 s) and exits with 0. A bad folder or a taken port ends it at once with a sentence and status 2.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path

from aiohttp import web

from rubric.serve.app import build_app
from rubric.serve.bundle import BundleInvalid, load_bundle
from rubric.serve.networks import Networks

DRAIN_S = 5.0

log = logging.getLogger("rubric.serve")


def main(arguments: list[str] | None = None) -> int:
    """Parse, check, serve; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m rubric.serve", description="Serve embeddings and the screen.")
    parser.add_argument("--model", type=Path, required=True, help="folder written by training.recipes.encoder_export")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    asked = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    try:
        bundle = load_bundle(asked.model)
        asyncio.run(_serve(Networks(bundle), host=asked.host, port=asked.port))
    except (BundleInvalid, OSError) as error:
        print(f"The encoder process cannot start: {error}", file=sys.stderr)  # noqa: T201 - before any log exists
        return 2
    return 0


async def _serve(networks: Networks, *, host: str, port: int) -> None:
    runner = web.AppRunner(build_app(networks), access_log=None, shutdown_timeout=DRAIN_S)
    await runner.setup()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        await web.TCPSite(runner, host, port).start()
        bundle = networks.bundle
        log.info("Listening on http://%s:%d with %s and %s.", host, port, bundle.encoder_version, bundle.screen_version)
        await stopped.wait()
        log.info("Stopping.")
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    sys.exit(main())
