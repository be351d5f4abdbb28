"""What judges are asked about a corpus turn is what its author wrote, in one order."""

from rubric.bank import load_bank
from rubric.corpus.records import CorpusTurn, read_corpus
from rubric.corpus.rubrics import levels_of, rubric_of
from rubric.criteria import Dimension


def turns() -> list[CorpusTurn]:
    return [turn for conversation in read_corpus() for turn in conversation.turns]


def test_criteria_and_levels_stand_in_one_order() -> None:
    turn = next(turn for turn in turns() if turn.own and turn.worse)
    rubric = rubric_of(turn)
    bank = load_bank().by_id
    given = {criterion.text: level for criterion, level in zip(rubric, levels_of(turn, "reply"), strict=True)}
    worse = {criterion.text: level for criterion, level in zip(rubric, levels_of(turn, "worse"), strict=True)}
    for identifier, (level, level_of_worse) in turn.criteria.items():
        assert (given[bank[identifier].text], worse[bank[identifier].text]) == (level, level_of_worse)
    for own in turn.own:
        assert (given[own.text], worse[own.text]) == (own.level, own.level_of_worse)


def test_weights_are_the_authors_points() -> None:
    turn = turns()[0]
    assert [round(100 * rubric_of(turn).weights.of(dimension)) for dimension in Dimension] == list(turn.points)


def test_every_turn_has_a_rubric() -> None:
    assert all(
        len(rubric_of(turn).criteria) == len(levels_of(turn, "reply")) == len(levels_of(turn, "worse"))
        for turn in turns()
    )
