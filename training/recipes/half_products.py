"""Products of half the width, where the processor multiplies them itself."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch


def half_products(*, wanted: bool = True) -> AbstractContextManager[None]:
    """Autocast to bfloat16 where that is faster; elsewhere everything stays float32.

    Half the time on processors that have such products. On one without them (AVX2 alone) each takes some forty times as
    long as in float32, so that a fit of minutes takes hours.
    """
    has_them = bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=wanted and has_them)
