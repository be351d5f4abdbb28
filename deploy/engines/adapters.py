"""The check that every adapter passes before any server sees it: a bad one can end or poison a server for everybody.

Drivers call `check_adapter`; the trainer's registry writes the manifest with `write_adapter_manifest`. Reads files
with numpy; neither torch nor peft is imported.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize, safe_open

from deploy.engines.errors import AdapterRefused
from deploy.engines.model_folder import MANIFEST, ModelFolder, hash_file

RULES: Final = ("manifest", "hash", "unreadable", "config", "base", "rank", "keys", "shapes", "finite", "inert")
WEIGHTS: Final = "adapter_model.safetensors"
CONFIG: Final = "adapter_config.json"
MAX_RANK: Final = 16
TARGETS: Final = {
    "q_proj": "self_attn",
    "k_proj": "self_attn",
    "v_proj": "self_attn",
    "o_proj": "self_attn",
    "gate_proj": "mlp",
    "up_proj": "mlp",
    "down_proj": "mlp",
}
# What changes the arithmetic of an adapter and is not carried into a GGUF.
_UNSUPPORTED: Final = ("use_dora", "use_rslora", "lora_bias", "modules_to_save", "rank_pattern", "alpha_pattern")
_BASE_KEY = re.compile(r"model\.layers\.(\d+)\.(self_attn|mlp)\.(\w+_proj)\.weight")
_KEY = re.compile(r"base_model\.model\.model\.layers\.(\d+)\.(self_attn|mlp)\.(\w+_proj)\.lora_(A|B)\.weight")


@dataclass(frozen=True, kw_only=True, slots=True)
class Projection:
    """One adapted projection: delta = (alpha / rank) * b @ a."""

    layer: int
    module: str  # "self_attn.q_proj"
    a: NDArray[np.float32]  # [rank, inputs]
    b: NDArray[np.float32]  # [outputs, rank]


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedAdapter:
    """An adapter that passed every rule."""

    name: str
    folder: Path
    sha256: str  # of the weights file
    rank: int
    alpha: float
    projections: tuple[Projection, ...]


def write_adapter_manifest(folder: Path, *, base_sha256: str) -> None:
    """Write manifest.json over the finished adapter files of `folder`; last, and under another name first."""
    files = {name: hash_file(folder / name) for name in (CONFIG, WEIGHTS)}
    aside = folder / f".{MANIFEST}.{os.getpid()}"
    aside.write_text(json.dumps({"kind": "adapter", "base_sha256": base_sha256, "files": files}, sort_keys=True))
    aside.rename(folder / MANIFEST)


def check_adapter(folder: Path, *, name: str, base: ModelFolder) -> CheckedAdapter:
    """Check an adapter against its manifest, its configuration and the base it is for. Raises AdapterRefused."""
    files = _check_manifest(folder, name=name, base_sha256=base.manifest.base_sha256)
    sizes = projection_sizes(base.hf)
    rank, alpha, places = _check_config(folder, name=name, layers_of_base=len({layer for layer, _ in sizes}))
    tensors = _read_tensors(folder, name=name)
    projections = _check_tensors(tensors, name=name, sizes={place: sizes[place] for place in places}, rank=rank)
    if not any(np.any(projection.b) for projection in projections):
        raise AdapterRefused(name=name, rule="inert", detail="every lora_B is zero, so its replies would be the base's")
    return CheckedAdapter(
        name=name, folder=folder, sha256=files[WEIGHTS], rank=rank, alpha=alpha, projections=tuple(projections)
    )


def _check_manifest(folder: Path, *, name: str, base_sha256: str) -> Mapping[str, str]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        files: dict[str, str] = dict(manifest["files"])
        named_base = manifest["base_sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AdapterRefused(
            name=name, rule="manifest", detail=f"no whole manifest ({type(error).__name__})"
        ) from error
    for required in (CONFIG, WEIGHTS):
        file = folder / required
        if required not in files or not file.is_file():
            raise AdapterRefused(name=name, rule="manifest", detail=f"{required} is missing")
        if hash_file(file) != files[required]:
            raise AdapterRefused(name=name, rule="hash", detail=f"{required} is not what the manifest names")
    if named_base != base_sha256:
        raise AdapterRefused(
            name=name, rule="base", detail=f"made for base {str(named_base)[:12]}, served is {base_sha256[:12]}"
        )
    return files


def _check_config(folder: Path, *, name: str, layers_of_base: int) -> tuple[int, float, frozenset[tuple[int, str]]]:
    """Rank, alpha and the places that are adapted: (layer, projection)."""
    try:
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text())
        rank, alpha = int(config["r"]), float(config["lora_alpha"])
        targets = frozenset(config["target_modules"])
        chosen = config.get("layers_to_transform")
        layers = frozenset(range(layers_of_base) if chosen is None else [chosen] if isinstance(chosen, int) else chosen)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AdapterRefused(name=name, rule="config", detail=f"unreadable ({type(error).__name__})") from error
    odd = [key for key in _UNSUPPORTED if config.get(key)]
    if config.get("peft_type") != "LORA" or config.get("bias", "none") != "none" or odd:
        raise AdapterRefused(
            name=name, rule="config", detail=f"only plain LoRA is served (found {odd or 'another kind'})"
        )
    if not targets or not targets <= TARGETS.keys():
        raise AdapterRefused(name=name, rule="config", detail=f"targets {sorted(targets - TARGETS.keys())}")
    if not layers or not layers <= frozenset(range(layers_of_base)):
        raise AdapterRefused(name=name, rule="config", detail="it names layers that the base does not have")
    if not 1 <= rank <= MAX_RANK:
        raise AdapterRefused(name=name, rule="rank", detail=f"rank {rank}; 1 to {MAX_RANK} are served")
    return rank, alpha, frozenset((layer, target) for layer in layers for target in targets)


def _read_tensors(folder: Path, *, name: str) -> dict[str, NDArray[np.float32]]:
    try:
        rows: list[tuple[str, dict[str, Any]]] = deserialize((folder / WEIGHTS).read_bytes())  # type: ignore[no-untyped-call]
        return {key: _as_float32(row) for key, row in rows}
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise AdapterRefused(name=name, rule="unreadable", detail=f"{WEIGHTS} ({type(error).__name__})") from error


def _as_float32(row: Mapping[str, Any]) -> NDArray[np.float32]:
    """Widen F32, F16 and BF16, which numpy does not know; others raise KeyError."""
    if row["dtype"] == "BF16":
        wide = np.frombuffer(row["data"], np.uint16).astype(np.uint32) << 16
        return wide.view(np.float32).reshape(row["shape"])
    kind = {"F32": np.float32, "F16": np.float16}[row["dtype"]]
    return np.frombuffer(row["data"], kind).astype(np.float32).reshape(row["shape"])


def _check_tensors(
    tensors: Mapping[str, NDArray[np.float32]],
    *,
    name: str,
    sizes: Mapping[tuple[int, str], tuple[int, int]],
    rank: int,
) -> list[Projection]:
    """Exactly the keys that the configuration promises, each with its shape and finite."""
    wanted = {(layer, target, side) for layer, target in sizes for side in "AB"}
    found = {}
    for key, tensor in tensors.items():
        match = _KEY.fullmatch(key)
        if match is None or TARGETS.get(match[3]) != match[2]:
            raise AdapterRefused(name=name, rule="keys", detail=f"unexpected {key[:120]}")
        found[int(match[1]), match[3], match[4]] = tensor
    if found.keys() != wanted:
        missing, extra = len(wanted - found.keys()), len(found.keys() - wanted)
        raise AdapterRefused(name=name, rule="keys", detail=f"{missing} tensors missing, {extra} unexpected")
    for (layer, target, side), tensor in found.items():
        inputs, outputs = sizes[layer, target]
        expected = (rank, inputs) if side == "A" else (outputs, rank)
        if tensor.shape != expected:
            is_only_rank = tensor.shape[1:] == (inputs,) if side == "A" else tensor.shape[:-1] == (outputs,)
            rule = "rank" if is_only_rank else "shapes"
            detail = f"layer {layer} {target} lora_{side} is {tensor.shape}, not {expected}"
            raise AdapterRefused(name=name, rule=rule, detail=detail)
        if not np.isfinite(tensor).all():
            raise AdapterRefused(name=name, rule="finite", detail=f"layer {layer} {target} lora_{side} is not finite")
    return [
        Projection(
            layer=layer,
            module=f"{TARGETS[target]}.{target}",
            a=found[layer, target, "A"],
            b=found[layer, target, "B"],
        )
        for layer, target in sorted(sizes)
    ]


def projection_sizes(hf: Path) -> dict[tuple[int, str], tuple[int, int]]:
    """Inputs and outputs of each projection of the base, from the headers of its weight files: any family's."""
    sizes = {}
    for file in sorted(hf.glob("*.safetensors")):
        with safe_open(file, framework="numpy") as weights:
            for key in weights.keys():  # noqa: SIM118 (no iterator of its own)
                match = _BASE_KEY.fullmatch(key)
                if match is not None and TARGETS.get(match[3]) == match[2]:
                    outputs, inputs = weights.get_slice(key).get_shape()
                    sizes[int(match[1]), match[3]] = (inputs, outputs)
    return sizes
