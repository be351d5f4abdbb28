"""Lines of the corpus: what is read, what is refused, and that a refusal repeats nothing of the text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric.corpus.records import CorpusInvalid, SupportStrategy, read_conversations, read_corpus, read_matrix
from rubric.criteria import Dimension
from tests.rubric.corpus.conversations import conversation, fields, turn


def write(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def test_a_good_line_is_read_with_its_context_and_weights(tmp_path: Path) -> None:
    (read,) = read_conversations(write(tmp_path / "a-01.jsonl", fields(), ""))
    assert read == conversation()
    assert len(read.context_of(2)) == 5
    assert read.turns[0].weights.of(Dimension.AFFECTIVE) == 0.6
    with pytest.raises(IndexError):
        read.context_of(6)


def test_a_reply_before_a_call_for_repair_is_no_example() -> None:
    turns = [turn(number) for number in range(6)]
    turns[3] |= {"unstated": "repair"}
    assert conversation(turns=turns).missed == {2}
    assert conversation().missed == frozenset()


SPOILT: dict[str, dict[str, object]] = {
    "blank": {"visitor": "  "},
    "nul": {"reply": "a\0b"},
    "half_a_character": {"reply": "a\ud800b"},
    "both_needs_null": {"need": None},
    "points": {"points": [50, 50, 10]},
    "negative_points": {"points": [110, -10, 0]},
    "level": {"criteria": {"c-001": [0.3, 0], "c-002": [1, 0], "a-001": [1, 0], "a-002": [0, 1], "p-001": [0, 0]}},
    "too_few_criteria": {"criteria": {"c-001": [1, 0], "c-002": [1, 0], "a-001": [1, 0], "p-001": [0, 0]}},
    "level_of_worse_without_worse": {"worse": None},
    "emotion": {"emotion": "meh"},
    "mechanism": {"levels": [3, 0, 0]},
    "intensity": {"intensity": 1.5},
    "unknown_field": {"mood": 1},
    "no_strategy": {"strategies": []},
}


@pytest.mark.parametrize("fault", SPOILT)
def test_a_bad_turn_is_refused_by_file_line_and_field_without_its_text(tmp_path: Path, fault: str) -> None:
    spoilt = fields(turns=[*(turn(number) for number in range(5)), turn(5) | SPOILT[fault]])
    path = write(tmp_path / "a-01.jsonl", fields(), spoilt)
    with pytest.raises(CorpusInvalid, match=r"a-01\.jsonl, line 2: turns|a-01\.jsonl, line 2: JSON") as refused:
        read_conversations(path)
    assert "kettle" not in str(refused.value).casefold()


@pytest.mark.parametrize("line", ["{", "[]", '{"id": NaN}', "{" * 100], ids=["cut", "list", "nan", "deep"])
def test_what_is_no_json_object_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(CorpusInvalid, match="line 1"):
        read_conversations(write(tmp_path / "a-01.jsonl", line))


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a-01.jsonl"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(CorpusInvalid, match="UTF-8"):
        read_conversations(path)


def test_an_id_given_twice_is_refused_and_the_neighbour_file_still_loads(tmp_path: Path) -> None:
    write(tmp_path / "a-01.jsonl", fields())
    neighbour = write(tmp_path / "a-02.jsonl", fields())
    with pytest.raises(CorpusInvalid, match=r"a-02\.jsonl, line 1: the id a-001"):
        read_corpus(tmp_path)
    assert read_conversations(neighbour)


def test_every_strategy_but_the_rest_serves_a_dimension() -> None:
    assert {strategy for strategy in SupportStrategy if strategy.dimension is None} == {SupportStrategy.OTHER}


def test_the_plan_has_four_authors_and_two_hundred_conversations() -> None:
    rows = read_matrix()
    assert len({row.id for row in rows}) == len(rows) >= 200
    assert {row.author for row in rows} == {"A", "B", "C", "D"}
