"""CounselChat: every question counts once, and matched answers are alike in length and views."""

from pathlib import Path

import numpy as np
import pytest

from rubric import Transcript
from tests.fakes.judges import instruments
from tests.training.data import files
from training.bench.judge_counsel import is_matched, measure, question_weighted, read_pairs
from training.bench.judge_rows import GOALS


def answer(question: str, text: str, *, upvotes: int, views: int = 100) -> dict[str, object]:
    return {
        "questionID": question,
        "questionTitle": f"Title {question}",
        "questionText": "What now?",
        "topic": "t",
        "answerText": text,
        "upvotes": upvotes,
        "views": views,
        "split": "train",
    }


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """Question q1: three pairs with two votes between them, which the longer answer wins; q2: one, which it loses."""
    (tmp_path / "counsel_chat").mkdir()
    rows = [
        answer("q1", "a" * 900, upvotes=9, views=1000),
        answer("q1", "b" * 500, upvotes=6),
        answer("q1", "c" * 400, upvotes=3),
        answer("q2", "d" * 100, upvotes=5),
        answer("q2", "e" * 120, upvotes=3),
        answer("q2", "f" * 110, upvotes=4),  # a single vote is no difference
    ]
    files.write_csv(tmp_path / "counsel_chat" / "counsel_chat.csv.gz", rows)
    return tmp_path


async def test_a_question_with_many_pairs_counts_once(public: Path) -> None:
    def by_length(_context: Transcript, reply: str) -> float:
        return float(len(reply))

    rows = {row.goal.key: row for row in await measure(instruments(quality=by_length, public_data=public))}
    longer = rows["counsel.longer"]
    assert longer.found is not None
    assert (longer.found.estimate, longer.n, longer.note) == (0.5, 4, "2 questions")
    assert rows["counsel.examiner"].found == longer.found
    assert rows["counsel.judge"].found is not None
    assert rows["counsel.judge"].found.estimate == 0.5  # one level for all is a tie everywhere


def test_matched_answers_are_alike_in_both(public: Path) -> None:
    assert sorted(len(pair.better.answer) for pair in read_pairs(public) if is_matched(pair)) == [100, 500]


def test_a_question_that_is_drawn_twice_weighs_twice(public: Path) -> None:
    pairs = read_pairs(public)
    first = np.array([at for at, pair in enumerate(pairs) if pair.question == "q1"])
    second = np.array([at for at, pair in enumerate(pairs) if pair.question == "q2"])
    credits = np.array([1.0 if pair.question == "q1" else 0.0 for pair in pairs])
    statistic = question_weighted(pairs, credits)
    assert statistic(np.concatenate([first, first, second])) == pytest.approx(2 / 3)


async def test_without_public_data_every_row_says_so() -> None:
    rows = await measure(instruments())
    assert {row.goal.key for row in rows} == {key for key, goal in GOALS.items() if goal.part == "counsel"}
    assert all(row.found is None for row in rows)
