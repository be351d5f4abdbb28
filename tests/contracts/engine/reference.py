"""What transformers and peft say: random adapters with a fixed seed, and the log-probabilities of given tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from deploy.engines.adapters import TARGETS, write_adapter_manifest
from deploy.engines.model_folder import ModelFolder
from rubric import Transcript


def make_adapter(base: ModelFolder, folder: Path, *, seed: int, rank: int = 8, scale: float = 0.02) -> Path:
    """A PEFT adapter of random numbers that changes every projection; the same seed gives the same files."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(base.hf, dtype=torch.float32)
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=sorted(TARGETS), task_type="CAUSAL_LM")
    adapted: Any = get_peft_model(model, config)
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=scale)
    adapted.save_pretrained(folder)
    config_file = folder / "adapter_config.json"
    raw = json.loads(config_file.read_text())
    raw["base_model_name_or_path"] = "base"  # no path of this machine
    config_file.write_text(json.dumps(raw, sort_keys=True))
    write_adapter_manifest(folder, base_sha256=base.manifest.base_sha256)
    return folder


@dataclass(frozen=True, slots=True)
class Reading:
    """Of each given token: its log-probability, and that of the likeliest one in its place."""

    chosen: tuple[float, ...]
    best: tuple[float, ...]


class Reference:
    """The base, or the base with one adapter, read once by one forward pass for each reply."""

    def __init__(self, base: ModelFolder) -> None:
        torch.set_num_threads(1)  # two would spin against the engine's own
        self._tokenizer: Any = AutoTokenizer.from_pretrained(base.hf)
        self._base: Any = AutoModelForCausalLM.from_pretrained(base.hf, dtype=torch.float32).eval()
        self._adapted: Any = None
        self._names: set[str] = set()

    def prompt_ids(self, transcript: Transcript) -> list[int]:
        """The prompt as transformers renders and cuts it."""
        messages = [{"role": said.role.value, "content": said.text} for said in transcript]
        rendered = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return list(self._tokenizer(rendered, add_special_tokens=False)["input_ids"])

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def read(
        self, transcript: Transcript, ids: Sequence[int], *, adapter: Path | None = None, temperature: float = 1.0
    ) -> Reading:
        """Log-probabilities under softmax(logits / temperature)."""
        prompt = self.prompt_ids(transcript)
        with torch.no_grad():
            logits = self._model(adapter)(torch.tensor([prompt + list(ids)])).logits[0]
        logps = torch.log_softmax(logits[len(prompt) - 1 : -1] / temperature, dim=-1)
        chosen = logps.gather(1, torch.tensor(list(ids))[:, None])[:, 0]
        return Reading(tuple(chosen.tolist()), tuple(logps.max(dim=1).values.tolist()))

    def _model(self, adapter: Path | None) -> Any:
        if adapter is None:
            if self._adapted is not None:
                self._adapted.base_model.disable_adapter_layers()
            return self._adapted or self._base
        if self._adapted is None:
            self._adapted = PeftModel.from_pretrained(self._base, adapter, adapter_name=adapter.name).eval()
        elif adapter.name not in self._names:
            self._adapted.load_adapter(adapter, adapter_name=adapter.name)
        self._names.add(adapter.name)
        self._adapted.base_model.enable_adapter_layers()
        self._adapted.set_adapter(adapter.name)
        return self._adapted.eval()
