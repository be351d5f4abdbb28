"""A converted model on disk: `hf/` for the trainer and for vLLM, a GGUF for llama.cpp, `manifest.json` written last.

`convert` writes it, drivers and the trainer read it. Standard library only. The manifest holds no time and no path:
equal inputs give an equal manifest, and the base version's name is its hash.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from deploy.engines.errors import ModelUnusable
from rubric import TemplateNeeds

MANIFEST = "manifest.json"
_VOLATILE_CONFIG = ("transformers_version", "_name_or_path")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelManifest:
    """What a converted model is made of; all hashes are SHA-256 in hex."""

    model_name: str
    base_sha256: str  # weights and configuration of `hf/`: adapters name it
    tokenizer_sha256: str
    chat_template_sha256: str
    source_sha256: str  # of what was converted
    gguf_sha256: str  # "" where no GGUF was made
    quantisation: str  # of the GGUF: "f32", "q8_0" or ""
    template: TemplateNeeds
    files: Mapping[str, str]  # relative path -> hash


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFolder:
    """A whole converted model."""

    folder: Path
    manifest: ModelManifest

    @property
    def hf(self) -> Path:
        """The folder that transformers, peft and vLLM load."""
        return self.folder / "hf"

    @property
    def gguf(self) -> Path:
        """The file that llama.cpp loads. Raises ModelUnusable where none was made."""
        if not self.manifest.quantisation:
            raise ModelUnusable(model=self.manifest.model_name, reason="no GGUF was made for it (engine llamacpp)")
        return self.folder / f"base-{self.manifest.quantisation}.gguf"


def read_model_folder(folder: Path) -> ModelFolder:
    """Read a converted model. Raises ModelUnusable where the manifest is missing, unreadable or names missing files."""
    try:
        raw = json.loads((folder / MANIFEST).read_text())
        template = TemplateNeeds(**raw.pop("template"))
        manifest = ModelManifest(template=template, **raw)
    except FileNotFoundError as error:
        raise ModelUnusable(model=folder.name, reason="its manifest.json is missing, so it is not whole") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelUnusable(model=folder.name, reason="its manifest.json cannot be read") from error
    missing = [name for name in manifest.files if not (folder / name).is_file()]
    if missing:
        raise ModelUnusable(model=manifest.model_name, reason=f"{', '.join(sorted(missing))} is missing")
    return ModelFolder(folder=folder, manifest=manifest)


def write_manifest(folder: Path, manifest: ModelManifest) -> None:
    """Write the manifest under another name first: a folder with a manifest is whole."""
    aside = folder / f".{MANIFEST}.{os.getpid()}"
    with aside.open("w") as file:
        json.dump(asdict(manifest), file, indent=2, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(folder / MANIFEST)


def hash_file(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_folder(folder: Path, names: Iterable[str]) -> str:
    """SHA-256 over the names and hashes of some files of a folder, in the order of their names."""
    rows = [[name, hash_file(folder / name)] for name in sorted(names)]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def hash_base(hf: Path) -> str:
    """The base hash: every weight file, and the configuration without what a library version writes into it."""
    weights = [[path.name, hash_file(path)] for path in sorted(hf.glob("*.safetensors"))]
    config = json.loads((hf / "config.json").read_text())
    facts = {key: value for key, value in config.items() if key not in _VOLATILE_CONFIG}
    return hashlib.sha256(json.dumps([weights, facts], sort_keys=True).encode()).hexdigest()
