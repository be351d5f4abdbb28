"""Static files are sent whole, without a thread, with WhiteNoise's headers and those of every answer."""

import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, AsyncRequestFactory, Client
from pytest_django import Settings

from deploy.static_files import StaticFiles

CODE = b"let answer = 42;\n" * 500


@pytest.fixture(autouse=True)
def files(tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "app.js").write_bytes(CODE)
    (tmp_path / "app.js.gz").write_bytes(gzip.compress(CODE))
    settings.STATIC_ROOT = tmp_path
    settings.WHITENOISE_USE_FINDERS = False


async def test_file_comes_whole_with_its_headers_and_those_of_every_answer() -> None:
    response = await AsyncClient().get("/static/app.js")
    assert (response.status_code, response.streaming) == (200, False)
    assert response.content == CODE
    assert response["Content-Type"].startswith("text/javascript")
    assert response["Content-Length"] == str(len(CODE))
    assert response["Vary"] == "Accept-Encoding"
    assert "max-age" in response["Cache-Control"]
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'self'" in response["Content-Security-Policy"]
    again = await AsyncClient().get("/static/app.js", headers={"If-None-Match": response["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_compressed_variant_goes_to_who_reads_it() -> None:
    response = await AsyncClient().get("/static/app.js", headers={"Accept-Encoding": "gzip"})
    assert response["Content-Encoding"] == "gzip"
    assert gzip.decompress(response.content) == CODE


async def test_range_head_and_other_methods() -> None:
    part = await AsyncClient().get("/static/app.js", headers={"Range": "bytes=4-9"})
    assert (part.status_code, part.content) == (206, CODE[4:10])
    head = await AsyncClient().head("/static/app.js")
    assert (head.status_code, head.content, head["Content-Length"]) == (200, b"", str(len(CODE)))
    assert (await AsyncClient().post("/static/app.js")).status_code == 405


async def test_neither_a_file_nor_another_request_leaves_the_loops_thread() -> None:
    threads = []

    async def view(request: HttpRequest) -> HttpResponse:
        threads.append(threading.current_thread())
        return HttpResponse("a page")

    middleware = StaticFiles(view)
    assert (await middleware(AsyncRequestFactory().get("/static/app.js"))).content == CODE
    assert (await middleware(AsyncRequestFactory().get("/page"))).content == b"a page"
    assert threads == [threading.current_thread()]


def test_synchronous_client_gets_the_same() -> None:
    response = Client().get("/static/app.js")
    assert (response.content, response.streaming) == (CODE, False)


def test_worker_that_runs_as_root_is_not_warned_of_pickled_messages_which_it_does_not_take() -> None:
    code = (
        "import deploy.celery; from celery.platforms import check_privileges;"
        "app = deploy.celery.app; check_privileges(app.conf.accept_content); print(sorted(app.conf.accept_content))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=django_settings.BASE_DIR,
        env={**os.environ},
    )
    assert (done.stdout, done.stderr) == ("['json']\n", "")
