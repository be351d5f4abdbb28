"""The judge's three graphs from the package's encoder and what the recipe `judge` saved; `encoder_export` calls it.

Each is written for one item with a free number of tokens and compared with torch at several lengths.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load_file
from torch import Tensor

from rubric.serve import bundle
from rubric.serve.readings import CRITERION_TOKENS, READING_TOKENS, SURFACE_NAMES
from training.recipes.graphs import compare, write_graph
from training.recipes.judge_net import (
    STATE_WIDTH,
    SUMMARY_WIDTH,
    CriterionGraph,
    JudgeNet,
    LevelGraph,
    ReadGraph,
    load_trained,
    merged,
)
from training.recipes.minilm import load_minilm, package_folder

JUDGE_WEIGHTS: Final = "judge.safetensors"
LENGTHS_CHECKED: Final = ((4, 3), (37, 12), (READING_TOKENS, CRITERION_TOKENS))  # of a reading, of a criterion


def load_judge(weights: Path) -> tuple[JudgeNet, float]:
    """The trained judge over the package's encoder, its updates merged, and the temperature of its levels."""
    facts = json.loads((weights / bundle.JUDGE_FACTS).read_text("utf-8"))
    net = JudgeNet(load_minilm(package_folder()), rank=facts["rank"], first_layer=facts["first_layer"])
    load_trained(net, load_file(weights / JUDGE_WEIGHTS))
    return merged(net), float(facts["temperature"])


def export_judge(weights: Path, out: Path) -> None:
    """Write the three graphs into `out`. Raises ExportDiffers."""
    net, temperature = load_judge(weights)
    read, criterion, level = ReadGraph(net).eval(), CriterionGraph(net).eval(), LevelGraph(net, temperature=temperature)
    row, tokens, words = {1: "length"}, {"length": READING_TOKENS}, {"words": CRITERION_TOKENS}
    write_graph(
        read,
        out / bundle.JUDGE_READ,
        example=_reading(8),
        free={"input_ids": row, "attention_mask": row, "reply_mask": row},
        outputs=("states", "summary", "mechanisms", "genuine"),
        sizes=tokens,
    )
    write_graph(
        criterion,
        out / bundle.JUDGE_CRITERION,
        example=_criterion(6),
        free={"input_ids": {1: "words"}, "attention_mask": {1: "words"}},
        outputs=("states",),
        sizes=words,
    )
    write_graph(
        level.eval(),
        out / bundle.JUDGE_LEVEL,
        example=_level(8, 6),
        free={"states": row, "reply_mask": row, "criterion_states": {1: "words"}},
        outputs=("levels",),
        sizes=tokens | words,
    )
    for length, count in LENGTHS_CHECKED:
        compare(read, out / bundle.JUDGE_READ, _reading(length), length=length)
        compare(criterion, out / bundle.JUDGE_CRITERION, _criterion(count), length=count)
        compare(level, out / bundle.JUDGE_LEVEL, _level(length, count), length=length)


def _reading(length: int) -> dict[str, Tensor]:
    ids = _ids(length)
    surface = torch.linspace(0, 1, len(SURFACE_NAMES))[None]
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "reply_mask": _mask(length), "surface": surface}


def _criterion(count: int) -> dict[str, Tensor]:
    ids = _ids(count)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def _level(length: int, count: int) -> dict[str, Tensor]:
    drawn = torch.Generator().manual_seed(length)
    return {
        "states": torch.randn(1, length, STATE_WIDTH, generator=drawn),
        "reply_mask": _mask(length),
        "summary": torch.randn(1, SUMMARY_WIDTH, generator=drawn),
        "criterion_states": torch.randn(1, count, 2 * STATE_WIDTH, generator=drawn),
    }


def _ids(length: int) -> Tensor:
    return torch.randint(1000, 20000, (1, length), generator=torch.Generator().manual_seed(length))


def _mask(length: int) -> Tensor:
    """The second half is the reply, its last marker aside."""
    mask = torch.zeros(1, length, dtype=torch.int64)
    mask[:, length // 2 : length - 1] = 1
    return mask
