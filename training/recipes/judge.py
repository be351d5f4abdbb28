"""Train the encoder judge: `python -m training.recipes.judge [--config FILE] [--out DIR] [--folds [N ...]]`.

Turns of the corpus' authors A to C and opposed sentences -> network -> temperature and figures on the conversations of
the split dev, which train nothing -> `judge.safetensors`, `judge.json`. With `--folds` nothing of that is written: each
fifth of the conversations is read by a network that never saw it, and `judge/folds.jsonl` in the data folder keeps what
was said, for `training.bench.judge`. A fold that is there already, of the same configuration and rows, is not made
again; with numbers only those folds are made, so that several processes may share the work.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from rubric.corpus.opposed import read_opposed_talks
from rubric.corpus.opposites import OWN_OPPOSITES, read_opposites
from rubric.corpus.pairs import read_relabels
from rubric.corpus.records import read_corpus
from rubric.serve.bundle import TOKENIZER
from rubric.serve.texts import open_tokenizer
from training.data.judge_rows import JudgeTurn, corpus_turns, opposed_turns
from training.recipes.configs import read_table
from training.recipes.encoder_export import WEIGHTS
from training.recipes.judge_batches import Example, LowerStates, prepared
from training.recipes.judge_figures import Heard, figures_of, fit_temperature, hear_turns
from training.recipes.judge_fit import fit, fresh_net
from training.recipes.judge_fit_config import JudgeFitConfig, Losses
from training.recipes.judge_net import JudgeNet, trained_tensors
from training.recipes.minilm import package_folder

CONFIG: Final = Path(__file__).resolve().parents[1] / "configs" / "judge.yaml"
JUDGE_WEIGHTS: Final = "judge.safetensors"
JUDGE_FACTS: Final = "judge.json"
FOLDS: Final = "folds.jsonl"
FORMAT: Final = 1
SIDES: Final = ("reply", "worse")


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeConfig:
    """What `judge.yaml` says."""

    fit: JudgeFitConfig
    opposed_times: int  # how often the opposed sentences come in an epoch
    folds: int

    @property
    def sha256(self) -> str:
        """Of all values."""
        return hashlib.sha256(json.dumps(dataclasses.asdict(self), sort_keys=True).encode("ascii")).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Material:
    """Everything that is learned from or measured on."""

    turns: tuple[JudgeTurn, ...]
    opposed: tuple[JudgeTurn, ...]
    development: frozenset[str]  # conversations of the split dev

    @property
    def sha256(self) -> str:
        """Of all rows."""
        return hashlib.sha256(repr((self.turns, self.opposed)).encode("utf-8")).hexdigest()


def read_config(path: Path) -> JudgeConfig:
    """Parse the file; TypeError or KeyError where it has another field or lacks one, ConfigInvalid where it is none."""
    raw = read_table(path, recipe="judge")
    shape = dict(raw.pop("fit"))
    return JudgeConfig(fit=JudgeFitConfig(losses=Losses(**shape.pop("losses")), **shape), **raw)


def load_material() -> Material:
    """The committed rows. Raises CorpusInvalid."""
    conversations = read_corpus()
    opposites = {**read_opposites(), **read_opposites(OWN_OPPOSITES)}
    return Material(
        turns=tuple(corpus_turns(conversations, relabels=read_relabels(), opposites=opposites)),
        opposed=tuple(opposed_turns(read_opposed_talks())),
        development=frozenset(one.id for one in conversations if one.split == "dev"),
    )


@dataclass(frozen=True, slots=True)
class Workshop:
    """What every fit of a run shares: the tokenizer, the configuration and the frozen layers' states."""

    config: JudgeConfig
    tokenizer: Tokenizer
    lower: LowerStates

    @classmethod
    def open(cls, config: JudgeConfig) -> Workshop:
        """With nothing computed yet."""
        tokenizer = open_tokenizer(package_folder() / TOKENIZER)
        return cls(config, tokenizer, LowerStates(fresh_net(config.fit)))

    def prepare(self, turns: Sequence[JudgeTurn]) -> list[Example]:
        """The turns as they are read."""
        fit = self.config.fit
        return prepared(turns, tokenizer=self.tokenizer, seed=fit.seed, foreign_criteria=fit.foreign_criteria)

    def fit(self, examples: Sequence[Example], opposed: Sequence[JudgeTurn]) -> JudgeNet:
        """A network that learned from both."""
        return fit(
            [*examples, *self.prepare(opposed) * self.config.opposed_times],
            config=self.config.fit,
            tokenizer=self.tokenizer,
            lower=self.lower,
            after_epoch=lambda epoch, losses: _say({"epoch": epoch, **losses}),
        )

    def hear(self, net: JudgeNet, turns: Sequence[JudgeTurn]) -> list[tuple[Heard, ...]]:
        """What a network says of the turns' replies."""
        return hear_turns(net, turns, lower=self.lower, tokenizer=self.tokenizer)


def train(material: Material, config: JudgeConfig, *, out: Path) -> None:
    """Fit on everything but the split dev, calibrate and measure on that, save."""
    shop = Workshop.open(config)
    held_out = [turn for turn in material.turns if turn.group in material.development]
    learned = [turn for turn in material.turns if turn.group not in material.development]
    net = shop.fit(shop.prepare(learned), material.opposed)
    heard = shop.hear(net, held_out)
    temperature = fit_temperature(*_flat(held_out, heard))
    figures = figures_of(held_out, heard, temperature=temperature)
    save(net, config=config, temperature=temperature, out=out)
    _say({"on": "dev", **figures})


def save(net: JudgeNet, *, config: JudgeConfig, temperature: float, out: Path) -> None:
    """The trained tensors (fp16) and the facts that the export needs."""
    out.mkdir(parents=True, exist_ok=True)
    save_file(trained_tensors(net), out / JUDGE_WEIGHTS)
    (out / JUDGE_WEIGHTS).chmod(0o644)
    facts = {
        "format": FORMAT,
        "rank": config.fit.rank,
        "first_layer": config.fit.first_layer,
        "temperature": temperature,
        "config_sha256": config.sha256,
    }
    (out / JUDGE_FACTS).write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", "utf-8")


def folds_of(turns: Sequence[JudgeTurn], *, count: int) -> list[list[JudgeTurn]]:
    """Conversations dealt into folds by author, at random and always alike."""
    by_author: dict[str, list[str]] = {}
    for group in sorted({turn.group for turn in turns}):
        by_author.setdefault(group[0], []).append(group)
    place: dict[str, int] = {}
    for groups in by_author.values():
        random.Random(0).shuffle(groups)
        place.update({group: len(place) + number for number, group in enumerate(groups)})
    return [[turn for turn in turns if place[turn.group] % count == number] for number in range(count)]


def make_folds(
    material: Material, config: JudgeConfig, *, data: Path, numbers: Sequence[int]
) -> list[list[tuple[Heard, ...]]]:
    """What the networks of these folds say of what they never saw; a fold that is there already is read."""
    folder = data / "judge"
    folder.mkdir(parents=True, exist_ok=True)
    shop = Workshop.open(config)
    mark = f"{config.sha256}.{material.sha256}"
    folds = folds_of(material.turns, count=config.folds)
    return [_fold(number, folds, material.opposed, shop=shop, folder=folder, mark=mark) for number in numbers]


def cross_validate(material: Material, config: JudgeConfig, *, data: Path) -> None:
    """Make each fold that is not there, then calibrate each by the others, write `folds.jsonl`, print the figures."""
    folds = folds_of(material.turns, count=config.folds)
    heard = make_folds(material, config, data=data, numbers=range(config.folds))
    lines: list[str] = []
    for number, held_out in enumerate(folds):
        others = [at for at in range(len(folds)) if at != number]
        turns = [turn for at in others for turn in folds[at]]
        temperature = fit_temperature(*_flat(turns, [one for at in others for one in heard[at]]))
        _say({"on": f"fold {number}", **figures_of(held_out, heard[number], temperature=temperature)})
        lines += _prediction_lines(number, held_out, heard[number], temperature=temperature)
    path = data / "judge" / FOLDS
    partial = path.with_suffix(".partial")
    partial.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    partial.replace(path)
    everything = [one for part in heard for one in part]
    turns = [turn for fold in folds for turn in fold]
    temperature = fit_temperature(*_flat(turns, everything))
    _say({"on": "all folds", **figures_of(turns, everything, temperature=temperature)})


def _fold(
    number: int,
    folds: Sequence[Sequence[JudgeTurn]],
    opposed: Sequence[JudgeTurn],
    *,
    shop: Workshop,
    folder: Path,
    mark: str,
) -> list[tuple[Heard, ...]]:
    """What a network that learned from the other folds says of this one; from its file where that is of this run."""
    path = folder / f"fold-{number}.npz"
    held_out = folds[number]
    if path.is_file():
        kept = np.load(path)
        if str(kept["mark"]) == mark:
            return _unpacked(kept, held_out)
    examples = [example for at, fold in enumerate(folds) if at != number for example in shop.prepare(fold)]
    heard = shop.hear(shop.fit(examples, opposed), held_out)
    partial = path.with_name(f"partial-{path.name}")
    np.savez(partial, allow_pickle=False, **_packed(heard, mark=mark))
    partial.replace(path)
    _say({"made": f"fold {number}", **figures_of(held_out, heard, temperature=1.0)})
    return heard


def _packed(heard: Sequence[tuple[Heard, ...]], *, mark: str) -> dict[str, np.ndarray]:
    flat = [one for said in heard for one in said]
    return {
        "mark": np.array(mark),
        "logits": np.concatenate([one.logits for one in flat]),
        "faults": np.concatenate([one.faults for one in flat]),
        "genuine": np.array([one.genuine for one in flat]),
        "mechanisms": np.stack([one.mechanisms for one in flat]),
    }


def _unpacked(kept: np.lib.npyio.NpzFile, turns: Sequence[JudgeTurn]) -> list[tuple[Heard, ...]]:
    found, reply, row = [], 0, 0
    arrays = {name: kept[name] for name in ("logits", "faults", "genuine", "mechanisms")}
    for turn in turns:
        said = []
        for _ in turn.replies:
            end = row + len(turn.criteria)
            said.append(
                Heard(
                    logits=arrays["logits"][row:end],
                    faults=arrays["faults"][row:end],
                    genuine=float(arrays["genuine"][reply]),
                    mechanisms=arrays["mechanisms"][reply],
                )
            )
            reply, row = reply + 1, end
        found.append(tuple(said))
    return found


def _prediction_lines(
    fold: int, turns: Sequence[JudgeTurn], heard: Sequence[tuple[Heard, ...]], *, temperature: float
) -> list[str]:
    """One line per reply, as `training.bench.judge` reads them."""
    lines = []
    for turn, said in zip(turns, heard, strict=True):
        for side, one in zip(SIDES, said, strict=False):
            line = {
                "fold": fold,
                "conversation": turn.group,
                "turn": int(turn.id.rpartition(".")[2]),
                "side": side,
                "levels": one.probabilities(temperature=temperature).round(6).tolist(),
                "mechanisms": one.mechanisms.round(6).tolist(),
            }
            lines.append(json.dumps(line))
    return lines


def _flat(
    turns: Sequence[JudgeTurn], heard: Sequence[tuple[Heard, ...]]
) -> tuple[list[Heard], list[tuple[float, ...]]]:
    """Replies one after another, with their authors' levels."""
    return [one for said in heard for one in said], [reply.levels for turn in turns for reply in turn.replies]


def _say(facts: dict[str, float | int | str]) -> None:
    print(json.dumps(facts), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Load, fit, measure, save."""
    parser = argparse.ArgumentParser(prog="python -m training.recipes.judge", description=__doc__)
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    parser.add_argument("--folds", type=int, nargs="*", help="measure on left-out conversations (of these folds alone)")
    data = Path(os.environ.get("RAPPORT_DATA") or "var")
    parser.add_argument("--data", type=Path, default=data, help="where out-of-fold predictions are kept")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    config, material = read_config(asked.config), load_material()
    _say({"turns": len(material.turns), "pairs": sum(turn.is_pair for turn in material.turns)})
    if asked.folds:
        make_folds(material, config, data=asked.data, numbers=asked.folds)
    elif asked.folds is not None:
        cross_validate(material, config, data=asked.data)
    else:
        train(material, config, out=asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
