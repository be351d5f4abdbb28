"""A Llama-family model folder of a few kilobytes, written without torch, and adapters for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from deploy.engines.adapters import CONFIG, WEIGHTS, write_adapter_manifest
from deploy.engines.model_folder import ModelFolder, ModelManifest, hash_base, read_model_folder, write_manifest
from rubric import TemplateNeeds

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_SIZE, FEED_FORWARD = 2, 32, 4, 2, 8, 48
SIZES = {
    "self_attn.q_proj": (HIDDEN, HEADS * HEAD_SIZE),
    "self_attn.k_proj": (HIDDEN, KV_HEADS * HEAD_SIZE),
    "self_attn.v_proj": (HIDDEN, KV_HEADS * HEAD_SIZE),
    "self_attn.o_proj": (HEADS * HEAD_SIZE, HIDDEN),
    "mlp.gate_proj": (HIDDEN, FEED_FORWARD),
    "mlp.up_proj": (HIDDEN, FEED_FORWARD),
    "mlp.down_proj": (FEED_FORWARD, HIDDEN),
}
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def write_tiny_hf(hf: Path, *, seed: int = 0, **config: Any) -> int:
    """Write weights, configuration, tokenizer and template; the size of the vocabulary."""
    hf.mkdir(parents=True)
    vocabulary = _write_tokenizer(hf)
    random = np.random.default_rng(seed)

    def draw(*shape: int) -> NDArray[np.float32]:
        return random.normal(0, 0.3, shape).astype(np.float32)

    weights = {"model.embed_tokens.weight": draw(vocabulary, HIDDEN), "model.norm.weight": np.ones(HIDDEN, np.float32)}
    for layer in range(LAYERS):
        head = f"model.layers.{layer}."
        weights |= {head + f"{module}.weight": draw(size[1], size[0]) for module, size in SIZES.items()}
        weights |= {
            head + f"{norm}.weight": np.ones(HIDDEN, np.float32)
            for norm in ("input_layernorm", "post_attention_layernorm")
        }
    save_file(weights, hf / "model.safetensors", metadata={"format": "pt"})
    (hf / "config.json").write_text(json.dumps(_config(vocabulary) | config))
    return vocabulary


def _config(vocabulary: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": HIDDEN,
        "intermediate_size": FEED_FORWARD,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_SIZE,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "dtype": "float32",
    }


def _write_tokenizer(hf: Path) -> int:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(["the river runs to the sea and the sea is wide"] * 4, trainer)
    tokenizer.save(str(hf / "tokenizer.json"))
    names = {"bos_token": SPECIAL[1], "eos_token": SPECIAL[2], "pad_token": SPECIAL[2], "unk_token": SPECIAL[0]}
    (hf / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **names}))
    (hf / "chat_template.jinja").write_text(TEMPLATE)
    return tokenizer.get_vocab_size()


def make_tiny_base(folder: Path, *, seed: int = 0, **config: Any) -> ModelFolder:
    """A converted model without a GGUF."""
    write_tiny_hf(folder / "hf", seed=seed, **config)
    write_manifest(
        folder,
        ModelManifest(
            model_name="tiny",
            base_sha256=hash_base(folder / "hf"),
            tokenizer_sha256="t",
            chat_template_sha256="c",
            source_sha256="s",
            gguf_sha256="",
            quantisation="",
            template=TemplateNeeds(),
            files={},
        ),
    )
    return read_model_folder(folder)


def make_tiny_adapter(folder: Path, base: ModelFolder, *, rank: int = 4, **config: Any) -> Path:
    """A PEFT adapter of every projection, as peft would save it."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(7)
    weights = {}
    for layer in range(LAYERS):
        for module, (inputs, outputs) in SIZES.items():
            head = f"base_model.model.model.layers.{layer}.{module}"
            weights[f"{head}.lora_A.weight"] = random.normal(0, 0.1, (rank, inputs)).astype(np.float32)
            weights[f"{head}.lora_B.weight"] = random.normal(0, 0.1, (outputs, rank)).astype(np.float32)
    save_file(weights, folder / WEIGHTS)
    targets = sorted(module.partition(".")[2] for module in SIZES)
    plain = {"peft_type": "LORA", "r": rank, "lora_alpha": 2 * rank, "target_modules": targets, "bias": "none"}
    (folder / CONFIG).write_text(json.dumps(plain | config))
    write_adapter_manifest(folder, base_sha256=base.manifest.base_sha256)
    return folder
