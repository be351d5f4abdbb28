"""A torch module as an ONNX graph with free sizes, compared with torch before anything relies on it.

`encoder_export` writes the encoder's and the screen's graphs through here, `judge_export` the judge's.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

DIFFERENCE_MAX: Final = 1e-4  # the older exporter, which freezes the length, is off by more than 1

Inputs = Mapping[str, Tensor]


class ExportDiffers(RuntimeError):
    """The exported graph does not compute what torch computes."""

    def __init__(self, name: str, *, length: int, difference: float) -> None:
        super().__init__(
            f"{name} is off by {difference:.2g} at {length} tokens; at most {DIFFERENCE_MAX:g} is allowed."
        )


def write_graph(
    module: nn.Module,
    path: Path,
    *,
    example: Inputs,
    free: Mapping[str, Mapping[int, str]],
    outputs: Sequence[str],
    sizes: Mapping[str, int],
) -> None:
    """One ONNX file. `free` names the free axes of each input, `sizes` the most that each of them may be (from 2 on).

    The example's tensors must be different objects (one given twice would be taken for one input) and larger than 1
    along every free axis.
    """
    axes = {name: torch.export.Dim(name, min=2, max=most) for name, most in sizes.items()}
    shapes = tuple({at: axes[axis] for at, axis in free.get(name, {}).items()} for name in example)
    module.eval()
    with _quiet():
        program = torch.onnx.export(
            module,
            tuple(example.values()),
            dynamo=True,
            dynamic_shapes=shapes,
            input_names=list(example),
            output_names=list(outputs),
            verbose=False,
        )
    if program is None:
        raise RuntimeError("The exporter gave no program.")
    program.save(str(path), external_data=False)


def compare(module: nn.Module, path: Path, inputs: Inputs, *, length: int) -> None:
    """Run both on the same input. Raises ExportDiffers where any output is further apart than DIFFERENCE_MAX."""
    run = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    got: list[NDArray[np.float32]] = run.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
    with torch.no_grad():
        given = module(*inputs.values())
    wanted = given if isinstance(given, tuple) else (given,)
    difference = max(float(np.abs(one - other.numpy()).max()) for one, other in zip(got, wanted, strict=True))
    if not difference <= DIFFERENCE_MAX:
        raise ExportDiffers(path.name, length=length, difference=difference)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's progress and its notes on optional packages out of the start command's log."""
    exporter = logging.getLogger("torch.onnx")
    level = exporter.level
    exporter.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        exporter.setLevel(level)
