"""The arbiter: starts every process of the table, merges their logs, restarts what ends, stops all in order.

Started by `launch` (make run) and by `product` (flow tests, benchmarks) as `python -m deploy.local.supervise`, inside
the environment and below a guard process. Circus does the supervising; here are the order, the words and the stop.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
import time
from functools import partial
from itertools import groupby
from typing import Any

from circus.arbiter import Arbiter
from circus.exc import ConflictError
from circus.watcher import Watcher
from tornado.ioloop import IOLoop

from deploy.local.guard import adopt_orphans, end_descendants, follow_parent
from deploy.local.place import open_run_folders, read_place
from deploy.local.processes import ENGINES_RANK, Plan, make_plan, watcher_options
from deploy.local.ready import wait_until_ready
from deploy.local.restarts import Restarts, when_free
from deploy.local.stream import PrefixStream

CHECK_DELAY_S = 0.5
STRAY_GRACE_S = 3.0


class OpenArbiter(Arbiter):  # type: ignore[misc]
    """Circus's arbiter; watchers that others add through its socket get hooks too: their last words are read."""

    def __init__(self, watchers: list[Watcher], *, hooks: dict[str, Any], **options: Any) -> None:
        super().__init__(watchers, **options)
        self._guest_hooks = hooks

    def add_watcher(self, name: str, cmd: str, **options: Any) -> Watcher:
        """What the `add` command calls."""
        return super().add_watcher(name, cmd, **{"hooks": self._guest_hooks, **options})


class Supervision:
    """One run of the product, from the first process to the last."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._stream = PrefixStream(name="rapport")
        self._restarts = Restarts(self.say, counters=plan.place.counters)
        self._arbiter: Arbiter | None = None
        self._ranks = {process.name: process.rank for process in plan.processes}

    def say(self, text: str) -> None:
        """One line of our own in the merged log."""
        self._stream({"data": f"{text}\n", "pid": 0, "name": "stdout"})

    async def run(self) -> None:
        """Starts everything, says when it is ready, and returns once everything has stopped."""
        asked = asyncio.Event()
        self._arbiter = self._make_arbiter()
        loop = asyncio.get_running_loop()
        # After the arbiter, which puts up signal handlers of its own: its stop is all at once, ours is in order.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, asked.set)
        await self._arbiter.start()
        os.chmod(self._plan.place.circus_endpoint.removeprefix("ipc://"), 0o600)
        write_run_file(self._plan)
        announcing = asyncio.create_task(self._announce())
        await asked.wait()
        announcing.cancel()
        await self._stop()

    def _make_arbiter(self) -> Arbiter:
        sockets = self._plan.place.sockets
        for name in ("circus.sock", "circus-events.sock"):
            (sockets / name).unlink(missing_ok=True)
        watchers = [
            Watcher(**watcher_options(process, plan=self._plan), hooks=self._restarts.hooks)
            for process in self._plan.processes
        ]
        return OpenArbiter(
            watchers,
            hooks=self._restarts.guest_hooks,
            endpoint=self._plan.place.circus_endpoint,
            pubsub_endpoint=f"ipc://{sockets / 'circus-events.sock'}",
            check_delay=CHECK_DELAY_S,
            loop=IOLoop.current(),
        )

    async def _announce(self) -> None:
        for address in self._plan.addresses:
            await wait_until_ready(address, tell=self.say)
        began = float(self._plan.environ.get("RAPPORT_STARTED_AT") or time.time())
        address = self._plan.addresses[0]
        lines = (
            f"Rapport is ready, {time.time() - began:.0f} s after the start.",
            f"  chat   {address}/",
            f"  widget {address}/widget/demo/   (on a host page)",
            f"  staff  {address}/staff/",
            f"  admin  {address}/admin/",
            "Ctrl-C stops everything.",
        )
        for line in lines:
            self.say(line)

    async def _stop(self) -> None:
        """Web first, then worker and engines, Redis last; each group has its watchers' grace before it is killed."""
        arbiter = self._arbiter
        if arbiter is None:
            return
        self.say("stopping")
        self._restarts.stop()
        began = time.monotonic()
        by_rank = sorted(arbiter.watchers, key=self._rank_of)
        for _, group in groupby(by_rank, key=self._rank_of):
            watchers = list(group)
            await when_free(partial(arbiter.stop_watchers, partial(_in_any_order, watchers)))
        await when_free(arbiter.stop)
        strays = end_descendants(grace_s=STRAY_GRACE_S)
        note = f"; ended {strays} processes that were left" if strays else ""
        self.say(f"stopped after {time.monotonic() - began:.1f} s{note}")

    def _rank_of(self, watcher: Watcher) -> int:
        return self._ranks.get(watcher.name, ENGINES_RANK)


def _in_any_order(watchers: list[Watcher], *, reverse: bool = False) -> list[Watcher]:
    """What circus calls to learn which watchers to stop; a group stops at once, so its order is nothing."""
    return watchers[::-1] if reverse else watchers


def write_run_file(plan: Plan) -> None:
    """Says to others (the tests' runner, a person) where this run listens; no secret is in it."""
    content = {
        "supervisor_pid": os.getpid(),
        "circus_endpoint": plan.place.circus_endpoint,
        "addresses": plan.addresses,
        "processes": [process.name for process in plan.processes],
    }
    path = plan.place.run / "product.json"
    aside = path.with_suffix(".aside")
    aside.write_text(json.dumps(content, indent=1) + "\n")
    aside.replace(path)


def quiet_circus() -> None:
    """Circus reports a look that fell on a running command as an error with a traceback; it simply looks again."""

    def is_news(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], ConflictError))

    logging.getLogger("circus").setLevel(logging.WARNING)
    for name in ("circus", "tornado.application"):
        logging.getLogger(name).addFilter(is_news)


def main() -> int:
    """Reads the environment, runs until asked to stop."""
    parser = argparse.ArgumentParser(description="Runs every process of the product and merges their logs.")
    parser.add_argument("--web-processes", type=int, default=1)
    arguments = parser.parse_args()
    parent = os.environ.get("RAPPORT_PARENT_PID")
    if parent:
        follow_parent(int(parent))
    adopt_orphans()
    quiet_circus()
    place = read_place(os.environ)
    open_run_folders(place)
    environ = {name: value for name, value in os.environ.items() if name != "RAPPORT_PARENT_PID"}
    plan = make_plan(place, environ=environ, web_processes=arguments.web_processes)
    asyncio.run(Supervision(plan).run())
    return 0


if __name__ == "__main__":
    sys.exit(main())
