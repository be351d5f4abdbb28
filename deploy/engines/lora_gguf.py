"""A checked PEFT adapter to the GGUF adapter that llama.cpp applies at start. Called by the llama.cpp driver."""

from __future__ import annotations

import os
from pathlib import Path

import gguf
import numpy as np

from deploy.engines.adapters import CheckedAdapter
from deploy.engines.base_gguf import BLOCK_NAMES, LlamaShape, reorder_heads


def write_lora_gguf(adapter: CheckedAdapter, out: Path, *, shape: LlamaShape) -> None:
    """Write the adapter; under another name first, so that a file with its name is whole.

    The outputs of q and k are reordered per head like the base's (`base_gguf.reorder_heads`): they are the rows of b.
    """
    aside = out.with_name(f".{out.name}.{os.getpid()}")
    writer = gguf.GGUFWriter(aside, "llama")
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, adapter.alpha)
    heads = {"self_attn.q_proj": shape.heads, "self_attn.k_proj": shape.kv_heads}
    for projection in adapter.projections:
        name = f"blk.{projection.layer}.{BLOCK_NAMES[projection.module]}.weight"
        b = projection.b
        if projection.module in heads:
            b = reorder_heads(b, heads[projection.module])
        writer.add_tensor(f"{name}.lora_a", np.ascontiguousarray(projection.a))
        writer.add_tensor(f"{name}.lora_b", np.ascontiguousarray(b))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    aside.rename(out)
