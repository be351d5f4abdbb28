"""Benchmarks that need the running product or its encoder process: starts that and hands its address to the bench.

`make bench-safety` starts the whole product on a scratch folder, `make bench-judge` the encoder process alone, on the
export that `make run` serves. The benches themselves lie in the workshop (`training.bench`), which knows no Django.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deploy.local.place import ROOT, read_place
from deploy.local.processes import free_port
from deploy.local.product import start_product

WITHOUT_LIMITS = {"DJANGO_SETTINGS_MODULE": "deploy.local.bench_settings"}
ENCODER_START_S = 180.0  # as long as the product has; a busy machine loads slowly
ENCODER_STOP_S = 10.0


class EncoderNotStarted(Exception):
    """The encoder process did not answer; the text says what became of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningEncoder:
    """An encoder process of our own."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """Its address on this machine."""
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def start_encoder(folder: Path, *, timeout_s: float = ENCODER_START_S) -> Iterator[RunningEncoder]:
    """Serves an export for the length of the block. Raises EncoderNotStarted."""
    port = free_port()
    command = (sys.executable, "-m", "rubric.serve", "--model", str(folder), "--port", str(port))
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL)
    try:
        _wait_for(port, process, timeout_s=timeout_s)
        yield RunningEncoder(port=port, process=process)
    finally:
        process.terminate()
        try:
            process.wait(timeout=ENCODER_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], *, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not _is_well(port):
        if process.poll() is not None:
            raise EncoderNotStarted(f"The encoder process ended with {process.returncode} before it answered.")
        if time.monotonic() > deadline:
            raise EncoderNotStarted(f"The encoder process did not answer within {timeout_s:.0f} s.")
        time.sleep(0.1)


def _is_well(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2.0)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def bench_safety() -> int:
    """The crisis suite through the socket of a fresh product."""
    with (
        tempfile.TemporaryDirectory(prefix="rapport-bench-") as folder,
        start_product(Path(folder), env=WITHOUT_LIMITS) as product,
    ):
        socket = f"{product.address.replace('http', 'ws', 1)}/ws/chat/"
        return _run("training.bench.safety", "--url", socket, "--start", f"{product.address}/api/chat/start")


def bench_judge() -> int:
    """The judges, or those parts that PART names."""
    folder = Path(os.environ["RAPPORT_ENCODER_FOLDER"])
    data = read_place(os.environ).data
    with start_encoder(folder) as encoder:
        served = ("--encoder", encoder.url, "--pid", str(encoder.process.pid), "--folder", str(folder))
        chosen = ("--parts", os.environ.get("PART", ""), "--predictions", str(data))
        return _run("training.bench.judge", *served, *chosen)


BENCHES = {"safety": bench_safety, "judge": bench_judge}


def _run(module: str, *arguments: str) -> int:
    command = (sys.executable, "-m", module, *arguments)
    return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode


def main(name: str) -> int:
    """Runs one bench; returns its exit status."""
    try:
        return BENCHES[name]()
    except EncoderNotStarted as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
