"""Kept answers: the same question is asked once, another one anew, and half an answer is never kept."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rubric.answer_cache import RecentAnswers, key_of
from rubric.criteria import Rubric
from rubric.dialogue import Transcript
from rubric.engine import Endpoint, Sampling
from rubric.judge import ModelJudge
from tests.fakes.model import Answer, ScriptedModel
from tests.rubric.rubrics import golden_rubric

CONTEXT = Transcript.of(("user", "my sister did not answer, and at dinner nobody spoke to me"))
OTHER_CONTEXT = Transcript.of(("user", "my brother did not answer"))
REPLY = "That silence must have stung."
RUBRIC = golden_rubric()
OTHER_RUBRIC = replace(RUBRIC, criteria=(replace(RUBRIC.criteria[0], text="Names the silence"), *RUBRIC.criteria[1:]))
ENDPOINT = Endpoint(base_url="http://a", model="m", driver="tests")
GREEDY = Sampling(max_tokens=8, temperature=0, seed=1)


def answer(level: object) -> str:
    return json.dumps({one.id: {"quote": "stung", "level": level} for one in RUBRIC})


async def test_the_same_question_is_asked_once_and_answered_alike() -> None:
    model, cache = ScriptedModel([answer(1)]), RecentAnswers()
    judge = ModelJudge(model=model, name="judge-test", cache=cache)
    first = await judge.judge(CONTEXT, REPLY, rubric=RUBRIC, seed=5)
    again = await judge.judge(CONTEXT, REPLY, rubric=RUBRIC, seed=5)
    assert again.judgements == first.judgements
    assert (len(model.asked), cache.found, cache.missed) == (1, 1, 1)


@pytest.mark.parametrize(
    ("context", "reply", "rubric", "seed"),
    [
        (OTHER_CONTEXT, REPLY, RUBRIC, 5),
        (CONTEXT, f"{REPLY} ", RUBRIC, 5),
        (CONTEXT, REPLY, OTHER_RUBRIC, 5),
        (CONTEXT, REPLY, RUBRIC, 6),
    ],
    ids=["context", "reply", "criterion", "seed"],
)
async def test_another_question_is_asked_anew(context: Transcript, reply: str, rubric: Rubric, seed: int) -> None:
    model = ScriptedModel([answer(1), answer(0)])
    judge = ModelJudge(model=model, name="judge-test", cache=RecentAnswers())
    await judge.judge(CONTEXT, REPLY, rubric=RUBRIC, seed=5)
    score = await judge.judge(context, reply, rubric=rubric, seed=seed)
    assert set(score.levels.values()) == {0}


async def test_an_answer_that_was_cut_off_is_asked_for_again() -> None:
    cut = Answer(text=answer(1), finish_reason="length")
    model = ScriptedModel([cut, cut, answer(1)])
    judge = ModelJudge(model=model, name="judge-test", cache=RecentAnswers())
    await judge.judge(CONTEXT, REPLY, rubric=RUBRIC, seed=5)
    score = await judge.judge(CONTEXT, REPLY, rubric=RUBRIC, seed=5)
    assert set(score.levels.values()) == {1}


def test_model_address_prompt_and_sampling_are_part_of_the_key() -> None:
    def key(endpoint: Endpoint = ENDPOINT, sha256: str = "p", sampling: Sampling = GREEDY) -> object:
        return key_of(endpoint, CONTEXT, prompt_sha256=sha256, sampling=sampling, schema={})

    keys = {
        key(),
        key(replace(ENDPOINT, model="n")),
        key(replace(ENDPOINT, base_url="http://b")),
        key(sha256="q"),
        key(sampling=replace(GREEDY, temperature=0.7)),
    }
    assert len(keys) == 5
    assert key() == key()


async def test_the_answer_unused_for_longest_makes_room() -> None:
    model, cache = ScriptedModel([answer(0), answer(0.25), answer(0.5), answer(0.75)]), RecentAnswers(most=2)
    judge = ModelJudge(model=model, name="judge-test", cache=cache)
    for reply in ("one", "two", "one", "three", "one", "two"):
        await judge.judge(CONTEXT, reply, rubric=RUBRIC, seed=5)
    assert (len(cache), len(model.asked)) == (2, 4)
