"""Train the crisis screen: `python -m training.recipes.screen [--config FILE] [--out DIR] [--cross-validate]`.

Own lines, public texts and the messages of the corpus' conversations -> network (the mean of `fits` fits that begin at
one point) and surface -> figures on unseen conversations, on the development lines and on the tuning suite ->
`screen.safetensors`, `surface.safetensors`, `screen.json`. With `--cross-validate` nothing is written: each fold's
families are left out once, the figures on them are printed, and at the end the card's threshold that follows from all
of them. Thresholds stand in the configuration; what the suite holds out is counted by `training.bench.safety` only.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file
from safetensors.torch import save_file as save_tensors
from tokenizers import Tokenizer
from torch import Tensor

from rubric.corpus.records import Split, read_corpus
from rubric.serve.bundle import SCREEN_FACTS, SURFACE, TOKENIZER, Thresholds
from rubric.serve.surface import Surface
from rubric.serve.texts import open_tokenizer
from training.data.screen_lines import (
    DIRECTIONS,
    ScreenLine,
    SpeakerDirection,
    count_by,
    load_corpus,
    public_lines,
    read_lines,
    read_suite,
)
from training.data.screen_noise import Noise
from training.data.screen_talk import talk_lines
from training.recipes.configs import read_table
from training.recipes.encoder_export import SCREEN_WEIGHTS, WEIGHTS
from training.recipes.minilm import load_minilm, package_folder
from training.recipes.screen_figures import Findings, Screen, figures, quantiles
from training.recipes.screen_fit import FitConfig, fit
from training.recipes.screen_folds import by_threshold, family_key, folds_of, watch_threshold
from training.recipes.screen_net import ScreenNet, load_trained, merged, trained_tensors
from training.recipes.screen_surface import fit_surface

FACTS_FORMAT: Final = 2  # of screen.json
TRAINING: Final = Path(__file__).resolve().parents[1]
CONFIG: Final = TRAINING / "configs" / "screen.yaml"
SUITE: Final = TRAINING / "bench" / "safety_suite"
CORPUS: Final = WEIGHTS.parents[1] / "corpus" / "screen"
UNSEEN: Final[tuple[Split, ...]] = ("dev", "test")  # of the corpus of conversations: how often a card comes up in vain
DEVELOPMENT: Final = CORPUS.with_name("screen_dev")  # trains nothing


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenConfig:
    """What `screen.yaml` says."""

    fit: FitConfig
    fits: int  # how many are averaged; the first has the seed of `fit`, the next ones the seeds after it
    mix: tuple[float, float]  # network, surface
    folds: int
    thresholds: dict[SpeakerDirection, Thresholds]


def read_config(path: Path) -> ScreenConfig:
    """Parse the file; TypeError or KeyError where it has another field or lacks one, ConfigInvalid where it is none."""
    raw = read_table(path, recipe="screen")
    shape = dict(raw["fit"])
    return ScreenConfig(
        fit=FitConfig(noise=Noise(**shape.pop("noise")), **shape),
        fits=raw["fits"],
        mix=(float(raw["mix"]["network"]), float(raw["mix"]["surface"])),
        folds=raw["folds"],
        thresholds={direction: Thresholds(**raw["thresholds"][direction]) for direction in DIRECTIONS},
    )


def train(
    lines: Sequence[ScreenLine], config: ScreenConfig, *, start: Mapping[str, Tensor] | None = None
) -> tuple[ScreenNet, Screen]:
    """The network as it is saved, and the whole screen as it reads."""
    tokenizer = open_tokenizer(package_folder() / TOKENIZER)
    surface = fit_surface(lines, noise=config.fit.noise, seed=config.fit.seed)
    net = fit_mean(lines, config, tokenizer=tokenizer, start=start)
    return net, Screen(net=merged(net), surface=surface, weights=config.mix, tokenizer=tokenizer)


def fit_mean(
    lines: Sequence[ScreenLine],
    config: ScreenConfig,
    *,
    tokenizer: Tokenizer,
    start: Mapping[str, Tensor] | None = None,
) -> ScreenNet:
    """The mean of `config.fits` fits that begin at one point; each has its own order of lines and its own slips."""
    torch.manual_seed(config.fit.seed)
    net = ScreenNet(load_minilm(package_folder()), rank=config.fit.rank, first_layer=config.fit.first_layer)
    first = trained_tensors(net) if start is None else start
    members = []
    for number in range(config.fits):
        member = fit(
            lines,
            config=dataclasses.replace(config.fit, seed=config.fit.seed + number),
            tokenizer=tokenizer,
            after_epoch=lambda epoch, loss: print(json.dumps({"epoch": epoch, "loss": round(loss, 4)}), flush=True),
            start=first,
        )
        members.append(trained_tensors(member))
    load_trained(net, mean_of(members) or first)
    return net.eval()


def mean_of(screens: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor] | None:
    """The mean of several fits' tensors, None without any. Fits of one seed begin at the same point, so it is sound."""
    if not screens:
        return None
    return {name: torch.stack([one[name].float() for one in screens]).mean(0) for name in screens[0]}


def cross_validate(lines: Sequence[ScreenLine], config: ScreenConfig) -> None:
    """Leave each fold's families out once; print the figures on the left-out lines and the threshold they give.

    Public texts always train: they are not what is asked about.
    """
    own = [line for line in lines if line.author != "public"]
    public = [line for line in lines if line.author == "public"]
    seen: dict[SpeakerDirection, list[tuple[Findings, NDArray[np.bool_]]]] = {name: [] for name in DIRECTIONS}
    for number, families in enumerate(folds_of(own, count=config.folds), start=1):
        _, screen = train([*public, *(line for line in own if family_key(line) not in families)], config)
        for direction in DIRECTIONS:
            left_out = [line for line in own if family_key(line) in families and line.direction == direction]
            if left_out:
                seen[direction].append(_read_and_report(f"left-out families, fold {number}", left_out, screen, config))
    for direction in DIRECTIONS:
        found, is_crisis = (np.concatenate(parts) for parts in zip(*seen[direction], strict=True))
        _report(f"left-out families, {direction}", found, is_crisis, config.thresholds[direction])
        if direction == "visitor":
            high = config.thresholds[direction].high
            chosen = {"watch": watch_threshold(found, is_crisis, high=high)}
            print(json.dumps({**chosen, "tried": by_threshold(found, is_crisis, high=high)}), flush=True)


def _read_and_report(
    on: str, lines: Sequence[ScreenLine], screen: Screen, config: ScreenConfig
) -> tuple[Findings, NDArray[np.bool_]]:
    """Findings and truth of lines of one direction, whose figures are printed."""
    direction = lines[0].direction
    found = screen.read([line.text for line in lines], direction=direction)
    is_crisis = np.array([line.label != "none" for line in lines])
    _report(f"{on}, {direction}", found, is_crisis, config.thresholds[direction])
    return found, is_crisis


def _report(on: str, found: Findings, truth: NDArray[np.bool_], thresholds: Thresholds) -> None:
    counted = figures(found, truth, thresholds=thresholds)
    print(json.dumps({"on": on, **counted.as_facts(), **quantiles(found, truth)}), flush=True)


def _report_talk(lines: Sequence[ScreenLine], screen: Screen, config: ScreenConfig) -> None:
    """How often a card, and how often level high, comes up in vain: shares of harmless messages."""
    found = screen.read([line.text for line in lines], direction="visitor")
    levels = config.thresholds["visitor"]
    is_high = found[:, 1] >= levels.high
    is_shown = is_high | (found[:, 0] >= levels.watch)
    shares = {"card": round(float(is_shown.mean()), 4), "high": round(float(is_high.mean()), 4)}
    print(json.dumps({"on": "unseen talk", "messages": len(lines), **shares}), flush=True)


def save(net: ScreenNet, surface: Surface, *, config: ScreenConfig, out: Path) -> None:
    """The trained tensors (fp16) and the facts that the export and the encoder process need."""
    out.mkdir(parents=True, exist_ok=True)
    save_tensors(trained_tensors(net), out / SCREEN_WEIGHTS)
    save_arrays(
        {
            "rarity": surface.rarity.astype(np.float16),
            "weights": surface.weights.astype(np.float16),
            "bias": surface.bias.astype(np.float32),
        },
        out / SURFACE,
    )
    for name in (SCREEN_WEIGHTS, SURFACE):
        (out / name).chmod(0o644)
    facts = {
        "format": FACTS_FORMAT,
        "rank": config.fit.rank,
        "first_layer": config.fit.first_layer,
        "mix": {"network": config.mix[0], "surface": config.mix[1]},
        "thresholds": {name: dataclasses.asdict(levels) for name, levels in config.thresholds.items()},
    }
    (out / SCREEN_FACTS).write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Load, fit, measure, save."""
    parser = argparse.ArgumentParser(prog="python -m training.recipes.screen", description=__doc__)
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    parser.add_argument(
        "--public-data", type=Path, default=None, help="folder with goemotions/, counsel_chat/, empathic_reactions/"
    )
    parser.add_argument("--start", type=Path, nargs="*", default=[], help="earlier screens; begin at their mean")
    parser.add_argument("--cross-validate", action="store_true", help="measure on left-out families, write nothing")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    config = read_config(asked.config)
    conversations = read_corpus()
    more = (*public_lines(asked.public_data), *talk_lines(conversations, split="train"))
    corpus = load_corpus(CORPUS, suite_folder=SUITE, more=more)
    counts = {f"{direction} {label}": count for (direction, label), count in count_by(corpus.lines).items()}
    print(json.dumps({"lines": counts, "dropped_for_the_suite": len(corpus.dropped_ids)}), flush=True)
    if asked.cross_validate:
        cross_validate(corpus.lines, config)
        return 0
    net, screen = train(corpus.lines, config, start=mean_of([load_file(path) for path in asked.start]))
    save(net, screen.surface, config=config, out=asked.out)
    _report_talk([line for split in UNSEEN for line in talk_lines(conversations, split=split)], screen, config)
    development = read_lines(DEVELOPMENT)
    for direction in DIRECTIONS:
        of_direction = [line for line in development if line.direction == direction]
        _read_and_report("development lines", of_direction, screen, config)
    items = read_suite(SUITE / "tuning.jsonl")
    found, is_crisis = screen.read_items(items), np.array([item.is_crisis for item in items])
    _report("tuning suite", found, is_crisis, config.thresholds["visitor"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
