"""The line that says what is still missing names the parts that are not well, and why."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from deploy.local.ready import look


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_only_what_is_not_well_is_named_however_much_is() -> None:
    well = [{"name": name, "ok": True, "why": "", "took_ms": 1.2345} for name in ("database", "redis", "worker") * 5]
    ill = {"name": "engine", "ok": False, "why": "policy-a is live and not served", "took_ms": 2.0}
    with answering(503, json.dumps({"ok": False, "parts": [*well, ill]}).encode()) as address:
        assert look(address) == "status 503: engine: policy-a is live and not served"


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"parts": 1}'])
def test_answer_of_something_else_is_told_by_its_size(body: bytes) -> None:
    with answering(500, body) as address:
        assert look(address) == f"status 500: {len(body)} bytes that are no answer of ours"


def test_ready_is_none_and_nobody_there_is_said() -> None:
    with answering(200, b"{}") as address:
        assert look(address) is None
    assert look(address) == "no answer yet (ConnectionRefusedError)"
