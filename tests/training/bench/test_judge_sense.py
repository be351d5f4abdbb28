"""Criterion sense: a judge that ignores the criterion fails both rows, one that reads it meets them."""

import pytest

from rubric.corpus.opposites import read_opposites
from rubric.corpus.pairs import CorpusPair
from rubric.corpus.rubrics import levels_of, rubric_of
from tests.fakes.judges import instruments
from training.bench.judge_asking import Question
from training.bench.judge_pairs import SIDES, is_of_examiner, load_pairs
from training.bench.judge_rows import Row
from training.bench.judge_sense import SHUFFLES, bank_items, measure_over, shuffled_rubrics
from training.data.judge_probes import read_opposed


@pytest.fixture(scope="module")
def pairs() -> list[CorpusPair]:
    """Every fourth pair of author D."""
    return [pair for pair in load_pairs().kept if is_of_examiner(pair)][::4]


def values(rows: list[Row]) -> dict[str, float]:
    return {row.goal.key: row.found.estimate for row in rows if row.found is not None}


async def test_a_judge_that_ignores_the_criterion_tells_no_opposites_apart(pairs: list[CorpusPair]) -> None:
    long_is_good = instruments(level=lambda question, _criterion: min(1.0, len(question.reply) / 400))
    found = values(await measure_over(pairs, long_is_good))
    assert found["sense.opposed"] == 0.0
    assert found["sense.opposed_bank"] == 0.0


async def test_a_judge_that_reads_the_criterion_meets_the_bars(pairs: list[CorpusPair]) -> None:
    true = {(one.reply, one.true_and_false[0]) for one in read_opposed()}
    known = {
        (text, criterion.text): level
        for pair in pairs
        for text, side in zip((pair.turn.reply, pair.worse.text), SIDES, strict=True)
        for criterion, level in zip(rubric_of(pair.turn), levels_of(pair.turn, side), strict=True)
    }
    opposed_text = {text: identifier for identifier, text in read_opposites().items()}

    def level(question: Question, criterion: str) -> float:
        if (question.reply, criterion) in known:
            return known[question.reply, criterion] or 0.0
        if criterion in opposed_text:
            other = next(text for text in question.criteria if text != criterion)
            return 1 - (known[question.reply, other] or 0.0)
        return float((question.reply, criterion) in true)

    rows = {row.goal.key: row for row in await measure_over(pairs, instruments(level=level))}
    assert rows["sense.opposed"].is_met
    assert rows["sense.opposed"].n >= 200
    assert rows["sense.opposed_bank"].found is not None
    assert rows["sense.opposed_bank"].found.estimate == 1.0
    assert rows["sense.shuffled"].is_met


def test_the_true_sentence_of_the_bank_comes_first(pairs: list[CorpusPair]) -> None:
    opposites = set(read_opposites().values())
    items = bank_items(pairs, seed=1)
    assert len(items) >= 200
    firsts = [item.question.criteria[0] in opposites for item in items]
    assert 0 < sum(firsts) < len(firsts)  # both the criterion and its opposite are the true one now and then
    assert all(
        (item.question.criteria[0] in opposites) is not (item.question.criteria[1] in opposites) for item in items
    )


def test_shuffled_criteria_come_from_other_conversations_under_the_turns_own_weights(pairs: list[CorpusPair]) -> None:
    for pair, rubrics in zip(pairs, shuffled_rubrics(pairs, seed=1), strict=True):
        assert len(rubrics) == SHUFFLES
        assert all(rubric.weights == pair.turn.weights for rubric in rubrics)
