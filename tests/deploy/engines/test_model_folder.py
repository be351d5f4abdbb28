"""`deploy.engines.model_folder`: a folder with a manifest is whole, equal inputs have equal hashes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deploy.engines.errors import ModelUnusable
from deploy.engines.model_folder import MANIFEST, hash_base, read_model_folder
from tests.fakes.tiny_model import make_tiny_base, write_tiny_hf


def test_a_written_folder_is_read_back(tmp_path: Path) -> None:
    made = make_tiny_base(tmp_path / "m")
    assert read_model_folder(tmp_path / "m") == made


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"template": {}, "odd": 1}'])
def test_a_folder_without_a_whole_manifest_is_refused(tmp_path: Path, text: str | None) -> None:
    make_tiny_base(tmp_path / "m")
    if text is None:
        (tmp_path / "m" / MANIFEST).unlink()
    else:
        (tmp_path / "m" / MANIFEST).write_text(text)
    with pytest.raises(ModelUnusable):
        read_model_folder(tmp_path / "m")


def test_a_file_that_the_manifest_names_must_be_there(tmp_path: Path) -> None:
    made = make_tiny_base(tmp_path / "m")
    raw = json.loads((made.folder / MANIFEST).read_text()) | {"files": {"hf/model.safetensors": "x"}}
    (made.folder / MANIFEST).write_text(json.dumps(raw))
    (made.hf / "model.safetensors").unlink()
    with pytest.raises(ModelUnusable, match=r"hf/model\.safetensors is missing"):
        read_model_folder(tmp_path / "m")


def test_a_model_without_a_gguf_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelUnusable, match="no GGUF"):
        _ = make_tiny_base(tmp_path / "m").gguf


def test_the_base_hash_follows_weights_and_configuration_and_no_library_version(tmp_path: Path) -> None:
    for name, seed, config in (
        ("a", 0, {"transformers_version": "5.1"}),
        ("same", 0, {"transformers_version": "5.2"}),
        ("weights", 1, {}),
        ("config", 0, {"rms_norm_eps": 1e-6}),
    ):
        write_tiny_hf(tmp_path / name, seed=seed, **config)
    hashes = {name: hash_base(tmp_path / name) for name in ("a", "same", "weights", "config")}
    assert hashes["a"] == hashes["same"]
    assert len(set(hashes.values())) == 3
