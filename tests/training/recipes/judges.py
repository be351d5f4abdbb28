"""A judge of random weights, saved as the recipe saves a trained one: its levels mean nothing, its graphs are real."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file

from rubric.serve.bundle import JUDGE_FACTS
from training.recipes.encoder_export import WEIGHTS
from training.recipes.judge_export import JUDGE_WEIGHTS
from training.recipes.judge_net import JudgeNet, trained_tensors
from training.recipes.minilm import load_minilm, package_folder

RANK, FIRST_LAYER, TEMPERATURE = 4, 3, 0.7


def write_weights(folder: Path) -> Path:
    """The committed screen, and a judge whose every trained number is drawn."""
    shutil.copytree(WEIGHTS, folder, dirs_exist_ok=True)
    torch.manual_seed(11)
    net = JudgeNet(load_minilm(package_folder()), rank=RANK, first_layer=FIRST_LAYER)
    drawn = {name: torch.randn_like(tensor) * 0.05 for name, tensor in trained_tensors(net).items()}
    save_file(drawn, folder / JUDGE_WEIGHTS)
    facts = {"rank": RANK, "first_layer": FIRST_LAYER, "temperature": TEMPERATURE}
    (folder / JUDGE_FACTS).write_text(json.dumps(facts))
    return folder
