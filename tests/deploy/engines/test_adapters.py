"""`deploy.engines.adapters`: each way in which an adapter can be bad has its rule, and none gets past."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from deploy.engines.adapters import CONFIG, RULES, WEIGHTS, check_adapter, write_adapter_manifest
from deploy.engines.base_gguf import read_shape
from deploy.engines.errors import AdapterRefused
from deploy.engines.lora_gguf import write_lora_gguf
from deploy.engines.model_folder import MANIFEST, ModelFolder
from tests.fakes.tiny_model import HEAD_SIZE, HEADS, KV_HEADS, LAYERS, SIZES, make_tiny_adapter, make_tiny_base

Weights = dict[str, NDArray[np.float32]]
Q0 = "base_model.model.model.layers.0.self_attn.q_proj.lora_{}.weight"


@pytest.fixture
def base(tmp_path: Path) -> ModelFolder:
    return make_tiny_base(tmp_path / "base")


@pytest.fixture
def folder(tmp_path: Path, base: ModelFolder) -> Path:
    return make_tiny_adapter(tmp_path / "policy-x", base)


def rewrite(folder: Path, base: ModelFolder, change: Callable[[Weights], object]) -> None:
    """Change the tensors; the manifest is made anew, so that only the change is wrong."""
    weights = {key: value.copy() for key, value in load_file(folder / WEIGHTS).items()}
    change(weights)
    save_file(weights, folder / WEIGHTS)
    write_adapter_manifest(folder, base_sha256=base.manifest.base_sha256)


def reconfigure(folder: Path, base: ModelFolder, **change: Any) -> None:
    raw = json.loads((folder / CONFIG).read_text()) | change
    (folder / CONFIG).write_text(json.dumps(raw))
    write_adapter_manifest(folder, base_sha256=base.manifest.base_sha256)


def refusal(folder: Path, base: ModelFolder) -> str:
    with pytest.raises(AdapterRefused) as caught:
        check_adapter(folder, name="policy-x", base=base)
    assert caught.value.rule in RULES
    assert caught.value.name == "policy-x"
    return caught.value.rule


def test_a_good_adapter_passes_with_every_projection(folder: Path, base: ModelFolder) -> None:
    checked = check_adapter(folder, name="policy-x", base=base)
    assert (checked.rank, checked.alpha) == (4, 8.0)
    assert {(p.layer, p.module) for p in checked.projections} == {(n, m) for n in range(LAYERS) for m in SIZES}


def test_half_precision_adapters_are_read(folder: Path, base: ModelFolder) -> None:
    rewrite(folder, base, lambda w: w.update({key: value.astype(np.float16) for key, value in w.items()}))
    checked = check_adapter(folder, name="policy-x", base=base)
    assert checked.projections[0].a.dtype == np.float32


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda w: w[Q0.format("A")].__setitem__((0, 0), np.nan), "finite"),
        (lambda w: w[Q0.format("B")].__setitem__((0, 0), np.inf), "finite"),
        (lambda w: w.pop(Q0.format("A")), "keys"),
        (lambda w: w.update({"base_model.model.lm_head.lora_A.weight": np.ones((4, 32), np.float32)}), "keys"),
        (lambda w: w.update({Q0.format("A").replace("layers.0", "layers.2"): np.ones((4, 32), np.float32)}), "keys"),
        (lambda w: w.update({Q0.format("A").replace("self_attn", "mlp"): np.ones((4, 32), np.float32)}), "keys"),
        (lambda w: w.update({Q0.format("A"): np.ones((4, 31), np.float32)}), "shapes"),
        (lambda w: w.update({Q0.format("B"): np.ones((4, 32), np.float32)}), "shapes"),
        (lambda w: w.update({Q0.format("A"): np.ones((2, 32), np.float32)}), "rank"),
        (lambda w: w.update({k: np.zeros_like(v) for k, v in w.items() if "lora_B" in k}), "inert"),
        (lambda w: w.update({Q0.format("A"): np.ones((4, 32), np.int32)}), "unreadable"),
    ],
)
def test_bad_tensors_are_refused(
    folder: Path, base: ModelFolder, change: Callable[[Weights], object], rule: str
) -> None:
    rewrite(folder, base, change)
    assert refusal(folder, base) == rule


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"r": 64}, "rank"),
        ({"r": 0}, "rank"),
        ({"peft_type": "IA3"}, "config"),
        ({"use_dora": True}, "config"),
        ({"use_rslora": True}, "config"),
        ({"bias": "all"}, "config"),
        ({"modules_to_save": ["lm_head"]}, "config"),
        ({"rank_pattern": {"q_proj": 2}}, "config"),
        ({"target_modules": ["lm_head"]}, "config"),
        ({"target_modules": []}, "config"),
        ({"target_modules": "all-linear"}, "config"),
        ({"layers_to_transform": [0, 7]}, "config"),
        ({"layers_to_transform": [0]}, "keys"),
        ({"lora_alpha": None}, "config"),
    ],
)
def test_bad_configurations_are_refused(folder: Path, base: ModelFolder, change: dict[str, Any], rule: str) -> None:
    reconfigure(folder, base, **change)
    assert refusal(folder, base) == rule


def test_files_that_are_not_the_manifests_are_refused(folder: Path, base: ModelFolder) -> None:
    with (folder / WEIGHTS).open("ab") as file:
        file.write(b"x")
    assert refusal(folder, base) == "hash"


def test_a_folder_without_a_manifest_is_not_whole(folder: Path, base: ModelFolder) -> None:
    (folder / MANIFEST).unlink()
    assert refusal(folder, base) == "manifest"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": 3, "base_sha256": "x"}'])
def test_an_unreadable_manifest_is_refused(folder: Path, base: ModelFolder, text: str) -> None:
    (folder / MANIFEST).write_text(text)
    assert refusal(folder, base) == "manifest"


def test_a_missing_weights_file_is_refused(folder: Path, base: ModelFolder) -> None:
    (folder / WEIGHTS).unlink()
    assert refusal(folder, base) == "manifest"


@pytest.mark.parametrize("kept", [0, 7, 100, 3000])
def test_a_truncated_file_is_refused(folder: Path, base: ModelFolder, kept: int) -> None:
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:kept])
    write_adapter_manifest(folder, base_sha256=base.manifest.base_sha256)
    assert refusal(folder, base) == "unreadable"


def test_an_adapter_of_another_base_is_refused(folder: Path, tmp_path: Path) -> None:
    other = make_tiny_base(tmp_path / "other", seed=1)
    assert refusal(folder, other) == "base"


def test_the_converted_adapter_keeps_alpha_and_every_product(folder: Path, base: ModelFolder, tmp_path: Path) -> None:
    """What llama.cpp adds is b @ a, with the rows of q and k in the order in which it rotates them."""
    checked = check_adapter(folder, name="policy-x", base=base)
    write_lora_gguf(checked, tmp_path / "x.gguf", shape=read_shape(base.hf))
    reader = gguf.GGUFReader(tmp_path / "x.gguf")
    tensors = {tensor.name: tensor.data for tensor in reader.tensors}
    assert reader.fields["adapter.lora.alpha"].contents() == checked.alpha
    assert len(tensors) == 2 * len(checked.projections)
    for projection in checked.projections:
        if projection.module == "mlp.up_proj":
            name = f"blk.{projection.layer}.ffn_up.weight"
            assert np.array_equal(tensors[f"{name}.lora_b"], projection.b)
        if projection.module in ("self_attn.q_proj", "self_attn.k_proj"):
            heads = HEADS if "q_proj" in projection.module else KV_HEADS
            b = tensors[f"blk.{projection.layer}.attn_{projection.module[10]}.weight.lora_b"]
            for head in range(heads):
                for pair in range(HEAD_SIZE // 2):
                    row = head * HEAD_SIZE
                    assert np.array_equal(b[row + 2 * pair], projection.b[row + pair])
                    assert np.array_equal(b[row + 2 * pair + 1], projection.b[row + HEAD_SIZE // 2 + pair])
