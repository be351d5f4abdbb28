"""Every criterion of the bank has one opposite, and the file is read strictly."""

import json
from pathlib import Path

import pytest

from rubric.bank import load_bank
from rubric.corpus.opposites import read_opposites
from rubric.corpus.records import CorpusInvalid


def test_every_criterion_of_the_bank_has_one_and_none_repeats_it() -> None:
    opposites, bank = read_opposites(), load_bank().by_id
    assert set(opposites) == set(bank)
    assert all(text.casefold() != bank[identifier].text.casefold() for identifier, text in opposites.items())


def test_slots_are_kept() -> None:
    bank = load_bank().by_id
    assert all(("{cue}" in text) is ("{cue}" in bank[identifier].text) for identifier, text in read_opposites().items())


@pytest.mark.parametrize(
    "lines",
    [
        [{"criterion": "c-001", "text": "Says nothing of it"}] * 2,
        [{"criterion": "c-001"}],
        [{"criterion": "c-001", "text": "Says nothing of it", "level": 1}],
    ],
)
def test_a_bad_line_refuses_the_file(tmp_path: Path, lines: list[dict[str, object]]) -> None:
    path = tmp_path / "opposites.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    with pytest.raises(CorpusInvalid):
        read_opposites(path)
