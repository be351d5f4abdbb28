"""Train the examiner: `python -m training.recipes.examiner [--folds] [--config FILE] [--out FILE] [--data DIR]`.

Author D's pairs and levels, other authors' pairs, other real replies and text that is none -> regressions ->
`examiner.safetensors`. With `--folds` no weights are written: each fifth of the conversations is read by an examiner
that never saw it, EPITOME likewise by post, and `examiner/folds.jsonl` and `examiner/epitome.jsonl` in the data folder
keep what was found, for `training.bench`. No other recipe may load what this makes (`configs.read_config`). Needs
public data (docs/data.md).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from safetensors.numpy import save_file

from rubric.corpus.records import read_corpus
from rubric.examiner import WEIGHTS, Examined, Examiner, pack
from training.data.examiner_rows import AUTHOR, ExaminerRows, GradedReply, load_rows
from training.data.sources import public_data_folder
from training.recipes.configs import EXAMINER, read_config
from training.recipes.embeddings import Embeddings
from training.recipes.examiner_figures import deal, epitome_folds, macro_f1, pair_figures, read_epitome
from training.recipes.examiner_fit import ExaminerFit, fit_examiner, rounded, to_reply

CONFIG: Final = Path(__file__).resolve().parents[1] / "configs" / "examiner.yaml"


class PublicDataMissing(RuntimeError):
    """The recipe needs text of other voices, which is not copied into the repository."""

    def __init__(self) -> None:
        super().__init__("There are no public data: name their folder in RAPPORT_PUBLIC_DATA (docs/data.md).")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExaminerConfig:
    """What `examiner.yaml` says."""

    seed: int
    folds: int
    fit: ExaminerFit


def train(rows: ExaminerRows, config: ExaminerConfig, *, embeddings: Embeddings, out: Path) -> Examiner:
    """Fit on everything, write, and read back."""
    fitted = fit_examiner(rows, config.fit, embeddings=embeddings)
    lists = {
        "known": sorted(fitted.known),
        "pair.terms": list(fitted.pair_lexicon.terms),
        "register.terms": list(fitted.register_lexicon.terms),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    save_file({**rounded(dict(fitted.tensors)), **{name: pack(texts) for name, texts in lists.items()}}, out)
    out.chmod(0o644)
    return Examiner.load(out)


def cross_validate(
    rows: ExaminerRows, config: ExaminerConfig, *, groups: Sequence[frozenset[str]], embeddings: Embeddings
) -> list[tuple[int, GradedReply, Examined]]:
    """Every reply of author D by an examiner that never saw its conversation, with the fold's number."""
    everything = frozenset(rows.conversations)
    found = []
    for number, held in enumerate(groups):
        examiner = fit_examiner(rows.within(everything - held), config.fit, embeddings=embeddings)
        for one in rows.graded:
            if one.sample.conversation in held:
                found.append((number, one, examiner.examine(to_reply(one.sample, embeddings))))
        print(json.dumps({"fold": number, "conversations": len(held)}), flush=True)
    return found


def report_folds(found: Sequence[tuple[int, GradedReply, Examined]], rows: ExaminerRows, *, seed: int) -> None:
    """Print pair accuracy and the mechanisms' macro-F1, out of fold."""
    quality = {
        (one.sample.conversation, one.sample.message, one.sample.text): examined.quality
        for _, one, examined in found
        if examined.quality is not None
    }
    own = [pair for pair in rows.pairs if pair.better.conversation]
    counted = pair_figures(own, quality, seed=seed)
    facts = {
        name: value if value is None or isinstance(value, int) else dataclasses.asdict(value)
        for name, value in counted.items()
    }
    shares = np.array([examined.mechanisms for _, _, examined in found])
    levels = np.array([one.levels for _, one, _ in found])
    named = {"on": f"author {AUTHOR}, out of fold", **facts, "macro_f1": macro_f1(shares, levels)}
    print(json.dumps(named), flush=True)


def write_lines(path: Path, lines: Iterable[dict[str, object]]) -> None:
    """One JSON object a line, moved into place whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    partial.replace(path)


def leave_folds(
    rows: ExaminerRows,
    config: ExaminerConfig,
    *,
    groups: Sequence[frozenset[str]],
    embeddings: Embeddings,
    folder: Path,
) -> None:
    """The predictions of author D's replies, on disk and in figures."""
    found = cross_validate(rows, config, groups=groups, embeddings=embeddings)
    report_folds(found, rows, seed=config.seed)
    write_lines(
        folder / "folds.jsonl",
        (
            {
                "fold": number,
                "conversation": one.sample.conversation,
                "turn": one.turn,
                "side": one.side,
                "quality": examined.quality,
                "mechanisms": examined.mechanisms,
            }
            for number, one, examined in found
        ),
    )


def leave_epitome(config: ExaminerConfig, *, public: Path, embeddings: Embeddings, folder: Path) -> None:
    """The same of EPITOME, by weights that are thrown away."""
    rows, levels = read_epitome(public)
    embeddings.prepare(text for one in rows for text in (one.reply, one.post))
    shares, fold_of = epitome_folds(
        rows, levels, config.fit.levels, folds=config.folds, seed=config.seed, embeddings=embeddings
    )
    print(json.dumps({"on": "EPITOME, out of fold", "replies": len(rows), "macro_f1": macro_f1(shares, levels)}))
    write_lines(
        folder / "epitome.jsonl",
        (
            {"fold": int(fold), "pair": one.id, "mechanisms": of_reply.tolist()}
            for fold, one, of_reply in zip(fold_of, rows, shares, strict=True)
        ),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Load, fit, save or measure."""
    parser = argparse.ArgumentParser(prog="python -m training.recipes.examiner", description=__doc__)
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    parser.add_argument("--data", type=Path, default=Path("var"), help="where out-of-fold predictions are kept")
    parser.add_argument("--embeddings", type=Path, default=None, help="file that keeps embeddings between runs")
    parser.add_argument("--folds", action="store_true", help="measure out of fold, write no weights")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    config = read_config(asked.config, ExaminerConfig, recipe=EXAMINER)
    public = public_data_folder()
    if public is None:
        raise PublicDataMissing
    conversations = [one for one in read_corpus() if one.author == AUTHOR]
    groups = deal([one.id for one in conversations], count=config.folds, seed=config.seed)
    rows = load_rows(conversations, public=public, groups=groups, seed=config.seed)
    embeddings = Embeddings(asked.embeddings)
    samples = [*(one.sample for one in rows.graded), *rows.others]
    embeddings.prepare(text for one in samples for text in (one.text, one.message))
    counts = {"pairs": len(rows.pairs), "replies": len(rows.graded), "other_texts": len(rows.others)}
    print(json.dumps({"conversations": len(rows.conversations), **counts, "words": len(rows.known)}), flush=True)
    if asked.folds:
        folder = asked.data / "examiner"
        leave_folds(rows, config, groups=groups, embeddings=embeddings, folder=folder)
        leave_epitome(config, public=public, embeddings=embeddings, folder=folder)
    else:
        made = train(rows, config, embeddings=embeddings, out=asked.out)
        print(json.dumps({"version": made.version, "bytes": asked.out.stat().st_size}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
