"""The process that serves one version: a llama.cpp server around one base GGUF and at most one adapter.

    python -m deploy.engines.llamacpp_server --model FILE [--lora FILE] --port N [--alias NAME] [--threads N]

Started by the llama.cpp driver. It answers on the loopback only, and only with the key in RAPPORT_LLAMACPP_KEY, since
any page in a browser of this machine can reach a loopback port.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Sequence
from typing import Final

KEY_VARIABLE: Final = "RAPPORT_LLAMACPP_KEY"
SLOTS: Final = 8
CONTEXT_TOKENS: Final = 2048  # of one slot: prompt and reply
BATCH_TOKENS: Final = 128  # a larger batch reads a prompt at once and stalls the running replies meanwhile
PROMPT_CACHE_MIB: Final = 512  # beside the slots' own caches; the default is 8 GiB for each process
WARNINGS: Final = 2
# How long a thread spins for its fellows before it sleeps. Endless by default: beside other busy processes the threads
# then wait for each other's time slices, and two of them made 1-2 tokens/s where one made 14, and two with this 12.
SPINS: Final = ("GOMP_SPINCOUNT", "2000")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a signal ends the process."""
    parser = argparse.ArgumentParser(prog="python -m deploy.engines.llamacpp_server")
    parser.add_argument("--model", required=True, help="the base, a GGUF")
    parser.add_argument("--lora", default="", help="the adapter that is applied to it, a GGUF")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--alias", default="", help="the name under which it is asked")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)

    os.environ.setdefault(*SPINS)  # read when the library is loaded
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = options.model
    if options.lora:
        settings.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(options.lora, 1.0)]
    settings.model_alias = {options.alias} if options.alias else set()
    settings.hostnames = ["127.0.0.1"]
    settings.port = options.port
    settings.api_keys = [os.environ[KEY_VARIABLE]] if os.environ.get(KEY_VARIABLE) else []
    settings.n_ctx = SLOTS * CONTEXT_TOKENS
    settings.n_parallel = SLOTS
    settings.n_batch = settings.n_ubatch = BATCH_TOKENS
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = options.threads
    settings.cache_ram_mib = PROMPT_CACHE_MIB
    settings.endpoint_metrics = True
    settings.endpoint_slots = True
    settings.ui = False
    settings.verbosity = WARNINGS
    server = xllamacpp.Server(settings)
    print(f"llama.cpp serves {options.alias or options.model} at {server.listening_address}", flush=True)
    threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
