"""Make the folder that the encoder process serves: `python -m training.recipes.encoder_export --out DIR`.

The encoder's files come from the installed package, what the screen and the judge learned from `rubric/serve/weights`.
All become ONNX graphs, are compared with torch at several lengths, and only then is the manifest written, so a folder
with a manifest is whole. `make run` calls this once per hash of its inputs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from rubric.serve import bundle
from rubric.serve.bundle import file_sha256
from training.recipes.graphs import compare, write_graph
from training.recipes.judge_export import JUDGE_WEIGHTS, export_judge
from training.recipes.minilm import MiniLm, load_minilm, mean_pool, package_folder
from training.recipes.screen_net import ScreenNet, ScreenProbabilities, load_trained, merged

WEIGHTS: Final = Path(bundle.__file__).parent / "weights"
SCREEN_WEIGHTS: Final = "screen.safetensors"
LENGTHS_CHECKED: Final = (3, 17, 96, 256)
LENGTH_MAX: Final = 512  # tokens that the encoder has positions for
BATCH_MAX: Final = 4096


class Embedding(nn.Module):
    """Token ids and mask -> one unit vector per text: what the package's sentence encoder computes."""

    def __init__(self, encoder: MiniLm) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """[batch, length] -> [batch, 384]."""
        return nn.functional.normalize(mean_pool(self.encoder(input_ids, attention_mask), attention_mask), dim=-1)


def export_bundle(out: Path, *, weights: Path = WEIGHTS) -> bundle.Bundle:
    """Write the whole folder and read it back. Raises ExportDiffers, EncoderFilesMissing, BundleInvalid."""
    torch.set_num_threads(1)
    package = package_folder()
    out.mkdir(parents=True, exist_ok=True)
    (out / bundle.MANIFEST).unlink(missing_ok=True)
    export_graph(Embedding(load_minilm(package)), out / bundle.EMBED_MODEL)
    export_graph(ScreenProbabilities(merged(load_screen(weights))).eval(), out / bundle.SCREEN_MODEL)
    shutil.copyfile(package / "tokenizer.json", out / bundle.TOKENIZER)
    export_judge(weights, out)
    for name in (bundle.SCREEN_FACTS, bundle.SURFACE, bundle.COVERAGE, bundle.JUDGE_FACTS):
        shutil.copyfile(weights / name, out / name)
    _write_manifest(out, package=package, weights=weights)
    return bundle.load_bundle(out)


def load_screen(weights: Path) -> ScreenNet:
    """The trained screen over the package's encoder."""
    facts = json.loads((weights / bundle.SCREEN_FACTS).read_text("utf-8"))
    net = ScreenNet(load_minilm(package_folder()), rank=facts["rank"], first_layer=facts["first_layer"])
    load_trained(net, load_file(weights / SCREEN_WEIGHTS))
    return net.eval()


def export_graph(module: nn.Module, path: Path) -> None:
    """A graph that reads token ids and mask, with free batch and length. Raises ExportDiffers."""
    example = torch.full((2, 8), 1012)
    axes = {0: "batch", 1: "length"}
    write_graph(
        module,
        path,
        example={"input_ids": example, "attention_mask": example.clone()},
        free={"input_ids": axes, "attention_mask": axes},
        outputs=("per_text",),
        sizes={"batch": BATCH_MAX, "length": LENGTH_MAX},
    )
    check_graph(module, path)


def check_graph(module: nn.Module, path: Path) -> None:
    """Compare with torch at several lengths, two of three texts padded. Raises ExportDiffers."""
    numbers = np.random.default_rng(7)
    for length in LENGTHS_CHECKED:
        ids = numbers.integers(1000, 20000, (3, length))
        mask = np.ones_like(ids)
        mask[1, length // 2 + 1 :] = 0
        mask[2, 2:] = 0
        inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        compare(module, path, inputs, length=length)


def _write_manifest(out: Path, *, package: Path, weights: Path) -> None:
    """Versions are hashes of what was put in: the same on every machine. The file hashes are of this folder."""
    source = [file_sha256(package / name) for name in ("model.safetensors", "tokenizer.json")]
    names = (SCREEN_WEIGHTS, bundle.SCREEN_FACTS, bundle.SURFACE, bundle.COVERAGE)
    learned = [file_sha256(weights / name) for name in names]
    judge = [file_sha256(weights / name) for name in (JUDGE_WEIGHTS, bundle.JUDGE_FACTS)]
    manifest = {
        "format": bundle.FORMAT,
        "encoder_version": f"encoder-{_joint_hash(source)}",
        "screen_version": f"screen-{_joint_hash(source + learned)}",
        "judge_version": f"judge-{_joint_hash(source + judge)}",
        "files": {name: file_sha256(out / name) for name in bundle.FILES},
    }
    partial = out / f"{bundle.MANIFEST}.partial"
    partial.write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", "utf-8")
    partial.replace(out / bundle.MANIFEST)


def _joint_hash(hashes: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(hashes).encode("ascii")).hexdigest()[:12]


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, export, print the versions as one JSON line."""
    parser = argparse.ArgumentParser(prog="python -m training.recipes.encoder_export", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder to write; an older export there is replaced")
    asked = parser.parse_args(arguments)
    made = export_bundle(asked.out)
    versions = {name: getattr(made, name) for name in ("encoder_version", "screen_version", "judge_version")}
    print(json.dumps(versions))
    return 0


if __name__ == "__main__":
    sys.exit(main())
