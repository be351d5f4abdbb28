"""Mechanism levels: folds against EPITOME's labels, and what ships against labels and seekers' surveys."""

from pathlib import Path

import pytest

from rubric import Role
from tests.fakes.judges import instruments, write_lines
from tests.training.data import files
from training.bench.judge_mechanisms import (
    MECHANISMS,
    measure_mechanisms,
    measure_transfer,
    read_epitome,
    read_surveyed,
    replies_of,
)
from training.bench.judge_rows import Row
from training.data.esconv import ESCONV
from training.data.reading import load_file

NAMES = ("emotional-reactions", "interpretations", "explorations")
# Pair -> levels of the three mechanisms; posts 1 and 2 with two replies each.
PAIRS = {"s1.r1": (0, 0, 2), "s1.r2": (1, 0, 0), "s2.r3": (2, 2, 0), "s2.r4": (0, 2, 1)}


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """A folder with EPITOME's three files and an ESConv of four conversations."""
    (tmp_path / "epitome").mkdir()
    (tmp_path / "esconv").mkdir()
    for at, name in enumerate(NAMES):
        rows = []
        for pair, levels in PAIRS.items():
            seeker, reply = pair.split(".")
            rows.append(
                files.empathy(sp_id=seeker, rp_id=reply, level=str(levels[at]), response_post=f"Reply {reply}.")
            )
        files.write_csv(tmp_path / "epitome" / f"{name}-reddit.csv.gz", rows)
    surveyed = [
        files.esconv(
            situation=f"Number {score}.",
            survey_score={"seeker": {"empathy": str(score)}, "supporter": {}},
            dialog=[
                {"text": "They left me off.", "speaker": "usr"},
                {"text": "!" * score, "speaker": "sys", "strategy": "Others"},
            ],
        )
        for score in (1, 3, 5)
    ]
    files.write_jsonl(tmp_path / "esconv" / "esconv_valid.jsonl.gz", surveyed)
    files.write_jsonl(tmp_path / "esconv" / "esconv_test.jsonl.gz", [files.esconv()])  # its seeker rated nothing
    return tmp_path


def by_key(rows: list[Row]) -> dict[str, Row]:
    return {row.goal.key: row for row in rows}


def test_the_three_files_are_joined_by_pair(public: Path) -> None:
    assert {one.id: one.levels for one in read_epitome(public)} == PAIRS


async def test_folds_are_compared_with_the_labels(public: Path, tmp_path: Path) -> None:
    found = [
        {"pair": pair, "fold": 0, "mechanisms": [[float(level == one) for one in range(3)] for level in levels]}
        for pair, levels in PAIRS.items()
    ]
    found[0]["mechanisms"] = [[0, 1, 0], [1, 0, 0], [0, 0, 1]]  # one mistake: s1.r1 has no emotional reaction
    write_lines(tmp_path / "judge" / "epitome.jsonl", found)
    rows = by_key(await measure_mechanisms(instruments(predictions=tmp_path, public_data=public)))
    reaction = rows["mechanisms.judge_emotional_reaction"]
    assert reaction.found is not None
    # Level 0: one of two, F1 2/3. Level 1: one hit, two predicted, F1 2/3. Level 2: 1.
    assert reaction.found.estimate == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)
    assert reaction.n == len(PAIRS)
    assert rows["mechanisms.judge_exploration"].is_met
    assert rows["mechanisms.examiner_exploration"].is_met is None  # no predictions of the examiner


async def test_without_public_data_nothing_is_measured_and_the_variable_is_named() -> None:
    rows = [*await measure_mechanisms(instruments()), *await measure_transfer(instruments())]
    assert len(rows) == 2 * len(MECHANISMS) + 2 * (len(MECHANISMS) + 1)
    assert all(row.found is None and "RAPPORT_PUBLIC_DATA" in row.note for row in rows)


async def test_what_ships_is_set_beside_labels_and_surveys(public: Path) -> None:
    tools = instruments(quality=lambda _context, reply: float(reply.count("!")), public_data=public)
    rows = by_key(await measure_transfer(tools))
    survey, reaction = rows["transfer.examiner_esconv"], rows["transfer.examiner_emotional_reaction"]
    assert survey.found is not None
    assert survey.found.estimate == pytest.approx(1)
    assert survey.n == 3
    assert rows["transfer.judge_esconv"].found is None  # the same level everywhere is no order
    assert reaction.found is not None
    assert reaction.found.estimate == 0.5  # even probabilities tell nothing apart


def test_only_conversations_with_a_survey_count(public: Path) -> None:
    assert [one.survey.empathy for one in read_surveyed(public)] == [1, 3, 5]


def test_an_opening_answers_nobody_and_neighbours_are_one_reply(public: Path) -> None:
    conversation = load_file(public / "esconv" / "esconv_test.jsonl.gz", ESCONV)[0]
    found = list(replies_of(conversation))
    assert all(context.utterances[-1].role is Role.USER for context, _ in found)
    assert [reply.split("\n\n")[0] for _, reply in found] == ["Since when?", "Not to be told is hard.", "Good night."]
