"""Measure the judge's mechanism head on EPITOME: `python -m training.recipes.judge_epitome [--public-data DIR]`.

Five folds by seeker's post; each is read by a network of the judge's shape that learned the mechanisms from the other
four. `judge/epitome.jsonl` in the data folder keeps what was said, for `training.bench.judge`. The data may be used for
research only, so that no weights are kept and the shipped judge never learns from it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from torch import Tensor
from torch.nn import functional

from rubric.dialogue import Transcript
from rubric.serve.readings import Reading, ReplyBlank, build_reading, context_text
from training.data.epitome import EPITOME
from training.data.reading import load_file
from training.data.sources import public_data_folder, source_named
from training.recipes.averaged_steps import AveragedSteps
from training.recipes.half_products import half_products
from training.recipes.judge import CONFIG, Workshop, read_config
from training.recipes.judge_batches import read_all
from training.recipes.judge_fit import fresh_net
from training.recipes.judge_net import MECHANISM_LEVELS, MECHANISMS, JudgeNet

FOLDS: Final = 5
EPOCHS: Final = 6
BATCH: Final = 32
LEARNING_RATE: Final = 1.5e-3
AVERAGE_DECAY: Final = 0.99
WEIGHT_DECAY: Final = 0.05
WARM_UP: Final = 0.1  # of all steps
NAMES: Final = ("emotional_reactions", "interpretations", "explorations")


@dataclass(frozen=True, kw_only=True, slots=True)
class MechanismRow:
    """A pair of post and reply with its three levels."""

    id: str
    group: str
    reading: Reading
    levels: tuple[int, ...]


def load_rows(folder: Path, shop: Workshop) -> list[MechanismRow]:
    """Every pair, as the judge reads it. Raises DataFileInvalid."""
    files = [load_file(path, EPITOME) for path in source_named("epitome").paths(folder)]
    rows = []
    for together in zip(*files, strict=True):
        first = together[0]
        context = context_text(Transcript.of(("user", first.post)))
        try:
            reading = build_reading(context, first.reply, shop.tokenizer)
        except ReplyBlank:
            continue
        levels = tuple(one.level for one in together)
        rows.append(MechanismRow(id=first.id, group=first.group, reading=reading, levels=levels))
    return rows


def folds_of(rows: Sequence[MechanismRow]) -> list[list[MechanismRow]]:
    """Posts dealt into folds at random, always alike."""
    groups = sorted({row.group for row in rows})
    random.Random(0).shuffle(groups)
    place = {group: number % FOLDS for number, group in enumerate(groups)}
    return [[row for row in rows if place[row.group] == number] for number in range(FOLDS)]


def fit(rows: Sequence[MechanismRow], shop: Workshop, *, seed: int) -> JudgeNet:
    """A network that learned the mechanisms; rare levels count more, as the figure is a mean over levels."""
    torch.manual_seed(seed)
    dice = random.Random(seed)
    net = fresh_net(shop.config.fit).train()
    steps = AveragedSteps(
        net,
        rate=LEARNING_RATE,
        weight_decay=WEIGHT_DECAY,
        average_decay=AVERAGE_DECAY,
        steps=math.ceil(len(rows) / BATCH) * EPOCHS,
        warm_up=WARM_UP,
    )
    weights = level_weights(rows)
    order = list(rows)
    for _ in range(EPOCHS):
        dice.shuffle(order)
        for at in range(0, len(order), BATCH):
            steps.take(_loss(net, order[at : at + BATCH], shop, weights=weights))
    return steps.averaged()


def level_weights(rows: Sequence[MechanismRow]) -> Tensor:
    """Root of the inverse share of each level, [3, 3]."""
    counts = torch.ones(MECHANISMS, MECHANISM_LEVELS)
    for row in rows:
        for mechanism, level in enumerate(row.levels):
            counts[mechanism, level] += 1
    return (counts.sum(1, keepdim=True) / MECHANISM_LEVELS / counts).sqrt()


def _loss(net: JudgeNet, rows: Sequence[MechanismRow], shop: Workshop, *, weights: Tensor) -> Tensor:
    with half_products():
        read, _ = read_all(net, [row.reading for row in rows], lower=shop.lower)
    by_mechanism = read.mechanisms.float().view(-1, MECHANISMS, MECHANISM_LEVELS)
    wanted = torch.tensor([row.levels for row in rows])
    losses = [
        functional.nll_loss(by_mechanism[:, mechanism], wanted[:, mechanism], weight=weights[mechanism])
        for mechanism in range(MECHANISMS)
    ]
    return torch.stack(losses).mean()


@torch.no_grad()
def predict(net: JudgeNet, rows: Sequence[MechanismRow], shop: Workshop) -> NDArray[np.float64]:
    """Probabilities [rows, 3, 3]."""
    parts = []
    for at in range(0, len(rows), BATCH):
        with half_products():
            read, _ = read_all(net, [row.reading for row in rows[at : at + BATCH]], lower=shop.lower)
        parts.append(read.mechanisms.double().exp().view(-1, MECHANISMS, MECHANISM_LEVELS))
    found = torch.cat(parts)
    return np.asarray((found / found.sum(-1, keepdim=True)).numpy(), dtype=np.float64)


def macro_f1(rows: Sequence[MechanismRow], found: NDArray[np.float64]) -> dict[str, float]:
    """Mean over the three levels, all folds pooled, by mechanism."""
    levels = np.array([row.levels for row in rows])
    return {
        name: round(float(f1_score(levels[:, at], found[:, at].argmax(-1), average="macro")), 4)
        for at, name in enumerate(NAMES)
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Load, fit five times, write the predictions, print the figures."""
    parser = argparse.ArgumentParser(prog="python -m training.recipes.judge_epitome", description=__doc__)
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--public-data", type=Path, default=public_data_folder(), help="folder with epitome/")
    data = Path(os.environ.get("RAPPORT_DATA") or "var")
    parser.add_argument("--data", type=Path, default=data, help="where out-of-fold predictions are kept")
    asked = parser.parse_args(arguments)
    if asked.public_data is None:
        parser.error("there is no folder of public data; name it by --public-data")
    torch.set_num_threads(1)
    shop = Workshop.open(read_config(asked.config))
    rows = load_rows(asked.public_data, shop)
    folds = folds_of(rows)
    lines: list[str] = []
    parts: list[NDArray[np.float64]] = []
    for number, held_out in enumerate(folds):
        learned = [row for at, fold in enumerate(folds) if at != number for row in fold]
        found = predict(fit(learned, shop, seed=shop.config.fit.seed), held_out, shop)
        parts.append(found)
        print(json.dumps({"fold": number, "pairs": len(held_out), **macro_f1(held_out, found)}), flush=True)
        lines += [
            json.dumps({"pair": row.id, "fold": number, "mechanisms": shares.round(6).tolist()})
            for row, shares in zip(held_out, found, strict=True)
        ]
    path = asked.data / "judge" / "epitome.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    pooled = [row for fold in folds for row in fold]
    print(json.dumps({"on": "all folds", "pairs": len(pooled), **macro_f1(pooled, np.concatenate(parts))}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
