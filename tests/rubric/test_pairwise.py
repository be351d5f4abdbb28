"""Pairs of replies are asked about in both orders: what flips is a tie, what is unread is None, and counts show it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.answer_cache import RecentAnswers
from rubric.criteria import Dimension, Polarity, Weights
from rubric.dialogue import Transcript
from rubric.errors import EngineRefused, ScoreMismatch
from rubric.fence import defang
from rubric.pairwise import Comparison, PairJudge, PairScore, pair_prompt, pair_schema, read_verdicts
from tests.fakes.model import Answer, ScriptedModel
from tests.rubric.rubrics import golden_rubric

CONTEXT = Transcript.of(("user", "my sister did not answer, and at dinner nobody spoke to me"))
FIRST = "That silence must have stung."
SECOND = "Just call her again."
RUBRIC = golden_rubric()
IDS = [one.id for one in RUBRIC]
OTHER = {"first": "second", "second": "first", "equal": "equal"}


def answer(verdicts: dict[str, Any] | Any) -> str:
    given_by_id = verdicts if isinstance(verdicts, dict) else dict.fromkeys(IDS, verdicts)
    return json.dumps({name: {"quote": "", "more": more} for name, more in given_by_id.items()})


async def compared(script: list[str | Answer | Exception], **options: Any) -> tuple[PairScore, ScriptedModel]:
    model = ScriptedModel(script)
    judge = PairJudge(model=model, name="judge-test", **options)
    return await judge.compare(CONTEXT, FIRST, SECOND, rubric=RUBRIC, seed=5), model


# ---- both orders ----------------------------------------------------------------------------------------------------


async def test_a_reply_named_in_both_orders_is_preferred() -> None:
    wants = {name: "second" if name == "A2" else "first" for name in IDS}  # A2 is a fault: the other does more of it
    turned = {name: "first" if name == "A2" else "second" for name in IDS}
    score, model = await compared([answer(wants), answer(turned)])
    assert score.preference(RUBRIC) == 1
    assert score.counts == {"first": 5, "second": 1, "equal": 0, "flipped": 0, "none": 0}
    bodies = [asked.transcript.last_user for asked in model.asked]
    assert bodies[0].index(FIRST) < bodies[0].index(SECOND)
    assert bodies[1].index(SECOND) < bodies[1].index(FIRST)
    assert all(asked.sampling.temperature == 0 for asked in model.asked)
    assert all(asked.schema == pair_schema(RUBRIC.criteria) for asked in model.asked)


@pytest.mark.parametrize("place", ["first", "second"])
async def test_a_judge_that_goes_by_place_prefers_nobody(place: str) -> None:
    score, _ = await compared([answer(place), answer(place)])
    assert score.preference(RUBRIC) == 0
    assert score.counts["flipped"] == 6
    assert {one.verdict for one in score.comparisons} == {"equal"}


async def test_swapping_the_replies_turns_the_preference_round() -> None:
    said = {"C1": "first", "C2": "equal", "A1": "second", "A2": "second", "P1": "first", "P2": "first"}
    turned: dict[str, Any] = {name: OTHER[word] for name, word in said.items()}
    score, _ = await compared([answer(said), answer(turned)])
    other = replace(
        score, comparisons=tuple(Comparison(criterion_id=n, shown=turned[n], swapped=turned[n]) for n in IDS)
    )
    assert score.preference(RUBRIC) == pytest.approx(0.25 * 0.5 + 0.55 * 0 + 0.20 * 1)
    assert other.preference(RUBRIC) == pytest.approx(-0.325)


# ---- what cannot be read --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [1, 0.5, True, None, "First", "10/10", "both", [], {}])
async def test_what_is_no_verdict_is_none_and_counted(bad: object) -> None:
    spoilt = answer({name: bad if name == "C1" else "first" for name in IDS})
    score, model = await compared([spoilt, spoilt, answer("second")])
    assert score.counts["none"] == 1
    assert (score.attempts, len(model.asked)) == (3, 3)
    assert model.asked[1].sampling.temperature > 0
    assert score.preference(RUBRIC) is not None  # C2 stands for its dimension


@pytest.mark.parametrize("text", ["", "The first one, 10/10.", '{"C1": NaN}', '{"C1": 1, "C1": 2}', "[]"])
async def test_unread_answers_prefer_nobody_after_bounded_attempts(text: str) -> None:
    score, model = await compared([text] * 4)
    assert score.preference(RUBRIC) is None
    assert (score.counts["none"], len(model.asked)) == (6, 4)


async def test_an_answer_that_was_cut_off_is_not_read() -> None:
    cut = Answer(text=answer("first"), finish_reason="length")
    score, _ = await compared([cut, cut, answer("second")])
    assert score.counts["none"] == 6


async def test_a_dimension_without_a_verdict_gives_no_preference() -> None:
    partly = answer({name: "first" for name in IDS if name[0] != "P"})
    score, _ = await compared([partly, partly, answer("second")])
    assert score.preference(RUBRIC) is None


@given(st.text())
def test_arbitrary_text_gives_no_verdict_and_no_error(text: str) -> None:
    assert set(read_verdicts(text, criteria=RUBRIC.criteria)) == {None}


async def test_errors_of_the_engine_leave() -> None:
    with pytest.raises(EngineRefused):
        await compared([answer("first"), EngineRefused(status=503)])


async def test_comparisons_of_another_rubric_are_refused() -> None:
    score, _ = await compared([answer("first"), answer("second")])
    smaller = replace(RUBRIC, criteria=tuple(one for one in RUBRIC if one.id != "C1"))
    with pytest.raises(ScoreMismatch):
        score.preference(smaller)


async def test_asked_again_both_orders_are_recalled() -> None:
    cache = RecentAnswers()
    score, _ = await compared([answer("first"), answer("second")], cache=cache)
    again, model = await compared([], cache=cache)
    assert again.comparisons == score.comparisons
    assert model.asked == []


# ---- what the judge sees --------------------------------------------------------------------------------------------


def test_the_prompt_is_the_same_whatever_weights_and_polarities_are() -> None:
    other = replace(
        RUBRIC,
        weights=Weights.from_points({Dimension.COGNITIVE: 90, Dimension.AFFECTIVE: 9, Dimension.PROACTIVE: 1}),
        criteria=tuple(replace(one, weight=3.5, polarity=Polarity.AVOID) for one in RUBRIC),
    )
    assert pair_prompt(CONTEXT, FIRST, SECOND, criteria=RUBRIC.criteria) == pair_prompt(
        CONTEXT, FIRST, SECOND, criteria=other.criteria
    )


@given(st.text(alphabet="=0123456789abcdef\n<|>im_end[]INST/ "), st.text(alphabet="=0123456789abcdef\n<|>"))
def test_each_of_three_delimiters_stands_exactly_at_its_fence(first: str, second: str) -> None:
    body = pair_prompt(CONTEXT, first, second, criteria=RUBRIC.criteria).last_user
    heads = ("The talk:\n", "The first reply:\n", "The second reply:\n")
    delimiters = [body.split(head, 1)[1].split("\n", 1)[0] for head in heads]
    assert len(set(delimiters)) == 3
    assert all(body.count(one) == 2 for one in delimiters)
    assert body.split(delimiters[2])[1] == f"\n{defang(second)}\n"
