"""The judge's graphs compute what torch computes, and a level is bit-equal whatever is asked beside it."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from rubric.serve.bundle import JUDGE_CRITERION, JUDGE_LEVEL, JUDGE_READ, TOKENIZER, Bundle
from rubric.serve.judging import Graded, JudgedReply, JudgeNetwork
from rubric.serve.readings import build_reading, criterion_ids
from rubric.serve.texts import open_tokenizer
from tests.training.recipes.judges import TEMPERATURE
from training.recipes.graphs import ExportDiffers, compare
from training.recipes.judge_export import _reading, load_judge
from training.recipes.judge_net import CriterionGraph, LevelGraph, ReadGraph, expected_level
from training.recipes.minilm import package_folder

# The exporter's own warnings; and on a busy machine the export alone takes minutes.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(900)]

CONTEXT = "visitor: I said I was fine.\nreply: Were you?\nvisitor: No. Nobody asked after that."
REPLY = "You covered it up, so nobody worried. What was it like to hold that in?"
CRITERIA = tuple(f"{text} ({at})" for at in range(4) for text in ("Names the feeling", "Asks one open question"))


@pytest.fixture(scope="module")
def judge(exported: Bundle) -> JudgeNetwork:
    return JudgeNetwork(exported, open_tokenizer(exported.path(TOKENIZER)))


def graded(judge: JudgeNetwork, *criteria: str, reply: str = REPLY) -> Graded:
    found = Graded.of(judge.compute(JudgedReply(CONTEXT, reply, criteria)))
    assert found is not None
    return found


def test_levels_are_those_of_torch(judge: JudgeNetwork, judge_weights: Path) -> None:
    net, temperature = load_judge(judge_weights)
    assert temperature == TEMPERATURE
    tokenizer = open_tokenizer(package_folder() / TOKENIZER)
    reading = build_reading(CONTEXT, REPLY, tokenizer)
    ids, mask = torch.tensor([reading.ids]), torch.tensor([reading.reply_mask])
    asked = torch.tensor([criterion_ids(CRITERIA[0], tokenizer)])
    with torch.no_grad():
        read = ReadGraph(net)(ids, torch.ones_like(ids), mask, torch.tensor([reading.surface]))
        states = CriterionGraph(net)(asked, torch.ones_like(asked))
        levels = LevelGraph(net, temperature=temperature)(read[0], mask, read[1], states)
    found = graded(judge, CRITERIA[0])
    assert np.abs(found.levels[0] - levels[0].numpy()).max() < 1e-5
    assert found.expected()[0] == pytest.approx(float(expected_level(levels)), abs=1e-5)
    assert found.genuine == pytest.approx(float(read[3].sigmoid()), abs=1e-5)
    assert np.abs(found.mechanisms.ravel() - read[2].exp()[0].numpy()).max() < 1e-5


def test_a_level_is_bit_equal_alone_and_among_others(judge: JudgeNetwork) -> None:
    together = graded(judge, *CRITERIA)
    judge._kept.clear()
    for at, criterion in enumerate(CRITERIA):
        alone = graded(judge, criterion)
        assert alone.levels[0].tobytes() == together.levels[at].tobytes()
        assert alone.mechanisms.tobytes() == together.mechanisms.tobytes()
    backwards = graded(judge, *reversed(CRITERIA))
    assert backwards.levels[::-1].tobytes() == together.levels.tobytes()


def test_levels_depend_on_reply_and_criterion(judge: JudgeNetwork) -> None:
    """Else the graphs could have frozen what they were exported with."""
    first = graded(judge, *CRITERIA[:2])
    other = graded(judge, *CRITERIA[:2], reply="Cheer up.")
    assert not np.allclose(first.levels, other.levels, atol=1e-4)
    assert not np.allclose(first.levels[0], first.levels[1], atol=1e-5)


@pytest.mark.parametrize("name", [JUDGE_READ, JUDGE_CRITERION, JUDGE_LEVEL])
def test_a_graph_holds_everything_it_needs(exported: Bundle, name: str) -> None:
    assert [path.name for path in exported.folder.iterdir() if path.name.startswith(name)] == [name]
    onnxruntime.InferenceSession(str(exported.path(name)), providers=["CPUExecutionProvider"])


def test_a_graph_of_another_judge_is_refused(exported: Bundle, judge_weights: Path) -> None:
    net, _ = load_judge(judge_weights)
    torch.nn.init.normal_(net.project.weight)
    with pytest.raises(ExportDiffers, match=r"judge_read\.onnx is off by"):
        compare(ReadGraph(net).eval(), exported.path(JUDGE_READ), _reading(20), length=20)
