"""Each engine says what transformers and peft say: tokens, log-probabilities, distributions, prompts."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric import Sampling, Transcript
from tests.contracts.engine.conftest import Served
from tests.contracts.engine.reference import Reference

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOLERANCES = {"llamacpp": 0.02, "vllm": 0.001}  # of one log-probability; measured .011 (F32 weights) and .00004
DIFFERENCE = 0.2  # at least so far apart are two versions somewhere in a reply; measured 1.2
VERSIONS = ("policy-base", "policy-a", "policy-b")
PLAIN = Transcript.of(("user", "I lost my job today and I don't know what to do."))
# Digits behind blanks, tabs, letters of several tokens: wherever two tokenizers could differ.
TANGLED = Transcript.of(
    ("system", "You are warm and brief."),
    ("user", "My  cat died  12 days ago, on 3/4."),
    ("assistant", "I am so sorry."),
    ("user", "Thanks. 👨‍👩‍👧 žluť 漢字\n\n\tI   feel 1234 things at once -- it's   too much!!"),
)


def apart(ours: tuple[float | None, ...], theirs: tuple[float, ...]) -> float:
    assert len(ours) == len(theirs)
    assert None not in ours
    return max(abs(a - b) for a, b in zip(ours, theirs, strict=True) if a is not None)


def tolerance_of(served: Served) -> float:
    return TOLERANCES[served.endpoints["policy-base"].driver]


def adapter_of(served: Served, name: str) -> Path | None:
    version = served.versions[name]
    return version.folder if version.kind == "adapter" else None


@pytest.mark.parametrize("transcript", [PLAIN, TANGLED], ids=["plain", "tangled"])
@pytest.mark.parametrize("name", VERSIONS)
async def test_a_greedy_reply_is_the_one_of_transformers(
    served: Served, reference: Reference, name: str, transcript: Transcript
) -> None:
    tolerance = tolerance_of(served)
    reply = await served.ask(name, transcript, sampling=Sampling(max_tokens=24, temperature=0))
    read = reference.read(transcript, reply.token_ids, adapter=adapter_of(served, name))
    assert reply.prompt_tokens == len(reference.prompt_ids(transcript))
    assert reply.logprob_gap is None
    assert max(best - chosen for best, chosen in zip(read.best, read.chosen, strict=True)) <= tolerance
    assert apart(reply.logprobs, read.chosen) <= tolerance
    assert reference.decode(reply.token_ids) == reply.text


@pytest.mark.parametrize("name", VERSIONS)
async def test_processed_log_probabilities_are_of_the_distribution_sampled_from(
    served: Served, reference: Reference, name: str
) -> None:
    reply = await served.ask(name, PLAIN, sampling=Sampling(max_tokens=24, temperature=0.7, seed=5))
    adapter = adapter_of(served, name)
    assert reply.logprob_kind == "processed"
    assert apart(
        reply.logprobs, reference.read(PLAIN, reply.token_ids, adapter=adapter, temperature=0.7).chosen
    ) <= tolerance_of(served)
    assert apart(reply.logprobs, reference.read(PLAIN, reply.token_ids, adapter=adapter).chosen) > tolerance_of(served)


@pytest.mark.parametrize("name", ["policy-a", "policy-b"])
async def test_an_adapter_differs_from_the_base_and_from_the_other(
    served: Served, reference: Reference, adapters: dict[str, Path], name: str
) -> None:
    """Loaded without error and answering like the base is the fault: no key may go missing in silence."""
    reply = await served.ask(name, PLAIN, sampling=Sampling(max_tokens=24, temperature=0))
    other = next(path for other, path in adapters.items() if other != name)
    assert apart(reply.logprobs, reference.read(PLAIN, reply.token_ids).chosen) > DIFFERENCE
    assert apart(reply.logprobs, reference.read(PLAIN, reply.token_ids, adapter=other).chosen) > DIFFERENCE


@pytest.mark.parametrize(
    "transcript",
    [
        Transcript.of(("system", "Be kind."), ("user", "hello")),
        Transcript.of(("user", "hello"), ("user", "are you there?")),
        Transcript.of(("assistant", "Welcome."), ("user", "hello")),
    ],
    ids=["system-user", "user-user", "assistant-first"],
)
async def test_every_order_of_roles_is_answered(served: Served, reference: Reference, transcript: Transcript) -> None:
    reply = await served.ask("policy-base", transcript, sampling=Sampling(max_tokens=4, temperature=0))
    assert reply.prompt_tokens == len(reference.prompt_ids(transcript))
    assert reply.completion_tokens
