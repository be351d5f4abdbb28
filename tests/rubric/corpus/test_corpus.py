"""The corpus as it is committed: what its data card claims, measured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rubric.bank import load_bank
from rubric.corpus.__main__ import main
from rubric.corpus.checking import check_files
from rubric.corpus.likeness import embed, twins
from rubric.corpus.measures import (
    empty_cells,
    length_spread,
    near_duplicates,
    pair_figures,
    shared_openings,
    type_token_ratio,
)
from rubric.corpus.pairs import MIN_AGREEMENT, agreement_of, all_pairs, kept_pairs, read_relabels
from rubric.corpus.records import CONVERSATIONS, Conversation, Fault, read_corpus, read_matrix
from rubric.states import Emotion, Need

# ESConv's seekers, joined utterances of the train part: words 4 / 16 / 40 (10, 50, 90 %), types per 500 tokens .469.
ESCONV_MEDIAN_WORDS = 16
ESCONV_TYPES_PER_TOKEN = 0.469
ENCODER = os.environ.get("RAPPORT_ENCODER_FOLDER")


@pytest.fixture(scope="module")
def corpus() -> tuple[Conversation, ...]:
    """All conversations."""
    return read_corpus()


def test_every_file_passes_the_check_of_its_author() -> None:
    rows = {row.id: row for row in read_matrix()}
    bank_ids = frozenset(load_bank().by_id)
    problems = check_files(sorted(CONVERSATIONS.glob("*.jsonl")), rows=rows, bank_ids=bank_ids)
    assert problems == []


def test_the_plan_covers_every_cell_and_authors_share_no_cell_alone() -> None:
    rows = read_matrix()
    assert empty_cells(rows) == []
    assert all(sum(row.author == author for row in rows) >= 50 for author in "ABCD")


def test_no_two_conversations_open_alike_or_repeat_each_other(corpus: tuple[Conversation, ...]) -> None:
    assert shared_openings(corpus) == []
    assert near_duplicates(corpus) == []


@pytest.mark.skipif(ENCODER is None, reason="RAPPORT_ENCODER_FOLDER names no encoder export")
def test_no_two_conversations_mean_the_same(corpus: tuple[Conversation, ...]) -> None:
    assert ENCODER is not None
    assert twins(corpus, embed(corpus, encoder=Path(ENCODER))) == []


def test_people_write_as_variedly_as_esconvs_seekers(corpus: tuple[Conversation, ...]) -> None:
    said = [turn.visitor for conversation in corpus for turn in conversation.turns]
    spread = length_spread(said)
    assert ESCONV_MEDIAN_WORDS / 2 <= spread.median <= ESCONV_MEDIAN_WORDS * 2
    assert spread.high >= 4 * spread.low
    assert abs(type_token_ratio(said) - ESCONV_TYPES_PER_TOKEN) <= 0.1


def test_pairs_are_balanced_in_length_and_varied_in_fault(corpus: tuple[Conversation, ...]) -> None:
    figures = pair_figures(corpus)
    assert 0.4 <= figures.better_is_shorter <= 0.6
    assert set(figures.faults) == set(Fault)
    assert max(figures.faults.values()) <= figures.count / 4


def test_every_pair_was_read_blind_and_most_readers_agree(corpus: tuple[Conversation, ...]) -> None:
    pairs = list(all_pairs(corpus))
    relabels = read_relabels()
    agreement = agreement_of(pairs, relabels)
    assert agreement.unread == 0
    assert agreement.share is not None
    assert agreement.share >= MIN_AGREEMENT
    assert len(kept_pairs(corpus, relabels=relabels)) == agreement.agreed >= 800


def test_every_planned_conversation_is_written(corpus: tuple[Conversation, ...]) -> None:
    assert [conversation.id for conversation in corpus] == sorted(row.id for row in read_matrix())


def test_every_emotion_and_need_comes_up(corpus: tuple[Conversation, ...]) -> None:
    turns = [turn for conversation in corpus for turn in conversation.turns]
    assert {turn.emotion for turn in turns} == set(Emotion)
    assert {turn.need for turn in turns} | {turn.unstated for turn in turns} >= set(Need)


def test_the_report_and_the_sheet_are_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAPPORT_ENCODER_FOLDER", raising=False)
    assert main(["report"]) == 0
    report = capsys.readouterr().out
    for word in ("conversations", "cells of the matrix", "pairs", "read blind", "openings", "not measured"):
        assert word in report
    assert main(["sheet"]) == 0
    assert capsys.readouterr().out[:4] in {"=== ", "\n"}  # what nobody has read, or nothing
    assert main(["sing"]) == 2
