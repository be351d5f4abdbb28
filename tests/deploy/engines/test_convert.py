"""`deploy.engines.convert` on a model of a few kilobytes: a folder of the user's own becomes a served model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from deploy.engines.convert import convert, main
from deploy.engines.model_folder import MANIFEST, hash_file, read_model_folder
from tests.fakes.tiny_model import write_tiny_hf


@pytest.fixture
def own(tmp_path: Path) -> Path:
    write_tiny_hf(tmp_path / "own")
    return tmp_path / "own"


def test_a_folder_becomes_a_whole_model(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(tmp_path / "out"), "--model", str(own)]) == 0
    made = read_model_folder(tmp_path / "out")
    assert made.manifest.model_name == "own"
    assert made.gguf.is_file()
    assert (made.hf / "model.safetensors").is_file()
    assert made.manifest.files["base-f32.gguf"] == hash_file(made.gguf) == made.manifest.gguf_sha256
    assert all(hash_file(made.folder / name) == value for name, value in made.manifest.files.items())
    assert "writing the GGUF" in capsys.readouterr().out


def test_equal_inputs_give_equal_manifests(own: Path, tmp_path: Path) -> None:
    one, two = (convert(tmp_path / name, model=str(own)).folder / MANIFEST for name in ("one", "two"))
    assert one.read_text() == two.read_text()


def test_a_whole_model_is_left_alone_and_a_half_one_is_made_anew(own: Path, tmp_path: Path) -> None:
    made = convert(tmp_path / "out", model=str(own))
    stamp = made.gguf.stat().st_mtime_ns
    convert(made.folder, model=str(own))
    assert made.gguf.stat().st_mtime_ns == stamp
    (made.folder / MANIFEST).unlink()
    (made.hf / "model.safetensors").write_bytes(b"half")
    again = convert(made.folder, model=str(own))
    assert again.manifest == made.manifest


def test_without_a_gguf_any_family_is_taken(own: Path, tmp_path: Path) -> None:
    made = convert(tmp_path / "out", model=str(own), quantisation="none")
    assert made.manifest.quantisation == ""
    assert not list(made.folder.glob("*.gguf"))


def test_a_folder_that_is_no_model_is_a_sentence_and_an_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["--out", str(tmp_path / "out"), "--model", str(tmp_path / "empty")]) == 1
    assert "config.json" in capsys.readouterr().err
    assert not (tmp_path / "out" / MANIFEST).exists()


def test_a_model_without_a_chat_template_is_refused(own: Path, tmp_path: Path) -> None:
    (own / "chat_template.jinja").unlink()
    assert main(["--out", str(tmp_path / "out"), "--model", str(own)]) == 1


def test_drivers_and_keeper_import_no_torch() -> None:
    code = (
        "import sys, deploy.engines.keeper, deploy.engines.adapters, deploy.engines.lora_gguf; "
        "sys.exit(any(name in sys.modules for name in ('torch', 'transformers', 'peft', 'trl')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
