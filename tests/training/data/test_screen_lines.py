"""Training lines are read whole and checked, and none of them shares a 5-gram with what the suite counts."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.data.public_texts import counsel_questions, goemotions_by_id, news_reactions
from training.data.screen_lines import (
    PUBLIC,
    CorpusInvalid,
    five_grams,
    load_corpus,
    public_lines,
    read_lines,
    read_suite,
    suite_grams,
)

ROOT = Path(__file__).resolve().parents[3]
CORPUS = ROOT / "rubric" / "corpus" / "screen"
SUITE = ROOT / "training" / "bench" / "safety_suite"
DATA = ROOT.parent / "shared" / "data"
LINE = {"id": "a-1", "label": "none", "family": "joy", "text": "hello", "author": "x"}


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.mark.parametrize("part", ["counted_before", "held_out"])
def test_no_committed_line_shares_a_5_gram_with_a_held_out_text(part: str) -> None:
    grams = suite_grams(SUITE / f"{part}.jsonl")
    assert [line.id for line in read_lines(CORPUS) if five_grams(line.text) & grams] == []


def test_there_are_at_least_1500_own_lines_by_other_authors_than_the_suites() -> None:
    lines = read_lines(CORPUS)
    assert sum(line.direction == "visitor" for line in lines) >= 1500
    assert all(line.author.startswith("screen-") for line in lines)


def test_a_line_that_shares_a_5_gram_is_dropped_and_counted(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    item = {"id": "c", "kind": "crisis", "family": "f", "turns": ["one Two three, four five six"]}
    write(suite / "held_out.jsonl", item)
    write(suite / "counted_before.jsonl", {**item, "turns": ["what was counted stays apart"]})
    write(suite / "tuning.jsonl", {**item, "turns": ["tuning words are kept apart too"]})
    write(
        tmp_path / "visitor-01.jsonl",
        {**LINE, "id": "shares", "text": "well, TWO three four five six seven"},
        {**LINE, "id": "shares-counted", "text": "and what was counted stays apart"},
        {**LINE, "id": "shares-tuning", "text": "all tuning words are kept apart"},
        {**LINE, "id": "stays", "text": "two three four five"},
    )
    corpus = load_corpus(tmp_path, suite_folder=suite)
    assert [line.id for line in corpus.lines] == ["stays"]
    assert corpus.dropped_ids == ("shares", "shares-counted", "shares-tuning")


@given(st.lists(st.sampled_from(["it's", "a", "Bad", "day", "again"]), min_size=5, max_size=12))
def test_marks_and_case_do_not_hide_a_5_gram(words: list[str]) -> None:
    assert five_grams(" ".join(words)) == five_grams(" -- ".join(words).upper().replace("'", "’") + "!")


def test_fewer_than_five_words_have_no_5_gram() -> None:
    assert five_grams("one two three four") == frozenset()


def test_both_directions_and_folders_below_are_read(tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    write(tmp_path / "visitor-01.jsonl", LINE)
    write(tmp_path / "second" / "visitor-01.jsonl", {**LINE, "id": "b-1"})
    write(tmp_path / "reply-01.jsonl", {**LINE, "id": "r-1"})
    assert [(line.id, line.direction) for line in read_lines(tmp_path)] == [
        ("b-1", "visitor"),
        ("a-1", "visitor"),
        ("r-1", "reply"),
    ]


@pytest.mark.parametrize(
    "row",
    [[], {**LINE, "label": "maybe"}, {**LINE, "text": " "}, {**LINE, "text": 5}, {"id": "a-1"}, {**LINE, "id": None}],
)
def test_a_wrong_line_is_named_by_its_number(tmp_path: Path, row: object) -> None:
    write(tmp_path / "visitor-01.jsonl", {**LINE, "id": "first"}, row)
    with pytest.raises(CorpusInvalid, match=r"visitor-01\.jsonl, line 2"):
        read_lines(tmp_path)


def test_an_id_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "visitor-01.jsonl", LINE, LINE)
    with pytest.raises(CorpusInvalid, match="line 2"):
        read_lines(tmp_path)


def test_a_refusal_never_carries_the_text(tmp_path: Path) -> None:
    write(tmp_path / "visitor-01.jsonl", {**LINE, "text": "very private", "label": "x"})
    with pytest.raises(CorpusInvalid) as raised:
        read_lines(tmp_path)
    assert "private" not in str(raised.value)


@pytest.mark.parametrize(
    "row",
    [
        {"id": "c", "kind": "other", "family": "f", "turns": ["a"]},
        {"id": "c", "kind": "crisis", "family": "f", "turns": []},
        {"id": "c", "kind": "crisis", "family": "f", "turns": [1]},
        {"id": 1, "kind": "crisis", "family": "f", "turns": ["a"]},
    ],
)
def test_a_wrong_suite_item_is_refused(tmp_path: Path, row: object) -> None:
    with pytest.raises(CorpusInvalid):
        read_suite(write(tmp_path / "held_out.jsonl", row))


def test_without_a_data_folder_no_public_lines_train() -> None:
    assert public_lines(None) == ()


def test_a_public_id_that_is_not_in_the_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusInvalid, match="not in the data"):
        public_lines(tmp_path)


def test_the_public_labels_name_texts_and_hold_none() -> None:
    rows = [json.loads(raw) for raw in PUBLIC.read_text("utf-8").splitlines()]
    assert all(set(row) - {"direction"} == {"id", "label"} for row in rows)
    sources = {"goemotions", "counsel_chat", "counsel_answers", "empathic_reactions"}
    assert {row["id"].partition(":")[0] for row in rows} == sources


@pytest.mark.skipif(not DATA.is_dir(), reason="the public data folder is absent")
def test_every_public_label_finds_its_text() -> None:
    lines = public_lines(DATA)
    assert len(lines) == len(PUBLIC.read_text("utf-8").splitlines())
    assert max(len(line.text.split()) for line in lines) <= 60
    assert len(goemotions_by_id(DATA, "train")) > 43_000
    assert len(counsel_questions(DATA)) == 815
    assert len(news_reactions(DATA)) == 1860
