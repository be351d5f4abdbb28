"""`deploy.engines.template` and the reshaping: every transcript comes through every template, or it is said."""

from __future__ import annotations

import pytest

from deploy.engines.errors import ModelUnusable
from deploy.engines.template import ASSISTANT_FIRST, SYSTEM_FIRST, TWO_USERS, probe_template
from rubric import Role, TemplateNeeds, Transcript, fit_transcript

NO_NEEDS = TemplateNeeds()
ALL_NEEDS = TemplateNeeds(folds_system=True, merges_roles=True, starts_with_user=True)


def render_all(transcript: Transcript) -> str:
    return "".join(f"<{said.role}>{said.text}" for said in transcript)


def render_alternating(transcript: Transcript) -> str:
    """Like templates that know user and assistant only, strictly in turn."""
    for index, said in enumerate(transcript):
        if said.role is not (Role.USER, Role.ASSISTANT)[index % 2]:
            raise ValueError("roles must alternate")
    return render_all(transcript)


def render_without_system(transcript: Transcript) -> str:
    """Like templates that drop a system text without a word."""
    return "".join(said.text for said in transcript if said.role is not Role.SYSTEM)


def render_last(transcript: Transcript) -> str:
    return transcript.last_user


def test_a_free_template_needs_nothing() -> None:
    assert probe_template(render_all, model="m") == NO_NEEDS


def test_a_strict_template_needs_everything() -> None:
    assert probe_template(render_alternating, model="m") == ALL_NEEDS


def test_a_system_text_that_vanishes_is_folded() -> None:
    assert probe_template(render_without_system, model="m") == TemplateNeeds(folds_system=True)


def test_a_template_that_loses_texts_whatever_is_done_is_refused() -> None:
    with pytest.raises(ModelUnusable):
        probe_template(render_last, model="m")


@pytest.mark.parametrize("transcript", [SYSTEM_FIRST, TWO_USERS, ASSISTANT_FIRST, Transcript.of(("system", "s"))])
def test_a_fitted_transcript_alternates_and_keeps_every_text(transcript: Transcript) -> None:
    fitted = fit_transcript(transcript, ALL_NEEDS)
    prompt = render_alternating(fitted)
    assert all(said.text in prompt for said in transcript)


def test_a_system_text_goes_in_front_of_the_first_user_text() -> None:
    talk = Transcript.of(("system", "s"), ("assistant", "a"), ("user", "u"))
    fitted = fit_transcript(talk, TemplateNeeds(folds_system=True))
    assert fitted == Transcript.of(("assistant", "a"), ("user", "s\n\nu"))


def test_nothing_changes_without_needs() -> None:
    assert fit_transcript(TWO_USERS, NO_NEEDS) == TWO_USERS
