"""The self-test of a chat template: which transcripts it refuses or garbles, and that the client's reshaping mends it.

`convert` runs it once per model and writes the answer into the manifest; the remote driver asks the same three
questions over HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from deploy.engines.errors import ModelUnusable
from rubric import TemplateNeeds, Transcript, fit_transcript

Render = Callable[[Transcript], str]  # raises whatever the template raises

SYSTEM_FIRST: Final = Transcript.of(("system", "Sigma rules."), ("user", "Ypsilon asks."))
TWO_USERS: Final = Transcript.of(("user", "Alpha asks."), ("user", "Beta asks."))
ASSISTANT_FIRST: Final = Transcript.of(("assistant", "Gamma greets."), ("user", "Delta asks."))


def probe_template(render: Render, *, model: str) -> TemplateNeeds:
    """Find what the template needs. Raises ModelUnusable where even the reshaped transcripts do not come through."""
    needs = TemplateNeeds(
        folds_system=not _comes_through(render, SYSTEM_FIRST),
        merges_roles=not _comes_through(render, TWO_USERS),
        starts_with_user=not _comes_through(render, ASSISTANT_FIRST),
    )
    for transcript in (SYSTEM_FIRST, TWO_USERS, ASSISTANT_FIRST):
        fitted = fit_transcript(transcript, needs)
        if not _comes_through(render, fitted):
            raise ModelUnusable(model=model, reason=f"its chat template refuses {_shape(fitted)}")
    return needs


def _comes_through(render: Render, transcript: Transcript) -> bool:
    """Whether every text is in the prompt; a template may raise anything."""
    try:
        prompt = render(transcript)
    except Exception:
        return False
    return all(part in prompt for said in transcript for part in said.text.split("\n\n"))


def _shape(transcript: Transcript) -> str:
    return "{" + ", ".join(said.role.value for said in transcript) + "}"
