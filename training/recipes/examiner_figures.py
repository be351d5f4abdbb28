"""How good the examiner is on what it has not seen: pairs of author D by conversation, EPITOME by post.

The recipe `examiner` prints what `pair_figures` and `macro_f1` count; the predictions it leaves are what
`training.bench` measures again with the judge's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from rubric import Interval, JudgedPair, accuracy_interval, length_matched
from rubric.examiner import MECHANISMS, Reply
from rubric.examiner_text import Numbers
from training.data.epitome import EPITOME, EmpathyJudgement
from training.data.examiner_rows import PairOfReplies
from training.data.reading import load_file
from training.data.sources import source_named
from training.recipes.embeddings import Embeddings
from training.recipes.examiner_levels import LevelPenalties, fit_levels, fit_lexicon, read_levels

EPITOME_LEAST_TEXTS = 3


def pair_figures(
    pairs: Sequence[PairOfReplies], quality: Mapping[tuple[str, str, str], float], *, seed: int
) -> dict[str, Interval | int | None]:
    """Accuracy over all pairs and over those of like length; quality by (conversation, message, text)."""
    judged = [
        JudgedPair(
            group=pair.better.conversation,
            chosen=quality[pair.better.conversation, pair.better.message, pair.better.text],
            rejected=quality[pair.worse.conversation, pair.worse.message, pair.worse.text],
            chosen_chars=len(pair.better.text),
            rejected_chars=len(pair.worse.text),
        )
        for pair in pairs
    ]
    matched = length_matched(judged)
    return {
        "pairs": len(judged),
        "accuracy": accuracy_interval(judged, seed=seed),
        "matched_pairs": len(matched),
        "matched": accuracy_interval(matched, seed=seed),
    }


def deal(groups: Sequence[str], *, count: int, seed: int) -> list[frozenset[str]]:
    """Groups dealt into folds by chance, of like number."""
    names = sorted(set(groups))
    order = np.random.default_rng(seed).permutation(len(names))
    return [frozenset(names[place] for place in order[fold::count]) for fold in range(count)]


def read_epitome(folder: Path) -> tuple[list[EmpathyJudgement], NDArray[np.int64]]:
    """The posts and replies, and their levels [n, 3] in the order of MECHANISMS. Raises DataFileInvalid."""
    files = {path.name.partition("-reddit")[0]: path for path in source_named("epitome").paths(folder)}
    rows = [load_file(files[name], EPITOME) for name in ("emotional-reactions", "interpretations", "explorations")]
    return list(rows[0]), np.array([[one.level for one in of_file] for of_file in rows]).T


def epitome_folds(
    rows: Sequence[EmpathyJudgement],
    levels: NDArray[np.int64],
    config: LevelPenalties,
    *,
    folds: int,
    seed: int,
    embeddings: Embeddings,
) -> tuple[Numbers, NDArray[np.int64]]:
    """[n, 3, 3] probabilities of each reply by weights that never saw its post, and the fold of each."""
    replies = [
        Reply(
            text=one.reply,
            message=one.post,
            earlier="",
            text_vector=embeddings.of(one.reply),
            message_vector=embeddings.of(one.post),
        )
        for one in rows
    ]
    found = np.zeros((len(rows), len(MECHANISMS), 3))
    fold_of = np.zeros(len(rows), dtype=np.int64)
    for number, held in enumerate(deal([one.group for one in rows], count=folds, seed=seed)):
        is_held = np.array([one.group in held for one in rows])
        seen = [reply for reply, out in zip(replies, is_held, strict=True) if not out]
        left = [reply for reply, out in zip(replies, is_held, strict=True) if out]
        lexicon = fit_lexicon([one.text for one in seen], least_texts=EPITOME_LEAST_TEXTS)
        fitted = fit_levels(seen, levels[~is_held], lexicon, config)
        found[is_held] = read_levels(left, fitted, lexicon)
        fold_of[is_held] = number
    return found, fold_of


def macro_f1(found: Numbers, levels: NDArray[np.int64]) -> dict[str, float]:
    """Macro-F1 of the likeliest level per mechanism, over all rows at once."""
    return {
        name: round(float(f1_score(levels[:, at], found[:, at].argmax(-1), average="macro")), 4)
        for at, name in enumerate(MECHANISMS)
    }
