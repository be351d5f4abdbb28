"""The start command looks before it changes anything, and never starts twice on one data folder."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local import launch
from deploy.local.place import ROOT, Place, open_run_folders, read_place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    environ = {"RAPPORT_CACHE": str(tmp_path / "cache"), "RAPPORT_DATA": str(tmp_path / "data"), "RAPPORT_PORT": "1"}
    return read_place(environ)


def run_make(*arguments: str, tmp_path: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    folders = {"RAPPORT_CACHE": str(tmp_path / "cache"), "RAPPORT_DATA": str(tmp_path / "data")}
    return subprocess.run(
        ("make", *arguments),
        cwd=ROOT,
        env={**os.environ, **folders, **environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_taken_port_stops_make_run_before_anything_is_changed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        done = run_make("run", tmp_path=tmp_path, RAPPORT_PORT=port)
    assert done.returncode != 0
    assert f"Port {port} on 127.0.0.1 is not free" in done.stdout
    assert "nothing was changed" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_every_problem_is_shown_at_once(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = run_make("run", tmp_path=tmp_path, RAPPORT_PORT=str(server.getsockname()[1]), PATH="/usr/bin:/bin")
    assert "is not free" in done.stdout
    assert "No right to write" in done.stdout


def test_a_setting_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    done = run_make("run", tmp_path=tmp_path, RAPPORT_PORT="http")
    assert done.returncode != 0
    assert "RAPPORT_PORT must be a number" in done.stdout


def test_a_setting_that_the_processes_would_refuse_is_named_at_once(tmp_path: Path) -> None:
    done = run_make("run", tmp_path=tmp_path, RAPPORT_ENGINE="abacus", RAPPORT_PORT="18999")
    assert done.returncode != 0
    assert "RAPPORT_ENGINE is 'abacus'" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_vllm_is_set_up_only_where_it_runs_here_and_is_not_the_operators_own() -> None:
    def kinds(**environ: str) -> list[str]:
        return [part.kind for part in launch.installation_parts(read_place(environ))]

    assert kinds() == ["env/main", "node", "front", "model", "encoder"]
    assert kinds(RAPPORT_ENGINE="vllm")[-1] == "env/vllm"
    assert "env/vllm" not in kinds(RAPPORT_ENGINE="vllm", RAPPORT_VLLM_PYTHON="/usr/bin/python3")
    assert "env/vllm" not in kinds(RAPPORT_ENGINE="vllm", RAPPORT_ENGINE_URL="http://gpu:8000")


def test_another_model_changes_the_models_folder_alone(place: Place, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    ours = {"RAPPORT_CACHE": str(place.cache)}

    def folders(**environ: str) -> dict[str, Path]:
        there = read_place({**ours, **environ})
        return {part.kind: part.folder(there.cache) for part in launch.installation_parts(there)}

    packaged, mine = folders(), folders(RAPPORT_MODEL=str(tmp_path / "mine"))
    assert {kind for kind in packaged if packaged[kind] != mine[kind]} == {"model"}
    (tmp_path / "mine" / "model.safetensors").write_text("weights")
    assert folders(RAPPORT_MODEL=str(tmp_path / "mine"))["model"] not in {packaged["model"], mine["model"]}


def test_a_second_start_says_that_it_is_already_running(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    open_run_folders(place)
    assert launch.who_runs(place) is None
    with place.lock.open("a+") as lock:
        assert launch.take_lock(lock, place=place)
        assert launch.who_runs(place) == f"process {os.getpid()}, {place.address}"
        assert launch.run(place) == 1
    assert "already running" in capsys.readouterr().out
    assert launch.who_runs(place) is None


def test_the_lock_is_held_as_long_as_the_arbiter_lives(place: Place) -> None:
    open_run_folders(place)
    with place.lock.open("a+") as lock:
        launch.take_lock(lock, place=place)
        arbiter = subprocess.Popen((sys.executable, "-c", "input()"), stdin=subprocess.PIPE, pass_fds=(lock.fileno(),))
    assert launch.who_runs(place) is not None
    arbiter.communicate(b"\n")
    assert launch.who_runs(place) is None


def test_the_secret_key_is_made_once_and_private(place: Place) -> None:
    open_run_folders(place)
    launch.write_secret_key(place.data, environ={})
    key = (place.data / "secret_key").read_text()
    assert len(key) > 50
    assert (place.data / "secret_key").stat().st_mode & 0o777 == 0o600
    launch.write_secret_key(place.data, environ={})
    assert (place.data / "secret_key").read_text() == key


def test_a_key_of_the_operators_own_makes_no_file(place: Place) -> None:
    open_run_folders(place)
    launch.write_secret_key(place.data, environ={"RAPPORT_SECRET_KEY": "own"})
    assert not (place.data / "secret_key").exists()
