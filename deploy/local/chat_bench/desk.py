"""A process that holds the product's database open for the bench: one line in, one JSON line out.

    publish NAME FOLDER BASE_SHA256 | flip NAME | retire NAME | tokens CONVERSATION...

Without it every step would pay for the start of Django. `flip` moves the live pointer in one transaction.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

from deploy.local.place import ROOT


def publish(name: str, folder: str, base_sha256: str) -> None:
    """Make the version known; the keeper serves it from then on."""
    from chat.models import PolicyVersion
    from chat.models.learning import VersionKind, VersionOrigin, VersionState

    PolicyVersion.objects.create(
        kind=VersionKind.POLICY,
        name=name,
        origin=VersionOrigin.TRAINED,
        folder=folder,
        base_sha256=base_sha256,
        state=VersionState.CANARY,
    )


def flip(name: str) -> str:
    """Make the version the live one; returns the one before."""
    from django.db import transaction

    from chat.models import PolicyVersion
    from chat.models.learning import VersionKind, VersionState

    with transaction.atomic():
        before = PolicyVersion.objects.get(kind=VersionKind.POLICY, state=VersionState.LIVE)
        PolicyVersion.objects.filter(pk=before.pk).update(state=VersionState.RETIRED)
        PolicyVersion.objects.filter(name=name).update(state=VersionState.LIVE)
    return before.name


def retire(name: str) -> None:
    """Want the version no more."""
    from chat.models import PolicyVersion
    from chat.models.learning import VersionState

    PolicyVersion.objects.filter(name=name).update(state=VersionState.RETIRED)


def tokens(*conversations: str) -> dict[str, int]:
    """Completion tokens of these conversations' replies, and how many replies are complete."""
    from chat.models import Generation

    rows = list(Generation.objects.filter(message__conversation_id__in=conversations).select_related("message"))
    return {
        "tokens": sum(row.completion_tokens or 0 for row in rows),
        "complete": sum(row.message.status == "complete" for row in rows),
    }


_VERBS: Mapping[str, Callable[..., object]] = {"publish": publish, "flip": flip, "retire": retire, "tokens": tokens}


class Desk:
    """The process, from the bench's side; `ask` returns the answer and the moment at which the step was done."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            (sys.executable, "-m", "deploy.local.chat_bench.desk"),
            cwd=ROOT,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def ask(self, *words: str) -> tuple[object, float]:
        """One step. Raises RuntimeError where the process has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> tuple[object, float]:
        assert self._process.stdout is not None
        row = self._process.stdout.readline()
        if not row:
            raise RuntimeError("The bench's database process has ended.")
        value, moment_s = json.loads(row)
        return value, float(moment_s)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


def main() -> int:
    """Answers until its input ends."""
    import django

    django.setup()
    print(json.dumps(["ready", time.monotonic()]), flush=True)
    for row in sys.stdin:
        verb, *arguments = row.split()
        value = _VERBS[verb](*arguments)
        print(json.dumps([value, time.monotonic()]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
