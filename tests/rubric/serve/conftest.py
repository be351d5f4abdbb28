"""A whole bundle whose graphs are a few nodes: they read words in an obvious way, so that answers are known."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

from rubric.serve import bundle as names
from rubric.serve.bundle import file_sha256
from rubric.serve.surface import BUCKETS, CLASSES
from rubric.serve.texts import open_tokenizer
from training.recipes.encoder_export import WEIGHTS
from training.recipes.minilm import package_folder

GRAVE_WORD = "knife"  # a visitor's text that holds it is high
BAD_ADVICE_WORD = "rope"  # a reply that holds it is high


def _inputs() -> list[onnx.ValueInfoProto]:
    return [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "n"]) for name in ("input_ids", "attention_mask")
    ]


def _save(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], *, width: int, path: Path) -> None:
    _write(
        nodes, constants, _inputs(), [helper.make_tensor_value_info("per_text", TensorProto.FLOAT, ["b", width])], path
    )


def _write(
    nodes: list[onnx.NodeProto],
    constants: dict[str, np.ndarray],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    path: Path,
) -> None:
    weights = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)


def write_screen(path: Path) -> None:
    """high = .97 for the direction whose word occurs, else none = .98."""
    words = open_tokenizer(package_folder() / "tokenizer.json")
    nodes = [
        helper.make_node("Equal", ["input_ids", "grave"], ["g"]),
        helper.make_node("Equal", ["input_ids", "bad"], ["r"]),
        helper.make_node("Cast", ["g"], ["gf"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["r"], ["rf"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["gf", "axis"], ["gm"], keepdims=1),
        helper.make_node("ReduceMax", ["rf", "axis"], ["rm"], keepdims=1),
        helper.make_node("Concat", ["gm", "rm"], ["flags"], axis=1),
        helper.make_node("MatMul", ["flags", "change"], ["changed"]),
        helper.make_node("Add", ["changed", "plain"], ["per_text"]),
    ]
    constants: dict[str, np.ndarray] = {
        "grave": np.array(words.token_to_id(GRAVE_WORD), dtype=np.int64),
        "bad": np.array(words.token_to_id(BAD_ADVICE_WORD), dtype=np.int64),
        "axis": np.array([1], dtype=np.int64),
        "change": np.array([[-0.96, 0, 0.96, 0, 0, 0], [0, 0, 0, -0.96, 0, 0.96]], dtype=np.float32),
        "plain": np.array([0.98, 0.01, 0.01, 0.98, 0.01, 0.01], dtype=np.float32),
    }
    _save(nodes, constants, width=6, path=path)


def write_embedding(path: Path) -> None:
    """The mean token id on the first axis, 1000 on all others."""
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["f", "axis"], ["mean"], keepdims=1),
        helper.make_node("MatMul", ["mean", "row"], ["spread"]),
        helper.make_node("Add", ["spread", "rest"], ["per_text"]),
    ]
    row, rest = np.zeros((1, 384), dtype=np.float32), np.full(384, 1000, dtype=np.float32)
    row[0, 0], rest[0] = 1, 0
    _save(nodes, {"axis": np.array([1], dtype=np.int64), "row": row, "rest": rest}, width=384, path=path)


def write_judge(folder: Path) -> None:
    """Level 1 where a word of the criterion stands in the reply, else 0; .96 sure of it."""
    ids, mask = _row("input_ids", TensorProto.INT64, "n"), _row("attention_mask", TensorProto.INT64, "n")
    reply_mask, surface = _row("reply_mask", TensorProto.INT64, "n"), _row("surface", TensorProto.FLOAT, "s")
    read = [
        helper.make_node("Mul", ["input_ids", "reply_mask"], ["said"]),
        helper.make_node("Cast", ["said"], ["flat"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["flat", "last"], ["states"]),
        helper.make_node("Identity", ["surface"], ["summary"]),
        helper.make_node("Identity", ["even"], ["mechanisms"]),
        helper.make_node("Identity", ["one"], ["genuine"]),
    ]
    numbers: dict[str, np.ndarray] = {
        "last": np.array([2], dtype=np.int64),
        "even": np.log(np.full((1, 9), 1 / 3, dtype=np.float32)),
        "one": np.ones((1, 1), dtype=np.float32),
    }
    outputs = [_states(), *(_row(name, TensorProto.FLOAT, None) for name in ("summary", "mechanisms", "genuine"))]
    _write(read, numbers, [ids, mask, reply_mask, surface], outputs, folder / names.JUDGE_READ)

    criterion = [
        helper.make_node("Greater", ["input_ids", "markers"], ["is_word"]),
        helper.make_node("Where", ["is_word", "input_ids", "nothing"], ["words"]),
        helper.make_node("Cast", ["words"], ["flat"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["flat", "last"], ["states"]),
    ]
    numbers = {name: np.array(value, dtype=np.int64) for name, value in (("markers", 103), ("nothing", -1))}
    _write(criterion, numbers | {"last": np.array([2])}, [ids, mask], [_states()], folder / names.JUDGE_CRITERION)

    level = [
        helper.make_node("Transpose", ["states"], ["across"], perm=[0, 2, 1]),
        helper.make_node("Equal", ["across", "criterion_states"], ["same"]),
        helper.make_node("Cast", ["same"], ["flags"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["flags", "axes"], ["found"], keepdims=0),
        helper.make_node("Mul", ["found", "change"], ["changed"]),
        helper.make_node("Add", ["changed", "plain"], ["levels"]),
    ]
    numbers = {
        "axes": np.array([0, 1, 2], dtype=np.int64),
        "change": np.array([[-0.95, 0, 0, 0, 0.95]], dtype=np.float32),
        "plain": np.array([[0.96, 0.01, 0.01, 0.01, 0.01]], dtype=np.float32),
    }
    asked = [_states(), reply_mask, _row("summary", TensorProto.FLOAT, None), _states("criterion_states", axis="t")]
    _write(level, numbers, asked, [_row("levels", TensorProto.FLOAT, None)], folder / names.JUDGE_LEVEL)
    (folder / names.JUDGE_FACTS).write_text("{}")


def _row(name: str, kind: int, axis: str | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, [1, axis])


def _states(name: str = "states", *, axis: str = "n") -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, axis, 1])


def write_bundle(folder: Path) -> Path:
    """A folder that passes every check of `load_bundle`."""
    write_screen(folder / names.SCREEN_MODEL)
    write_embedding(folder / names.EMBED_MODEL)
    write_judge(folder)
    (folder / names.TOKENIZER).write_bytes((package_folder() / "tokenizer.json").read_bytes())
    (folder / names.COVERAGE).write_bytes((WEIGHTS / names.COVERAGE).read_bytes())
    save_file(
        {
            "rarity": np.ones(BUCKETS, dtype=np.float16),
            "weights": np.zeros((CLASSES, BUCKETS), dtype=np.float16),
            "bias": np.zeros(CLASSES, dtype=np.float32),
        },
        folder / names.SURFACE,
    )
    levels = {"watch": 0.3, "high": 0.7}
    facts = {"thresholds": {"visitor": levels, "reply": levels}, "mix": {"network": 1.0, "surface": 1.0}}
    (folder / names.SCREEN_FACTS).write_text(json.dumps(facts))
    manifest = {
        "format": names.FORMAT,
        "encoder_version": "encoder-tiny",
        "screen_version": "screen-tiny",
        "judge_version": "judge-tiny",
        "files": {name: file_sha256(folder / name) for name in names.FILES},
    }
    (folder / names.MANIFEST).write_text(json.dumps(manifest))
    return folder


@pytest.fixture(scope="session")
def tiny_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bundle(tmp_path_factory.mktemp("encoder"))
