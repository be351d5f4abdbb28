"""Where vLLM's own environment lies, and how it gets there. Standard library only: `deploy.local` builds it.

On a GPU the environment is the operator's: RAPPORT_VLLM_PYTHON names its interpreter, and nothing is built.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from deploy.local import parts
from deploy.local.steps import Progress, ensure

PYTHON_VARIABLE: Final = "RAPPORT_VLLM_PYTHON"


def find_vllm_python(cache: Path) -> Path | None:
    """The interpreter of the environment, None where it has not been built yet."""
    named = os.environ.get(PYTHON_VARIABLE)
    python = Path(named) if named else parts.python_of(parts.vllm_environment().folder(cache))
    return python if python.exists() else None


def ensure_vllm_python(cache: Path) -> Path:
    """The interpreter; the CPU build's environment is made now where it is missing (some minutes, 3.4 GB)."""
    found = find_vllm_python(cache)
    if found is not None:
        return found
    return parts.python_of(ensure(parts.vllm_environment(), cache=cache, progress=Progress(1)))
