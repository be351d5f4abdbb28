"""Texts that were written for judge or examiner alone: nothing comes twice, and neither learns from the other's."""

import json
from collections import Counter
from pathlib import Path

import pytest

from rubric.corpus.examiner_pairs import read_examiner_pairs
from rubric.corpus.no_replies import EXAMINER_NO_REPLIES, JUDGE_NO_REPLIES, read_no_replies
from rubric.corpus.opposed import read_opposed_talks
from rubric.corpus.records import CorpusInvalid, Fault
from training.data.judge_probes import Family, read_decent, read_probes

MINE_FROM_WORDS = 10  # anybody may write "How did it go?"


def test_judge_and_examiner_share_no_text() -> None:
    judge = {one.text for one in read_no_replies(JUDGE_NO_REPLIES)}
    examiner = {one.text for one in read_no_replies(EXAMINER_NO_REPLIES)}
    assert min(len(judge), len(examiner)) >= 200
    assert not judge & examiner
    pairs = {text for pair in read_examiner_pairs() for text in (*pair.context, pair.better, pair.worse)}
    talks = {text for talk in read_opposed_talks() for text in (*talk.context, *talk.replies)}
    assert not {text for text in pairs & talks if len(text.split()) > MINE_FROM_WORDS}


def test_none_of_them_is_of_a_family_that_the_probes_measure() -> None:
    written = [*read_no_replies(JUDGE_NO_REPLIES), *read_no_replies(EXAMINER_NO_REPLIES)]
    assert not {one.family.replace("-", "_") for one in written} & {family.value for family in Family}
    probed = {probe.text for probe in read_probes()} | {one.reply for one in read_decent()}
    assert not probed & {one.text for one in written}


def test_the_better_reply_of_the_examiners_pairs_is_not_the_longer_one_and_no_fault_is_rare() -> None:
    pairs = read_examiner_pairs()
    assert len(pairs) >= 400
    shorter = sum(len(pair.better) < len(pair.worse) for pair in pairs) / len(pairs)
    assert 0.4 <= shorter <= 0.6
    faults = Counter(pair.fault for pair in pairs)
    assert min(faults[fault] for fault in Fault) >= len(pairs) / 40


@pytest.mark.parametrize("context", [["Hi", "Hello"], []])
def test_a_pair_to_which_no_visitor_spoke_is_refused(tmp_path: Path, context: list[str]) -> None:
    line = {"id": "x-1", "context": context, "better": "How late?", "worse": "Well.", "fault": "vague"}
    (tmp_path / "x.jsonl").write_text(json.dumps(line))
    with pytest.raises(CorpusInvalid, match=r"x\.jsonl, line 1"):
        read_examiner_pairs(tmp_path)
