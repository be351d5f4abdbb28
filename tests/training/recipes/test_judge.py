from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from rubric.score import LEVELS
from training.data.judge_rows import AskedCriterion, JudgedReply, JudgeTurn
from training.recipes import judge
from training.recipes.configs import ExaminerRefused
from training.recipes.encoder_export import WEIGHTS
from training.recipes.judge import (
    CONFIG,
    JUDGE_FACTS,
    JUDGE_WEIGHTS,
    JudgeConfig,
    Material,
    Workshop,
    cross_validate,
    folds_of,
    read_config,
    train,
)
from training.recipes.judge_batches import Batch, LowerStates
from training.recipes.judge_figures import Heard, calibration_error, figures_of, fit_temperature, reward
from training.recipes.judge_fit import fresh_net
from training.recipes.judge_fit_config import JudgeFitConfig
from training.recipes.judge_net import JudgeNet, load_trained, trained_tensors
from training.recipes.minilm import padded

TINY = JudgeConfig(fit=JudgeFitConfig(rank=2, first_layer=5, epochs=1, batch_turns=4), opposed_times=1, folds=2)
ASKS = AskedCriterion(text="Asks a question", opposite="Asks nothing at all", share=0.5, names_fault=False)
PUSHES = AskedCriterion(text="Pushes a plan on the visitor", opposite=None, share=-0.5, names_fault=True)


def _turn(group: str, number: int) -> JudgeTurn:
    return JudgeTurn(
        id=f"{group}.{number}",
        group=group,
        visitor=f"they cut my hours, {number} a week now",
        context=f"visitor: they cut my hours, {number} a week now",
        criteria=(
            ASKS,
            PUSHES,
            AskedCriterion(
                text=f"Names the hours of {group}", opposite=None, share=0.5, names_fault=False, is_own=True
            ),
        ),
        replies=(
            JudgedReply(text=f"Only {number} hours. What did they say?", levels=(1.0, 0.0, 1.0), mechanisms=(0, 1, 2)),
            JudgedReply(text="Hand in your notice and find a job.", levels=(0.0, 1.0, 0.0), mechanisms=(0, 0, 0)),
        ),
        is_pair=True,
    )


TURNS = tuple(_turn(f"{author}-{number:03}", turn) for author in "ab" for number in (1, 2) for turn in (1, 2))
MATERIAL = Material(turns=TURNS, opposed=(), development=frozenset({"a-001"}))


def _heard(levels: tuple[float, ...], *, sure: float = 4.0) -> Heard:
    return Heard(
        logits=np.array([[sure * (one == level) for one in LEVELS] for level in levels]),
        faults=np.zeros(len(levels)),
        genuine=30.0,
        mechanisms=np.full((3, 3), 1 / 3),
    )


def test_committed_configuration_is_read() -> None:
    assert read_config(CONFIG).folds == 5


def test_unknown_field_of_a_configuration_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "judge.yaml"
    path.write_text(f"{CONFIG.read_text()}\nanother: weights\n")
    with pytest.raises(TypeError):
        read_config(path)


def test_the_examiner_in_a_configuration_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "judge.yaml"
    path.write_text(f"{CONFIG.read_text()}\nexaminer: weights\n")
    with pytest.raises(ExaminerRefused):
        read_config(path)


def test_opposite_is_asked_with_the_level_turned_round() -> None:
    shop = Workshop.open(TINY)
    example = shop.prepare(TURNS)[0]
    config = dataclasses.replace(TINY.fit, opposite_share=1.0, no_reply_share=0.0)
    batch = Batch([dataclasses.replace(example, foreign=())], config, dice=random.Random(0))
    assert batch.texts[:2] == [ASKS.opposite, PUSHES.text]
    assert batch.levels == [0.0, 0.0, 1.0, 1.0, 1.0, 0.0]
    assert [share for _, share in batch.pairs[0][0]] == [-0.5, -0.5, 0.5]


def test_text_that_is_no_reply_has_no_levels() -> None:
    shop = Workshop.open(TINY)
    config = dataclasses.replace(TINY.fit, no_reply_share=1.0)
    batch = Batch(shop.prepare(TURNS)[:1], config, dice=random.Random(0))
    assert batch.genuine == [1.0, 1.0, 0.0]
    assert {reading for reading, _ in batch.asked} == {0, 1}


def test_criterion_of_another_conversation_cannot_hold() -> None:
    shop = Workshop.open(TINY)
    example = shop.prepare(TURNS)[0]
    assert len(example.foreign) == 2
    assert not any(example.turn.group in text for text in example.foreign)
    batch = Batch([example], dataclasses.replace(TINY.fit, no_reply_share=0.0), dice=random.Random(0))
    levels = [
        level
        for (_, number), level in zip(batch.asked, batch.levels, strict=True)
        if batch.texts[number] in example.foreign
    ]
    assert levels == [0.0] * 4


@torch.no_grad()
def test_kept_states_are_what_the_frozen_layers_compute() -> None:
    net = fresh_net(TINY.fit)
    texts = [(101, 2009, 102), (101, 2009, 2003, 3835, 102)]
    given = LowerStates(net).of(texts)
    ids, mask = padded(texts)
    counted = mask[:, :, None] == 1
    assert torch.equal(given.mask, mask)
    assert torch.allclose(given.lower.float() * counted, net.lower_states(ids, mask) * counted, atol=0.1)


def test_training_saves_weights_that_load_and_says_how_it_was_calibrated(tmp_path: Path) -> None:
    train(MATERIAL, TINY, out=tmp_path)
    facts = json.loads((tmp_path / "judge.json").read_text())
    assert facts["first_layer"] == TINY.fit.first_layer
    assert facts["config_sha256"] == TINY.sha256
    net = fresh_net(TINY.fit)
    before = trained_tensors(net)
    load_trained(net, load_file(tmp_path / "judge.safetensors"))
    assert any(not torch.equal(before[name], tensor) for name, tensor in trained_tensors(net).items())


@torch.no_grad()
def test_committed_judge_tells_a_reply_from_its_words_in_disorder() -> None:
    facts = json.loads((WEIGHTS / JUDGE_FACTS).read_text())
    config = dataclasses.replace(TINY.fit, rank=facts["rank"], first_layer=facts["first_layer"])
    net = fresh_net(config)
    load_trained(net, load_file(WEIGHTS / JUDGE_WEIGHTS))
    shop = Workshop(TINY, Workshop.open(TINY).tokenizer, LowerStates(net))
    reply = "Three nights of that would leave anybody raw. What was the worst part of it for you?"
    disorder = "of worst that for nights raw would you What it anybody was Three of part leave the"
    turn = dataclasses.replace(
        TURNS[0],
        context="visitor: the baby has been up three nights in a row and i cried in the car",
        criteria=(
            AskedCriterion(text="Says that this would wear anybody out", opposite=None, share=1, names_fault=False),
        ),
        replies=tuple(JudgedReply(text=text, levels=(1.0,)) for text in (reply, disorder)),
    )
    ((said, mixed),) = shop.hear(net.eval(), [turn])
    levels = [reward(turn, one, temperature=facts["temperature"]) for one in (said, mixed)]
    assert levels[0] > levels[1] + 0.1


def test_same_turns_give_the_same_weights(tmp_path: Path) -> None:
    for name in ("first", "second"):
        train(MATERIAL, TINY, out=tmp_path / name)
    first, second = (load_file(tmp_path / name / "judge.safetensors") for name in ("first", "second"))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_conversation_lies_in_one_fold() -> None:
    folds = folds_of(TURNS, count=2)
    groups = [{turn.group for turn in fold} for fold in folds]
    assert not groups[0] & groups[1]
    assert sorted(turn.id for fold in folds for turn in fold) == sorted(turn.id for turn in TURNS)


def test_folds_predict_every_reply_once_and_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cross_validate(MATERIAL, TINY, data=tmp_path)
    path = tmp_path / "judge" / "folds.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 2 * len(TURNS)
    assert {(line["conversation"], line["turn"], line["side"]) for line in lines} == {
        (turn.group, int(turn.id[-1]), side) for turn in TURNS for side in ("reply", "worse")
    }
    assert all(sum(shares) == pytest.approx(1, abs=1e-4) for line in lines for shares in line["levels"])
    assert all(sum(shares) == pytest.approx(1, abs=1e-4) for line in lines for shares in line["mechanisms"])

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a fold was fitted again")

    monkeypatch.setattr(judge, "fit", refuse)
    written = path.read_text()
    cross_validate(MATERIAL, TINY, data=tmp_path)
    assert path.read_text() == written


def test_other_rows_make_the_folds_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cross_validate(MATERIAL, TINY, data=tmp_path)
    fits = []

    def note(*_: object, **__: object) -> JudgeNet:
        fits.append(1)
        return fresh_net(TINY.fit)

    monkeypatch.setattr(judge, "fit", note)
    other = dataclasses.replace(MATERIAL, turns=(*TURNS, _turn("b-003", 1)))
    cross_validate(other, TINY, data=tmp_path)
    assert len(fits) == TINY.folds


def test_figures_count_a_pair_as_right_where_its_better_reply_earns_more() -> None:
    right, wrong = (
        (_heard((1.0, 0.0, 1.0)), _heard((0.0, 1.0, 0.0))),
        (_heard((0.0, 1.0, 0.0)), _heard((1.0, 0.0, 1.0))),
    )
    found = figures_of(TURNS[:4], [right, right, right, wrong], temperature=1.0)
    assert (found["pairs"], found["pair_accuracy"]) == (4, 0.75)


def test_temperature_rises_where_the_network_is_too_sure() -> None:
    said = [_heard((1.0,), sure=9.0)] * 4
    assert fit_temperature(said, [(1.0,), (1.0,), (0.0,), (0.5,)]) > fit_temperature(said, [(1.0,)] * 4)


def test_calibration_error_is_zero_for_shares_that_come_true() -> None:
    shares = np.array([[0.5, 0, 0, 0, 0.5]] * 4)
    assert calibration_error(shares, np.array([0, 4, 0, 4])) == pytest.approx(0)
    assert calibration_error(shares, np.array([2, 2, 2, 2])) == pytest.approx(0.4)
