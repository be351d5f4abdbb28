"""Each missing thing is named, with what to do about it, and nothing is changed by looking."""

import socket
from pathlib import Path

import pytest

from deploy.local import machine


def test_the_right_python_is_no_problem() -> None:
    assert machine.check_python((3, 11), has_venv=True) is None


@pytest.mark.parametrize("version", [(3, 9), (3, 12), (2, 7)])
def test_another_python_is_named_and_how_to_choose_one(version: tuple[int, int]) -> None:
    problem = machine.check_python(version, has_venv=True)
    assert problem is not None
    assert f"{version[0]}.{version[1]}" in problem.missing
    assert "make run PYTHON=" in problem.remedy


def test_a_python_without_venv_names_the_package_that_brings_it() -> None:
    problem = machine.check_python((3, 11), has_venv=False)
    assert problem is not None
    assert "python3.11-venv" in problem.remedy


@pytest.mark.parametrize("version", ["v20.20.2\n", "v22.1.0\n"])
def test_node_20_and_newer_are_no_problem(version: str) -> None:
    assert machine.check_node(version, has_npm=True) is None


@pytest.mark.parametrize(
    ("version", "has_npm", "named"),
    [(None, False, "Node.js is not installed"), ("v18.19.0\n", True, "v18.19.0"), ("v20.0.0\n", False, "npm")],
)
def test_missing_old_or_half_node_is_named(version: str | None, has_npm: bool, named: str) -> None:
    problem = machine.check_node(version, has_npm=has_npm)
    assert problem is not None
    assert named in problem.missing
    assert problem.remedy


@pytest.mark.parametrize(("kind", "flags"), [("x86_64", "sse4_2 avx avx2 fma"), ("aarch64", "")])
def test_the_processors_of_the_default_engine_are_no_problem(kind: str, flags: str) -> None:
    assert machine.check_processor(system="Linux", machine=kind, cpu_flags=flags) is None


@pytest.mark.parametrize(
    ("system", "kind", "flags", "named"),
    [
        ("Darwin", "arm64", "", "Darwin"),
        ("Linux", "x86_64", "sse4_2 avx", "without AVX2"),
        ("Linux", "riscv64", "", "riscv64"),
    ],
)
def test_another_machine_is_named(system: str, kind: str, flags: str, named: str) -> None:
    problem = machine.check_processor(system=system, machine=kind, cpu_flags=flags)
    assert problem is not None
    assert named in problem.missing


def test_a_taken_port_is_named_with_another_to_choose() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        problem = machine.check_port("127.0.0.1", port)
    assert problem is not None
    assert str(port) in problem.missing
    assert f"RAPPORT_PORT={port + 1}" in problem.remedy
    assert machine.check_port("127.0.0.1", port) is None


def test_an_address_of_another_machine_is_a_problem() -> None:
    problem = machine.check_port("192.0.2.7", 8000)
    assert problem is not None


def test_a_folder_that_does_not_exist_yet_is_judged_by_its_parent(tmp_path: Path) -> None:
    assert machine.check_writable(tmp_path / "a" / "b", variable="RAPPORT_CACHE") is None
    assert not (tmp_path / "a").exists()


def test_a_file_in_the_way_of_a_folder_is_named_with_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    problem = machine.check_writable(tmp_path / "file" / "cache", variable="RAPPORT_CACHE")
    assert problem is not None
    assert "RAPPORT_CACHE" in problem.remedy


def test_too_little_disk_is_named_with_both_numbers(tmp_path: Path) -> None:
    problem = machine.check_disk(tmp_path / "new", needed_mb=10**9, variable="RAPPORT_CACHE")
    assert problem is not None
    assert "1000000.0 GB" in problem.missing
    assert "RAPPORT_CACHE" in problem.remedy
    assert machine.check_disk(tmp_path / "new", needed_mb=1, variable="RAPPORT_CACHE") is None


def test_without_a_browser_only_root_with_apt_goes_on() -> None:
    assert machine.check_browser(found="/usr/bin/chromium", is_root=False, has_apt=False) is None
    assert machine.check_browser(found=None, is_root=True, has_apt=True) is None
    for is_root, has_apt in ((False, True), (True, False)):
        problem = machine.check_browser(found=None, is_root=is_root, has_apt=has_apt)
        assert problem is not None
        assert "chromium" in problem.remedy
