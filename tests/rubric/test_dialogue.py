"""`rubric.dialogue`: transcripts are values with a stable hash."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.dialogue import JOINT, Role, Transcript, Utterance

utterances = st.builds(Utterance, st.sampled_from(Role), st.text())
transcripts = st.builds(Transcript, st.lists(utterances, max_size=8).map(tuple))


def test_last_user_is_the_visitors_newest_text() -> None:
    talk = Transcript.of(("user", "one"), ("assistant", "two"), ("user", "three"), ("assistant", "four"))
    assert talk.last_user == "three"


def test_last_user_is_empty_where_nobody_spoke() -> None:
    assert Transcript.of(("assistant", "hello")).last_user == ""
    assert Transcript(()).last_user == ""


def test_equal_neighbouring_roles_become_one_utterance() -> None:
    talk = Transcript.of(("user", "a"), ("user", "b"), ("assistant", "c"), ("user", "d"))
    assert talk.merged() == Transcript.of(("user", "a\n\nb"), ("assistant", "c"), ("user", "d"))


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="tool"):
        Transcript.of(("tool", "x"))


def test_the_hash_is_that_of_the_documented_canonical_json() -> None:
    expected = hashlib.sha256(b'[["user","h\\u00e9"],["assistant","ok"]]').hexdigest()
    assert Transcript.of(("user", "hé"), ("assistant", "ok")).sha256 == expected


def test_a_lone_surrogate_has_a_hash_of_its_own() -> None:
    assert Transcript.of(("user", "\ud83d")).sha256 != Transcript.of(("user", "\ufffd")).sha256


@given(transcripts)
def test_merging_alternates_roles_and_keeps_every_text(talk: Transcript) -> None:
    merged = talk.merged()
    assert all(a.role is not b.role for a, b in zip(merged.utterances, merged.utterances[1:], strict=False))
    assert merged.merged() == merged
    assert JOINT.join(said.text for said in merged) == JOINT.join(said.text for said in talk)


@given(transcripts, transcripts)
def test_hashes_agree_exactly_where_transcripts_are_equal(a: Transcript, b: Transcript) -> None:
    assert (a.sha256 == b.sha256) == (a == b)
