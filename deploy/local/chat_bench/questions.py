"""What the bench asks the product's own code, each in a process of its own with the product's environment."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

from deploy.local.place import ROOT
from deploy.local.product import run_manage
from training.bench.visitor import Seat

_NAME_OF_LIVE = (
    "from chat.policies import live_version; from chat.models.learning import VersionKind; "
    "print(live_version(VersionKind.POLICY).name)"
)


def fresh_seats(count: int, *, environ: Mapping[str, str]) -> list[Seat]:
    """So many new conversations. Raises CalledProcessError, its errors shown."""
    done = subprocess.run(
        (sys.executable, "-m", "deploy.local.chat_bench.seats", str(count)),
        cwd=ROOT,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    return [Seat(**json.loads(row)) for row in done.stdout.splitlines()]


def name_of_live(environ: Mapping[str, str]) -> str:
    """The policy version that new conversations begin on."""
    return run_manage("shell", "-v", "0", "-c", _NAME_OF_LIVE, environ=environ).strip()
