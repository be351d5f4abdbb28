"""Pairs, the blind sheet, and what a reader's choices do to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric.corpus.pairs import Relabel, agreement_of, agrees, all_pairs, kept_pairs, read_relabels, sheet_lines
from rubric.corpus.records import CorpusInvalid
from tests.rubric.corpus.conversations import conversation, turn

OTHER = {"X": "Y", "Y": "X"}


def test_every_turn_with_a_worse_reply_is_a_pair_with_its_context() -> None:
    pairs = list(all_pairs([conversation()]))
    assert [pair.id for pair in pairs] == [f"a-001.{turn}" for turn in range(1, 7)]
    assert len(pairs[2].context) == 5


def test_the_sheet_shows_both_replies_and_neither_label_nor_fault() -> None:
    pairs = list(all_pairs([conversation()]))
    sheet = "\n".join(sheet_lines(pairs))
    for pair in pairs:
        assert pair.turn.reply in sheet
        assert pair.worse.text in sheet
        assert pair.worse.reason not in sheet
    assert "early_advice" not in sheet
    assert {pair.better_is for pair in pairs} == {"X", "Y"}


def test_a_reply_shows_in_a_context_only_after_its_own_pair() -> None:
    other = conversation(id="a-002")
    sheet = "\n".join(sheet_lines(list(all_pairs([conversation(), other]))))
    order = [line.split()[1] for line in sheet.splitlines() if line.startswith("=== ")]
    assert [name.partition(".")[2] for name in order] == [turn for turn in "123456" for _ in range(2)]
    assert [name[:5] for name in order] != ["a-001", "a-002"] * 6


def test_disputed_and_unread_pairs_are_dropped_and_counted() -> None:
    pairs = list(all_pairs([conversation()]))
    agreed, disputed = pairs[0], pairs[1]
    relabels = {
        agreed.id: Relabel(pair=agreed.id, mark=agreed.mark, choice=agreed.better_is, reader="r"),
        disputed.id: Relabel.model_validate(
            {"pair": disputed.id, "mark": disputed.mark, "choice": OTHER[disputed.better_is], "reader": "r"}
        ),
    }
    counts = agreement_of(pairs, relabels)
    assert (counts.read, counts.agreed, counts.unread, counts.share) == (2, 1, 4, 0.5)
    assert [pair.id for pair in kept_pairs([conversation()], relabels=relabels)] == [agreed.id]
    assert agreement_of(pairs, {}).share is None


def test_a_pair_that_was_changed_after_it_was_read_counts_as_unread() -> None:
    (read, *_) = all_pairs([conversation()])
    relabels = {read.id: Relabel(pair=read.id, mark=read.mark, choice=read.better_is, reader="r")}
    turns = [turn(number) for number in range(6)]
    turns[0]["worse"]["text"] += " Really."
    (changed, *_) = all_pairs([conversation(turns=turns)])
    assert agrees(read, relabels) is True
    assert agrees(changed, relabels) is None


def test_choices_are_read_from_their_file(tmp_path: Path) -> None:
    path = tmp_path / "relabels.jsonl"
    assert read_relabels(path) == {}
    path.write_text(json.dumps({"pair": "a-001.1", "mark": "0", "choice": "X", "reader": "r"}))
    assert read_relabels(path)["a-001.1"].choice == "X"
    path.write_text(json.dumps({"pair": "a-001.1", "mark": "0", "choice": "Z", "reader": "r"}))
    with pytest.raises(CorpusInvalid, match=r"relabels\.jsonl, line 1: choice"):
        read_relabels(path)
    line = json.dumps({"pair": "a-001.1", "mark": "0", "choice": "X", "reader": "r"})
    path.write_text(f"{line}\n{line}\n")
    with pytest.raises(CorpusInvalid, match=r"line 2: a-001\.1 stands further up"):
        read_relabels(path)
