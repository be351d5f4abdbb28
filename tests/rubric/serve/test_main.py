"""The process as `make run` starts it: it listens on loopback, answers, and ends cleanly on SIGTERM."""

import asyncio
import shutil
import signal
import socket
import sys
from pathlib import Path

import pytest

from rubric import EncoderClient, EncoderUnavailable, Level


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


async def start(folder: Path, port: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "rubric.serve",
        "--model",
        str(folder),
        "--port",
        str(port),
        stderr=asyncio.subprocess.PIPE,
    )


async def wait_until_healthy(client: EncoderClient) -> None:
    for _ in range(300):
        try:
            await client.health()
        except EncoderUnavailable:
            await asyncio.sleep(0.1)
        else:
            return
    raise AssertionError("the process did not become healthy within 30 s")


async def test_the_process_answers_and_ends_with_0_on_sigterm(tiny_bundle: Path) -> None:
    port = free_port()
    process = await start(tiny_bundle, port)
    try:
        async with EncoderClient(f"http://127.0.0.1:{port}", timeout_s=5.0) as client:
            await wait_until_healthy(client)
            assert (await client.screen(["a knife"], direction="visitor"))[0].level is Level.HIGH
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), 10) == 0
            with pytest.raises(EncoderUnavailable):
                await client.health()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    log = (await process.stderr.read()).decode() if process.stderr else ""
    assert "screen-tiny" in log
    assert "knife" not in log


async def test_a_folder_that_is_no_export_ends_the_start_with_a_sentence(tiny_bundle: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(tiny_bundle, tmp_path / "broken"))
    (broken / "manifest.json").unlink()
    process = await start(broken, free_port())
    _, errors = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 2
    assert "cannot start" in errors.decode()
    assert "Traceback" not in errors.decode()


async def test_a_taken_port_ends_the_start_with_a_sentence(tiny_bundle: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = await start(tiny_bundle, taken.getsockname()[1])
        _, errors = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 2
    assert "cannot start" in errors.decode()
