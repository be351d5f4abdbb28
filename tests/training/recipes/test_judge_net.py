from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from rubric.serve.readings import build_reading, criterion_ids
from rubric.serve.texts import open_tokenizer
from training.recipes.judge_net import (
    LEVELS,
    CriterionGraph,
    JudgeNet,
    LevelGraph,
    ReadGraph,
    expected_level,
    level_probabilities,
    load_trained,
    merged,
    trained_tensors,
)
from training.recipes.minilm import load_minilm, package_folder

TOKENIZER = open_tokenizer(package_folder() / "tokenizer.json")
CONTEXT = "visitor: they moved my shift again and nobody asked me"
REPLY = "Being moved about like that, without a word, would wear anybody down. Who decides it?"
CRITERION = "Asks one question about who decides"
WEIGHTS_MAX_BYTES = 6_000_000


def _fresh(seed: int = 0) -> JudgeNet:
    torch.manual_seed(seed)
    net = JudgeNet(load_minilm(package_folder()), rank=8, first_layer=3)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if name.endswith(".b"):  # zero to begin with: an update that does nothing would test nothing
                parameter.normal_(std=0.02)
    return net.eval()


def _read_inputs(reply: str = REPLY) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    reading = build_reading(CONTEXT, reply, TOKENIZER)
    ids = torch.tensor([reading.ids])
    return ids, torch.ones_like(ids), torch.tensor([reading.reply_mask]), torch.tensor([reading.surface])


def _criterion_inputs(text: str = CRITERION) -> tuple[Tensor, Tensor]:
    ids = torch.tensor([criterion_ids(text, TOKENIZER)])
    return ids, torch.ones_like(ids)


@torch.no_grad()
def _probabilities(net: JudgeNet, reply: str, criterion: str) -> Tensor:
    inputs = _read_inputs(reply)
    states, summary, _, _ = ReadGraph(net)(*inputs)
    asked = CriterionGraph(net)(*_criterion_inputs(criterion))
    found: Tensor = LevelGraph(net)(states, inputs[2], summary, asked)
    return found


def test_probabilities_of_five_levels_sum_to_one() -> None:
    found = _probabilities(_fresh(), REPLY, CRITERION)
    assert found.shape == (1, LEVELS)
    assert found.sum().item() == pytest.approx(1, abs=1e-5)


def test_level_depends_on_criterion_and_on_reply() -> None:
    net = _fresh()
    found = _probabilities(net, REPLY, CRITERION)
    assert not torch.allclose(found, _probabilities(net, REPLY, "Gives a plan with steps"), atol=1e-5)
    assert not torch.allclose(found, _probabilities(net, "Cheer up.", CRITERION), atol=1e-5)


@torch.no_grad()
def test_padded_batch_grades_as_one_by_one() -> None:
    net = _fresh()
    replies, criteria = (REPLY, "Oh."), (CRITERION, "Leaves the choice with the visitor, whatever it is")
    alone = torch.cat([_probabilities(net, reply, text) for reply, text in zip(replies, criteria, strict=True)])
    readings = [build_reading(CONTEXT, reply, TOKENIZER) for reply in replies]
    ids, mask = _padded([reading.ids for reading in readings])
    reply_mask, _ = _padded([reading.reply_mask for reading in readings])
    read = net.read(
        net.upper_states(net.lower_states(ids, mask), mask),
        net.bare_words(ids),
        reply_mask,
        torch.tensor([reading.surface for reading in readings]),
    )
    asked_ids, asked_mask = _padded([criterion_ids(text, TOKENIZER) for text in criteria])
    asked = net.criterion(
        net.upper_states(net.lower_states(asked_ids, asked_mask), asked_mask), net.bare_words(asked_ids)
    )
    logits = net.grade(read, (reply_mask, mask - reply_mask), asked[:, None], asked_mask[:, None])[:, 0]
    together = logits.softmax(-1)
    assert torch.allclose(together, alone, atol=1e-4)


def _padded(rows: list[tuple[int, ...]]) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return ids, mask


def test_text_that_is_no_reply_does_nothing_wanted_and_counts_as_the_fault() -> None:
    logits = torch.zeros(2, LEVELS)
    genuine, is_fault = torch.full((2, 1), -20.0), torch.tensor([[0.0], [1.0]])
    found = expected_level(level_probabilities(logits, genuine=genuine, is_fault=is_fault, temperature=1.0))
    assert found.tolist() == pytest.approx([0, 1], abs=1e-4)


def test_attempt_at_a_reply_is_graded_by_its_levels_alone() -> None:
    logits = torch.tensor([[0.0, 0.0, 30.0, 0.0, 0.0]])
    genuine, is_fault = torch.full((1, 1), 20.0), torch.ones(1, 1)
    found = expected_level(level_probabilities(logits, genuine=genuine, is_fault=is_fault, temperature=1.0))
    assert found.item() == pytest.approx(0.5, abs=1e-4)


def test_saved_tensors_bring_the_network_back(tmp_path: Path) -> None:
    net, other = _fresh(seed=1), _fresh(seed=2)
    save_file(trained_tensors(net), tmp_path / "judge.safetensors")
    assert (tmp_path / "judge.safetensors").stat().st_size <= WEIGHTS_MAX_BYTES
    load_trained(other, load_file(tmp_path / "judge.safetensors"))
    assert torch.allclose(_probabilities(net, REPLY, CRITERION), _probabilities(other, REPLY, CRITERION), atol=2e-3)


def test_tensors_of_another_shape_of_network_are_refused() -> None:
    deeper = JudgeNet(load_minilm(package_folder()), rank=8, first_layer=2)
    with pytest.raises(ValueError, match="tensors"):
        load_trained(_fresh(), trained_tensors(deeper))


def test_merged_network_grades_alike() -> None:
    net = _fresh()
    assert torch.allclose(
        _probabilities(net, REPLY, CRITERION), _probabilities(merged(net), REPLY, CRITERION), atol=1e-5
    )


def test_layers_below_the_first_trained_one_are_untouched_by_training() -> None:
    net = _fresh()
    inputs = _criterion_inputs()
    before = net.lower_states(*inputs)
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.requires_grad:
                parameter.add_(1.0)
    assert torch.equal(before, net.lower_states(*inputs))


@torch.no_grad()
def test_each_graph_exports_with_free_lengths_and_computes_what_torch_computes(tmp_path: Path) -> None:
    net = merged(_fresh())
    short, long = _read_inputs("Oh dear."), _read_inputs()
    asked, other = (CriterionGraph(net)(*_criterion_inputs(text)) for text in (CRITERION, "Gives a plan"))
    read, other_read = ReadGraph(net)(*short), ReadGraph(net)(*long)
    length, tokens = torch.export.Dim("length", min=3, max=512), torch.export.Dim("tokens", min=3, max=512)
    by_graph: tuple[tuple[nn.Module, tuple[Tensor, ...], tuple[Tensor, ...], Shapes], ...] = (
        (ReadGraph(net), short, long, ({1: length}, {1: length}, {1: length}, {})),
        (CriterionGraph(net), _criterion_inputs(), _criterion_inputs("Gives a plan"), ({1: tokens}, {1: tokens})),
        (
            LevelGraph(net),
            (read[0], short[2], read[1], asked),
            (other_read[0], long[2], other_read[1], other),
            ({1: length}, {1: length}, {}, {1: tokens}),
        ),
    )
    for graph, example, inputs, shapes in by_graph:
        got = _run_exported(graph, example, inputs, shapes=shapes, path=tmp_path / "graph.onnx")
        wanted = graph(*inputs)
        each = wanted if isinstance(wanted, tuple) else (wanted,)
        assert all(np.abs(mine - theirs.numpy()).max() < 1e-4 for mine, theirs in zip(got, each, strict=True))


Shapes = tuple[dict[int, torch.export.Dim], ...]


def _run_exported(
    graph: nn.Module, example: tuple[Tensor, ...], inputs: tuple[Tensor, ...], *, shapes: Shapes, path: Path
) -> list[NDArray[np.float32]]:
    names = [f"input_{number}" for number in range(len(example))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            graph.eval(), example, dynamo=True, dynamic_shapes=(shapes), input_names=names, verbose=False
        )
    assert program is not None
    program.save(str(path), external_data=False)
    run = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    given = {name: tensor.numpy() for name, tensor in zip(names, inputs, strict=True)}
    return list(run.run(None, given))


@torch.no_grad()
def test_what_lies_outside_of_real_replies_is_less_genuine_by_its_standard_deviations() -> None:
    net = _fresh()
    inside = _read_inputs()
    before = ReadGraph(net)(*inside)[3]
    surface = inside[3]
    net.set_bounds(surface + torch.linspace(-0.5, 0.5, 1_001)[:, None])
    assert torch.equal(ReadGraph(net)(*inside)[3], before)
    far = surface.clone()
    far[0, 2] += 1.5
    over = float(net.outside(far))
    assert over == pytest.approx((1.5 - 0.499) / float(net.spread[2]), abs=0.02)
    states, _, _, genuine = ReadGraph(net)(*inside[:3], far)
    net.highest[2] = 1e4
    assert float(ReadGraph(net)(*inside[:3], far)[3] - genuine) == pytest.approx(over, abs=1e-3)
    assert states.shape[0] == 1


def test_bounds_are_saved_and_come_back() -> None:
    net, other = _fresh(), _fresh(seed=1)
    net.set_bounds(torch.rand(50, net.lowest.shape[0]))
    load_trained(other, trained_tensors(net))
    assert torch.allclose(other.highest, net.highest, atol=1e-3)
    assert torch.equal(JudgeNet(load_minilm(package_folder()), rank=8, first_layer=3).lowest < -1e3, torch.ones(14) > 0)
