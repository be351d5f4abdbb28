"""Parts are keyed by what they are made from, whole or absent, and built by one at a time."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deploy.local.place import ROOT
from deploy.local.steps import Build, Part, Progress, StepFailed, ensure

SLOW_BUILD = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background of a shell was started deaf to it
from deploy.local.steps import Part, Progress, ensure
cache, marker = Path(sys.argv[1]), Path(sys.argv[2])
def build(build):
    (build.aside / "half").write_text("half")
    with marker.open("a") as file:
        file.write("built\\n")
    build.run(sys.executable, "-c", "import time; time.sleep(" + sys.argv[3] + ")", cwd=cache)
    (build.aside / "whole").write_text("whole")
part = Part(kind="thing", title="building a thing", facts=("1",), size_mb=1, build=build)
print(ensure(part, cache=cache, progress=Progress(1)))
"""


def part_of(source: Path, *, built: list[str], kind: str = "thing") -> Part:
    def build(build: Build) -> None:
        built.append(kind)
        (build.aside / "whole").write_text(source.read_text())

    return Part(kind=kind, title=f"building {kind}", files=(source,), size_mb=1, build=build)


def test_a_part_is_built_once_and_again_only_where_its_input_changed(tmp_path: Path) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("1")
    two.write_text("2")
    built: list[str] = []
    cache = tmp_path / "cache"

    def ensure_both() -> list[Path]:
        both = [part_of(one, built=built, kind="first"), part_of(two, built=built, kind="second")]
        return [ensure(part, cache=cache, progress=Progress(2)) for part in both]

    before = ensure_both()
    assert ensure_both() == before
    assert built == ["first", "second"]
    two.write_text("changed")
    after = ensure_both()
    assert built == ["first", "second", "second"]
    assert after[0] == before[0]
    assert after[1] != before[1]
    assert (after[1] / "whole").read_text() == "changed"


def test_an_added_a_renamed_and_an_emptied_file_change_the_key(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    (folder / "node_modules").mkdir(parents=True)
    (folder / "a.ts").write_text("a")
    keys = [Part(kind="k", title="", files=(folder,), size_mb=1, build=lambda _: None).key]

    def note_key() -> None:
        keys.append(Part(kind="k", title="", files=(folder,), size_mb=1, build=lambda _: None).key)

    (folder / "b.ts").write_text("")
    note_key()
    (folder / "b.ts").rename(folder / "c.ts")
    note_key()
    (folder / "a.ts").write_text("")
    note_key()
    assert len(set(keys)) == 4
    (folder / "node_modules" / "x.js").write_text("a build output")
    note_key()
    assert keys[-1] == keys[-2]


def test_a_failed_build_leaves_nothing_and_shows_its_last_lines(tmp_path: Path) -> None:
    def build(build: Build) -> None:
        (build.aside / "half").write_text("half")
        build.run(sys.executable, "-c", "print('what went wrong'); raise SystemExit(4)", cwd=tmp_path)

    part = Part(kind="env/main", title="building", facts=("1",), size_mb=1, build=build)
    with pytest.raises(StepFailed, match=r"ended with 4:\n    what went wrong\n") as caught:
        ensure(part, cache=tmp_path, progress=Progress(1))
    assert "log/env-main-" in str(caught.value)
    assert list((tmp_path / "env").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_build_leaves_nothing_loadable_and_the_next_goes_on(tmp_path: Path, number: int) -> None:
    marker = tmp_path / "marker"
    command = (sys.executable, "-c", SLOW_BUILD, str(tmp_path), str(marker))
    first = subprocess.Popen((*command, "60"), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(marker)
    first.send_signal(number)
    first.wait(timeout=10)
    assert [path for path in (tmp_path / "thing").iterdir() if not path.name.startswith(".")] == []
    done = subprocess.run((*command, "0"), cwd=ROOT, capture_output=True, text=True, check=True, timeout=30)
    folder = Path(done.stdout.splitlines()[-1])
    assert (folder / "whole").exists()
    assert list((tmp_path / "thing").iterdir()) == [folder]


def test_two_set_ups_at_once_build_once(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    command = (sys.executable, "-c", SLOW_BUILD, str(tmp_path), str(marker), "1.5")
    both = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=30)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert marker.read_text() == "built\n"
    assert sum("waiting for it" in output for output in outputs) == 1


def test_progress_names_number_title_and_seconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(3)
    with progress.step("installing Python packages"):
        pass
    progress.skip("building the front end", why="there already")
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "[1/3] installing Python packages ...",
        "[1/3] installing Python packages ... 0 s",
        "[2/3] building the front end ... there already",
    ]


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert os.path.getsize(path) > 0
