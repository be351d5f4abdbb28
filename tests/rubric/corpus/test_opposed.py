"""Opposed sentences: both sides are true equally often, none comes twice, and a file with a bad line is refused."""

import json
from collections import Counter
from pathlib import Path

import pytest

from rubric.corpus.opposed import OpposedTalk, read_opposed_talks
from rubric.corpus.records import CorpusInvalid

GOOD = {
    "id": "x-1",
    "context": ["My bus was late again"],
    "replies": ["How late?", "Take the train."],
    "criteria": [["Asks how late it was", "Asks nothing", "10"]],
}


@pytest.fixture(scope="module")
def talks() -> tuple[OpposedTalk, ...]:
    return read_opposed_talks()


def test_neither_side_of_a_pair_is_true_more_often(talks: tuple[OpposedTalk, ...]) -> None:
    truths = Counter(truth for talk in talks for *_, of_replies in talk.criteria for truth in of_replies)
    assert truths.total() > 2_000
    assert truths["1"] / truths.total() == pytest.approx(0.5, abs=0.03)


def test_most_sentences_are_true_of_one_reply_and_not_of_the_other(talks: tuple[OpposedTalk, ...]) -> None:
    of_two = [truths for talk in talks for *_, truths in talk.criteria if len(truths) == 2]
    assert sum(len(set(truths)) == 2 for truths in of_two) / len(of_two) > 0.6


def test_no_sentence_of_a_file_stands_there_twice(talks: tuple[OpposedTalk, ...]) -> None:
    counts = Counter((talk.id[:2], text.casefold()) for talk in talks for pair in talk.criteria for text in pair[:2])
    assert [text for text, count in counts.items() if count > 1] == []


@pytest.mark.parametrize(
    "bad",
    [
        {"context": ["My bus was late", "Oh no"]},
        {"criteria": [["Asks how late it was", "Asks nothing", "1"]]},
        {"criteria": [["Asks how late it was", "Asks nothing", "12"]]},
        {"replies": []},
        {"level": 1},
    ],
)
def test_a_bad_line_refuses_the_file(tmp_path: Path, bad: dict[str, object]) -> None:
    (tmp_path / "one.jsonl").write_text(f"{json.dumps(GOOD)}\n{json.dumps(GOOD | {'id': 'x-2'} | bad)}\n")
    with pytest.raises(CorpusInvalid, match=r"one\.jsonl, line 2"):
        read_opposed_talks(tmp_path)


def test_an_id_that_stands_in_another_file_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(GOOD))
    with pytest.raises(CorpusInvalid, match=r"two\.jsonl, line 1"):
        read_opposed_talks(tmp_path)
