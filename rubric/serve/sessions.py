"""How every graph of the encoder process is opened: one thread, since the engine beside us has the other cores."""

from __future__ import annotations

from pathlib import Path

import onnxruntime


def open_session(path: Path) -> onnxruntime.InferenceSession:
    """The graph at `path`, ready to run on the CPU."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
