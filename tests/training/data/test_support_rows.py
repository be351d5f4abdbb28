"""One row per reply that directly follows the seeker; what came before decides stage and strategies."""

from __future__ import annotations

from pathlib import Path

from rubric import Dimension, Role, Stage
from rubric.corpus.records import SupportStrategy
from tests.training.data import files
from training.data.esconv import ESCONV
from training.data.reading import load_file
from training.data.support_rows import stage_of, support_rows


def test_replies_after_the_seeker_are_rows_and_others_are_dropped(tmp_path: Path) -> None:
    (conversation,) = load_file(files.write_jsonl(tmp_path / "f", [files.esconv()]), ESCONV)
    question, reflection = support_rows(conversation)
    assert (question.dimension, reflection.dimension) == (Dimension.COGNITIVE, Dimension.AFFECTIVE)
    assert question.previous == (SupportStrategy.OTHER,)
    assert (question.replies_before, reflection.replies_before) == (0, 1)
    roles = [said.role for said in reflection.context]
    assert roles == [Role.ASSISTANT, Role.USER, Role.ASSISTANT, Role.USER]
    assert reflection.context.last_user == "Monday.\n\nAnd nobody said why."


def test_the_stage_goes_by_the_replies_before() -> None:
    assert [stage_of(count) for count in (0, 1, 2, 5, 6, 11, 12, 400)] == [
        *(Stage.OPENING, Stage.OPENING, Stage.EXPLORATION, Stage.EXPLORATION),
        *(Stage.WORKING, Stage.WORKING, Stage.CLOSING, Stage.CLOSING),
    ]


def test_a_conversation_that_ends_early_has_the_same_rows_up_to_there(tmp_path: Path) -> None:
    whole = files.esconv()
    cut = files.esconv(dialog=whole["dialog"][:3])
    first, second = load_file(files.write_jsonl(tmp_path / "f", [whole, cut]), ESCONV)
    (row,) = support_rows(second)
    assert (row.stage, row.previous, row.context) == (
        next(iter(support_rows(first))).stage,
        next(iter(support_rows(first))).previous,
        next(iter(support_rows(first))).context,
    )
