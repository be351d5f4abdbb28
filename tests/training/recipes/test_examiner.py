"""The examiner's recipe: folds that stay apart, fits that recover what is there, and rows that are no probes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from rubric.corpus.records import read_corpus
from rubric.examiner import Reply
from rubric.examiner_text import words
from training.data.examiner_rows import AUTHOR, REPLIES, ExaminerRows, GradedReply, PairOfReplies, Sample, load_rows
from training.data.judge_probes import FOLDER, Family
from training.data.sources import public_data_folder
from training.recipes.configs import read_config
from training.recipes.embeddings import Embeddings, Unit
from training.recipes.examiner import CONFIG, ExaminerConfig, cross_validate, train, write_lines
from training.recipes.examiner_figures import deal, macro_f1
from training.recipes.examiner_fit import fit_examiner, to_reply
from training.recipes.examiner_levels import fit_levels, fit_lexicon, read_levels

CONFIGURED = read_config(CONFIG, ExaminerConfig, recipe="examiner")
KINDS = tuple(CONFIGURED.fit.genuine.kinds)


class HashedEmbeddings(Embeddings):
    """Unit vectors that a text's hash decides: they hold nothing of its meaning."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def of(self, text: str) -> Unit:
        self.asked.add(text)
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
        vector = np.random.default_rng(seed).normal(size=384)
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def sample(text: str, *, conversation: str, kind: str = "own") -> Sample:
    return Sample(kind=kind, text=text, message="I am lost today", earlier="", conversation=conversation)


def small_rows() -> ExaminerRows:
    """Ten conversations in which a good reply asks how it was, and a poor one says that it will pass."""
    pairs, graded, others = [], [], []
    for number in range(10):
        name = f"d-{number:03d}"
        better = sample(f"That was hard, number {number}. How was it for you today?", conversation=name)
        worse = sample(f"It will pass, number {number}. Do not think of it today.", conversation=name)
        pairs.append(PairOfReplies(better=better, worse=worse))
        graded.append(GradedReply(sample=better, turn=1, side="reply", levels=(1, 2, 2)))
        graded.append(GradedReply(sample=worse, turn=1, side="worse", levels=(0, 1, 0)))
        others += [sample(f"zqx {kind} wvb {number}", conversation=name, kind=kind) for kind in KINDS]
    others += [sample("That is hard. How are you?", conversation="", kind=kind) for kind in ("counsel", "comfort")]
    voice = [
        sample(text, conversation="", kind="voice") for text in ("Poor you. How was it?", "It will pass, I think.")
    ]
    pairs.append(PairOfReplies(better=voice[0], worse=voice[1]))
    others += voice
    known = frozenset(word for one in graded for word in words(one.sample.text))
    return ExaminerRows(pairs=tuple(pairs), graded=tuple(graded), others=tuple(others), known=known)


def test_what_is_written_is_what_was_fitted(tmp_path: Path) -> None:
    rows, embeddings = small_rows(), HashedEmbeddings()
    fitted = fit_examiner(rows, CONFIGURED.fit, embeddings=embeddings)
    stored = train(rows, CONFIGURED, embeddings=embeddings, out=tmp_path / "w" / "examiner.safetensors")
    reply = to_reply(rows.pairs[0].better, embeddings)
    assert stored.examine(reply).quality == pytest.approx(fitted.examine(reply).quality)
    assert stored.version != fitted.version


def test_held_out_conversations_train_nothing_and_are_told_apart() -> None:
    rows, embeddings = small_rows(), HashedEmbeddings()
    groups = deal(rows.conversations, count=5, seed=0)
    found = cross_validate(rows, CONFIGURED, groups=groups, embeddings=embeddings)
    assert sorted((one.sample.conversation, one.side) for _, one, _ in found) == sorted(
        (one.sample.conversation, one.side) for one in rows.graded
    )
    by_side = {(one.sample.conversation, one.side): examined.quality or 0 for _, one, examined in found}
    assert all(by_side[name, "reply"] > by_side[name, "worse"] for name in rows.conversations)
    seen = HashedEmbeddings()
    fit_examiner(rows.within(frozenset(rows.conversations) - groups[0]), CONFIGURED.fit, embeddings=seen)
    held = {one.sample.text for one in rows.graded if one.sample.conversation in groups[0]}
    assert not held & seen.asked


def test_folds_hold_every_group_once() -> None:
    groups = [f"g{number % 23}" for number in range(200)]
    folds = deal(groups, count=5, seed=1)
    assert sorted(name for fold in folds for name in fold) == sorted(set(groups))
    assert {len(fold) for fold in folds} <= {4, 5}


def test_a_level_that_no_row_has_is_never_read() -> None:
    embeddings = HashedEmbeddings()
    replies = [to_reply(one.sample, embeddings) for one in small_rows().graded]
    levels = np.array([one.levels for one in small_rows().graded])
    lexicon = fit_lexicon([one.text for one in replies], least_texts=2)
    found = read_levels(replies, fit_levels(replies, levels, lexicon, CONFIGURED.fit.levels), lexicon)
    assert found.sum(-1) == pytest.approx(np.ones((len(replies), 3)))
    assert found[:, 0, 2].max() < 1e-6  # of emotional reaction only 0 and 1 were given
    assert macro_f1(found, levels)["exploration"] == 1.0


def test_the_examiner_reads_levels_as_the_folds_do() -> None:
    rows, embeddings = small_rows(), HashedEmbeddings()
    examiner = fit_examiner(rows, CONFIGURED.fit, embeddings=embeddings)
    reply: Reply = to_reply(rows.graded[0].sample, embeddings)
    fitted = {name: value for name, value in examiner.tensors.items() if name.startswith("levels.")}
    (many,) = read_levels([reply], dict(fitted), examiner.pair_lexicon)
    assert np.array(examiner.mechanisms(reply)) == pytest.approx(many, abs=1e-6)


def test_lines_are_written_whole(tmp_path: Path) -> None:
    write_lines(tmp_path / "a" / "lines.jsonl", [{"pair": "1", "mechanisms": [[1, 0, 0]]}])
    assert json.loads((tmp_path / "a" / "lines.jsonl").read_text()) == {"pair": "1", "mechanisms": [[1, 0, 0]]}


def test_no_kind_of_text_that_trains_is_a_family_of_the_probes() -> None:
    kinds = set(KINDS) | REPLIES
    assert not kinds & {family.value for family in Family}


@pytest.mark.skipif(public_data_folder() is None, reason="the public data are not beside the checkout")
def test_rows_stay_within_their_fold_and_off_the_probes() -> None:
    folder = public_data_folder()
    assert folder is not None
    conversations = [one for one in read_corpus() if one.author == AUTHOR]
    groups = deal([one.id for one in conversations], count=5, seed=0)
    rows = load_rows(conversations, public=folder, groups=groups, seed=0)
    replies = {one.sample.text: one.sample.conversation for one in rows.graded}
    group_of = {name: number for number, group in enumerate(groups) for name in group}
    moved = [one for one in rows.others if one.kind == "elsewhere"]
    voices = [pair for pair in rows.pairs if pair.better.kind == "voice"]
    assert len(moved) == len(rows.pairs) - len(voices)
    assert len(voices) >= 400
    assert all(pair in rows.within(groups[0]).pairs for pair in voices)
    assert all(replies[one.text] != one.conversation for one in moved)
    assert all(group_of[replies[one.text]] == group_of[one.conversation] for one in moved)
    assert {one.kind for one in rows.others} == set(KINDS) | (REPLIES - {"own"})
    probes = (FOLDER / "probes.jsonl").read_text("utf-8")
    trained = {json.dumps(one.text)[1:-1] for one in rows.others if len(one.text) > 12}
    assert not [text for text in trained if f'"{text}"' in probes]
