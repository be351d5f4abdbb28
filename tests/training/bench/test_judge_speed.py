"""What G12 measures: eight criteria of all dimensions, and the whole way from an answer to a stored score."""

import json
from dataclasses import replace

from rubric import Dimension
from rubric.corpus.records import read_corpus
from rubric.corpus.rubrics import rubric_of
from tests.fakes.judges import EVEN, shares_of
from training.bench.judge_calibration import replies_of
from training.bench.judge_speed import CRITERIA, Sample, score_answer, with_eight


def sample() -> Sample:
    reply = next(one for one in replies_of(read_corpus()) if len(rubric_of(one.turn).criteria) > CRITERIA)
    return Sample(reply=reply, rubric=with_eight(rubric_of(reply.turn)))


def test_eight_criteria_leave_no_dimension_without_one() -> None:
    rubric = sample().rubric
    assert len(rubric.criteria) == CRITERIA
    assert all(rubric.criteria_of(dimension) for dimension in Dimension)


def test_an_answer_becomes_a_stored_score_with_its_reward() -> None:
    one = sample()
    answer = {
        "version": "judge-x",
        "levels": [shares_of(0.75)] * CRITERIA,
        "expected": [0.75] * CRITERIA,
        "evidence": [None] * CRITERIA,
        "none_reasons": [None] * CRITERIA,
        "genuine": 1.0,
        "mechanisms": EVEN,
    }
    score, reward = json.loads(score_answer(one, json.dumps(answer).encode()))
    assert [row["level"] for row in score["judgements"]] == [0.75] * CRITERIA
    assert 0.25 <= reward <= 0.75  # avoid criteria count 1 - level


def test_the_request_holds_texts_alone() -> None:
    one = sample()
    payload = json.loads(one.payload)
    assert payload["criteria"] == [criterion.text for criterion in one.rubric]
    assert payload["reply"] == one.reply.text
    assert json.loads(replace(one, rubric=with_eight(one.rubric)).payload) == payload
