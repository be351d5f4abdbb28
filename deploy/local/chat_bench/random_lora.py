"""A LoRA of random numbers for the served base: what the engine loads in G14. Written without torch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from deploy.engines.adapters import CONFIG, TARGETS, WEIGHTS, projection_sizes, write_adapter_manifest
from deploy.engines.model_folder import ModelFolder

RANK = 8
SCALE = 0.02


def write_random_lora(folder: Path, base: ModelFolder, *, seed: int) -> Path:
    """A PEFT folder with a manifest that changes every projection a little; the same seed gives the same files."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(seed)
    weights = {}
    for (layer, target), (inputs, outputs) in sorted(projection_sizes(base.hf).items()):
        head = f"base_model.model.model.layers.{layer}.{TARGETS[target]}.{target}"
        weights[f"{head}.lora_A.weight"] = random.normal(0, SCALE, (RANK, inputs)).astype(np.float32)
        weights[f"{head}.lora_B.weight"] = random.normal(0, SCALE, (outputs, RANK)).astype(np.float32)
    save_file(weights, folder / WEIGHTS)
    config = {
        "peft_type": "LORA",
        "r": RANK,
        "lora_alpha": 2 * RANK,
        "target_modules": sorted(TARGETS),
        "bias": "none",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "base",
    }
    (folder / CONFIG).write_text(json.dumps(config, sort_keys=True))
    write_adapter_manifest(folder, base_sha256=base.manifest.base_sha256)
    return folder
