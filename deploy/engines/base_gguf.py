"""A model folder of the Llama family to the GGUF that llama.cpp serves.

Called by `convert`. The attention projections for queries and keys are reordered per head, since llama.cpp rotates
neighbouring pairs where transformers rotates halves; adapters need the same (`lora_gguf`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from deploy.engines.errors import ModelUnusable

Quantisation = Literal["f32", "q8_0"]

BLOCK_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_OUTER_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
_FILE_TYPES = {"f32": gguf.LlamaFileType.ALL_F32, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}


@dataclass(frozen=True, kw_only=True, slots=True)
class LlamaShape:
    """The numbers of a Llama-family configuration that reach the GGUF."""

    layers: int
    hidden: int
    feed_forward: int
    heads: int
    kv_heads: int
    head_size: int
    context: int
    vocabulary: int
    rope_base: float
    norm_epsilon: float


def read_shape(hf: Path) -> LlamaShape:
    """Read config.json. Raises ModelUnusable for another family or for rotary scaling, which is not carried over."""
    config = json.loads((hf / "config.json").read_text())
    if config.get("model_type") != "llama":
        raise ModelUnusable(
            model=hf.parent.name,
            reason=f"the engine llamacpp converts the Llama family only, this is {config.get('model_type')!r}; "
            "serve it with the engine vllm, or with a server of your own and the engine remote",
        )
    rope = config.get("rope_parameters") or {}
    rope_type = rope.get("rope_type") or (config.get("rope_scaling") or {}).get("rope_type") or "default"
    if rope_type != "default" or config.get("attention_bias") or config.get("mlp_bias"):
        raise ModelUnusable(model=hf.parent.name, reason="rotary scaling and biases are not carried into a GGUF")
    heads = config["num_attention_heads"]
    return LlamaShape(
        layers=config["num_hidden_layers"],
        hidden=config["hidden_size"],
        feed_forward=config["intermediate_size"],
        heads=heads,
        kv_heads=config.get("num_key_value_heads", heads),
        head_size=config.get("head_dim") or config["hidden_size"] // heads,
        context=config["max_position_embeddings"],
        vocabulary=config["vocab_size"],
        rope_base=float(rope.get("rope_theta") or config.get("rope_theta") or 10000.0),
        norm_epsilon=float(config["rms_norm_eps"]),
    )


def reorder_heads(rows: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Turn each head's two halves into interleaved pairs, along the first axis. [heads * size, ...] -> the same."""
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def write_base_gguf(hf: Path, out: Path, *, name: str, quantisation: Quantisation = "f32") -> None:
    """Write the whole model: numbers, tokenizer, chat template, tensors. Raises ModelUnusable."""
    shape = read_shape(hf)
    writer = gguf.GGUFWriter(out, "llama")
    _add_numbers(writer, shape, name=name, quantisation=quantisation)
    _add_tokenizer(writer, hf, shape)
    for tensor_name, tensor in _tensors(hf, shape):
        if quantisation == "q8_0" and tensor.ndim == 2 and tensor.shape[-1] % 32 == 0:  # its blocks are 32 wide
            packed = gguf.quants.quantize(tensor, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(tensor_name, packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(tensor_name, np.ascontiguousarray(tensor))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_numbers(writer: Any, shape: LlamaShape, *, name: str, quantisation: Quantisation) -> None:
    writer.add_name(name)
    writer.add_block_count(shape.layers)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_size)
    writer.add_value_length(shape.head_size)
    writer.add_rope_dimension_count(shape.head_size)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(shape.norm_epsilon)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_file_type(_FILE_TYPES[quantisation])


def _tensors(hf: Path, shape: LlamaShape) -> Iterator[tuple[str, NDArray[np.float32]]]:
    for file in sorted(hf.glob("*.safetensors")):
        with safe_open(file, framework="numpy") as weights:
            for key in weights.keys():  # noqa: SIM118 (no iterator of its own)
                tensor = weights.get_tensor(key).astype(np.float32)
                yield _place(key.removesuffix(".weight"), tensor, shape)


def _place(key: str, tensor: NDArray[np.float32], shape: LlamaShape) -> tuple[str, NDArray[np.float32]]:
    if key in _OUTER_NAMES:
        return f"{_OUTER_NAMES[key]}.weight", tensor
    head, _, rest = key.removeprefix("model.layers.").partition(".")
    if rest not in BLOCK_NAMES or not head.isdigit():
        raise ModelUnusable(model="of this folder", reason=f"the tensor {key} has no place in a Llama GGUF")
    if rest == "self_attn.q_proj":
        tensor = reorder_heads(tensor, shape.heads)
    elif rest == "self_attn.k_proj":
        tensor = reorder_heads(tensor, shape.kv_heads)
    return f"blk.{head}.{BLOCK_NAMES[rest]}.weight", tensor


def _add_tokenizer(writer: Any, hf: Path, shape: LlamaShape) -> None:
    """Carry a byte-level BPE over; other kinds of tokenizer are refused."""
    raw = json.loads((hf / "tokenizer.json").read_text())
    if raw["model"]["type"] != "BPE":
        raise ModelUnusable(model=hf.parent.name, reason=f"its tokenizer is {raw['model']['type']}, not BPE")
    tokens = [f"[unused{i}]" for i in range(shape.vocabulary)]
    kinds = [gguf.TokenType.UNUSED] * shape.vocabulary
    for text, number in raw["model"]["vocab"].items():
        tokens[number], kinds[number] = text, gguf.TokenType.NORMAL
    for added in raw["added_tokens"]:
        tokens[added["id"]] = added["content"]
        kinds[added["id"]] = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(splitting_of(raw.get("pre_tokenizer"), model=hf.parent.name))
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in raw["model"]["merges"]])
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    _add_special_tokens(writer, hf, {text: number for number, text in enumerate(tokens)})
    writer.add_chat_template((hf / "chat_template.jinja").read_text())


def _add_special_tokens(writer: Any, hf: Path, numbers: dict[str, int]) -> None:
    names = json.loads((hf / "tokenizer_config.json").read_text())
    adders = {
        "bos_token": writer.add_bos_token_id,
        "eos_token": writer.add_eos_token_id,
        "pad_token": writer.add_pad_token_id,
        "unk_token": writer.add_unk_token_id,
    }
    for key, add in adders.items():
        value = names.get(key)
        text = value.get("content") if isinstance(value, dict) else value
        if text in numbers:
            add(numbers[text])


def splitting_of(pre_tokenizer: dict[str, Any] | None, *, model: str) -> str:
    """Name the way in which text is cut before merging, as llama.cpp calls it. Raises ModelUnusable for others."""
    steps = (pre_tokenizer or {}).get("pretokenizers") or [pre_tokenizer or {}]
    kinds = [step.get("type") for step in steps]
    if kinds == ["Digits", "ByteLevel"] and steps[0].get("individual_digits"):
        return "smollm"
    if kinds == ["ByteLevel"]:
        return "gpt-2"
    if kinds == ["Split", "ByteLevel"] and "\\p{N}{1,3}" in steps[0].get("pattern", {}).get("Regex", ""):
        return "llama-bpe"
    raise ModelUnusable(model=model, reason=f"llama.cpp has no name for its tokenizer's splitting ({kinds})")
