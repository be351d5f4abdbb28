"""`deploy.engines.base_gguf`: what cannot be carried over is refused, what is carried over keeps its numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from deploy.engines.base_gguf import Quantisation, read_shape, reorder_heads, splitting_of, write_base_gguf
from deploy.engines.errors import ModelUnusable
from tests.fakes.tiny_model import FEED_FORWARD, HEADS, HIDDEN, KV_HEADS, LAYERS, SPECIAL, TEMPLATE, write_tiny_hf


@given(heads=st.integers(1, 5), pairs=st.integers(1, 5), width=st.integers(1, 3))
def test_reordering_interleaves_the_halves_of_each_head(heads: int, pairs: int, width: int) -> None:
    rows = np.arange(heads * pairs * 2 * width, dtype=np.float32).reshape(heads * pairs * 2, width)
    moved = reorder_heads(rows, heads)
    for head in range(heads):
        for pair in range(pairs):
            first = head * 2 * pairs
            assert np.array_equal(moved[first + 2 * pair], rows[first + pair])
            assert np.array_equal(moved[first + 2 * pair + 1], rows[first + pairs + pair])


def test_numbers_tokenizer_and_template_are_carried_over(tmp_path: Path) -> None:
    vocabulary = write_tiny_hf(tmp_path / "hf")
    write_base_gguf(tmp_path / "hf", tmp_path / "x.gguf", name="tiny")
    fields = {key: field.contents() for key, field in gguf.GGUFReader(tmp_path / "x.gguf").fields.items()}
    assert fields["llama.block_count"] == LAYERS
    assert fields["llama.embedding_length"] == HIDDEN
    assert fields["llama.feed_forward_length"] == FEED_FORWARD
    assert (fields["llama.attention.head_count"], fields["llama.attention.head_count_kv"]) == (HEADS, KV_HEADS)
    assert len(fields["tokenizer.ggml.tokens"]) == vocabulary
    assert fields["tokenizer.ggml.pre"] == "smollm"
    assert fields["tokenizer.ggml.eos_token_id"] == SPECIAL.index("<|im_end|>")
    assert fields["tokenizer.chat_template"] == TEMPLATE
    assert [fields["tokenizer.ggml.token_type"][i] for i in (0, 1, 2, 3)] == [3, 3, 3, 1]


@pytest.mark.parametrize(("quantisation", "tolerance"), [("f32", 0.0), ("q8_0", 0.02)])
def test_every_tensor_is_there_and_near(tmp_path: Path, quantisation: Quantisation, tolerance: float) -> None:
    write_tiny_hf(tmp_path / "hf")
    write_base_gguf(tmp_path / "hf", tmp_path / "x.gguf", name="tiny", quantisation=quantisation)
    ours = load_file(tmp_path / "hf" / "model.safetensors")
    theirs = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "x.gguf").tensors}
    assert len(theirs) == len(ours)
    up = theirs["blk.1.ffn_up.weight"]
    values = gguf.quants.dequantize(up.data, up.tensor_type)
    assert np.abs(values - ours["model.layers.1.mlp.up_proj.weight"]).max() <= tolerance


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "qwen2"},
        {"attention_bias": True},
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}},
        {"rope_parameters": None, "rope_scaling": {"rope_type": "yarn"}},
    ],
)
def test_what_a_gguf_would_lose_is_refused(tmp_path: Path, config: dict[str, Any]) -> None:
    write_tiny_hf(tmp_path / "hf", **config)
    with pytest.raises(ModelUnusable):
        read_shape(tmp_path / "hf")


@pytest.mark.parametrize(
    ("steps", "name"),
    [
        ({"type": "ByteLevel"}, "gpt-2"),
        (
            {
                "type": "Sequence",
                "pretokenizers": [{"type": "Digits", "individual_digits": True}, {"type": "ByteLevel"}],
            },
            "smollm",
        ),
        (
            {
                "type": "Sequence",
                "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}| "}}, {"type": "ByteLevel"}],
            },
            "llama-bpe",
        ),
    ],
)
def test_a_known_splitting_has_its_name(steps: dict[str, Any], name: str) -> None:
    assert splitting_of(steps, model="m") == name


@pytest.mark.parametrize("steps", [None, {}, {"type": "Metaspace"}, {"type": "Whitespace"}])
def test_an_unknown_splitting_is_refused(steps: dict[str, Any] | None) -> None:
    with pytest.raises(ModelUnusable):
        splitting_of(steps, model="m")


def test_a_tensor_without_a_place_is_refused(tmp_path: Path) -> None:
    write_tiny_hf(tmp_path / "hf")
    file = tmp_path / "hf" / "model.safetensors"
    raw = file.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    header["model.layers.0.mlp.extra.weight"] = header.pop("model.layers.0.mlp.up_proj.weight")
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])
    with pytest.raises(ModelUnusable):
        write_base_gguf(tmp_path / "hf", tmp_path / "x.gguf", name="tiny")
