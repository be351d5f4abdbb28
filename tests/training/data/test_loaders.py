"""Every loader: a good file becomes typed records, each kind of bad file is one named error with file and row."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.corpus.records import SupportStrategy
from rubric.states import Area, Emotion
from tests.training.data import files
from training.data.counsel_chat import COUNSEL_CHAT, preference_pairs
from training.data.empathetic_dialogues import EMPATHETIC_DIALOGUES
from training.data.epitome import EPITOME
from training.data.esconv import ESCONV, FAILED_ESCONV
from training.data.profiles import EMOTION_CHANGES, PROFILES, Intention, intention_of, persona_fields
from training.data.reactions import EMPATHIC_REACTIONS, GOEMOTIONS
from training.data.reading import DataFileInvalid, Loader, bucket_of, load_file, load_files, stream_file

Writer = Callable[[Path, list[files.Fields]], Path]


def write_tsv(path: Path, rows: list[files.Fields]) -> Path:
    return files.write(path, "".join("\t".join(map(str, row.values())) + "\n" for row in rows))


def write_list(path: Path, rows: list[files.Fields]) -> Path:
    return files.write(path, json.dumps(rows))


class Case(NamedTuple):
    """A data set: how a file of it is written and read, a good row, what a second row must change, its text field."""

    loader: Loader[Any]
    write: Writer
    good: files.Fields
    other: files.Fields
    text: str


COMMENT = {"text": "Well done!", "label_ids": "0,4", "id": "c1"}
CASES = {
    "esconv": Case(ESCONV, files.write_jsonl, files.esconv(), {}, "situation"),
    "failed_esconv": Case(FAILED_ESCONV, write_list, files.failed_esconv(), {}, "situation"),
    "empathetic_dialogues": Case(
        EMPATHETIC_DIALOGUES, files.write_jsonl, files.dialogue(), {"conv_id": "hit:1"}, "situation"
    ),
    "epitome": Case(EPITOME, files.write_csv, files.empathy(), {"rp_id": "r2"}, "response_post"),
    "goemotions": Case(GOEMOTIONS, write_tsv, COMMENT, {"id": "c2"}, "text"),
    "counsel_chat": Case(COUNSEL_CHAT, files.write_csv, files.answer(), {}, "answerText"),
    "empathic_reactions": Case(EMPATHIC_REACTIONS, files.write_csv, files.reaction(), {"message_id": "m2"}, "essay"),
    "profiles": Case(PROFILES, files.write_jsonl, files.profile(), {"id": "p2"}, "scene"),
    "emotion_changes": Case(EMOTION_CHANGES, files.write_jsonl, files.change(), {"turn": 2}, "model"),
}
EVERY = pytest.mark.parametrize("name", CASES)


def two_rows(case: Case, **changed: object) -> list[files.Fields]:
    return [case.good, case.good | case.other | changed]


def refusal(path: Path, case: Case) -> DataFileInvalid:
    with pytest.raises(DataFileInvalid) as refused:
        load_file(path, case.loader)
    with pytest.raises(DataFileInvalid):
        stream_file(path, case.loader)  # before it gives out a single record
    assert path.name in str(refused.value)
    return refused.value


@EVERY
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_good_file_loads_and_streams_the_same_records(tmp_path: Path, name: str, ending: str) -> None:
    case = CASES[name]
    path = case.write(tmp_path / f"{name}{ending}", two_rows(case))
    records = load_file(path, case.loader)
    assert len({record.id for record in records}) == 2
    assert tuple(stream_file(path, case.loader)) == records
    assert all(record.group for record in records)


@EVERY
def test_emoji_and_right_to_left_text_stay_as_they_are(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    text = "שלום 👩‍👩‍👧 مرحبا"
    path = case.write(tmp_path / name, two_rows(case, **{case.text: text}))
    assert text in load_file(path, case.loader)[1].model_dump().values()


@EVERY
def test_an_empty_text_is_refused_with_its_row(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    assert refusal(case.write(tmp_path / name, two_rows(case, **{case.text: "  "})), case).row == 2


@EVERY
def test_a_row_without_a_field_is_refused_with_its_row(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    short = {field: value for field, value in case.good.items() if field != case.text}
    if case.write in {files.write_csv, write_tsv}:  # such a row has less columns than the others
        whole = case.write(tmp_path / "whole", two_rows(case)).read_text().rstrip("\r\n")
        separator = "," if case.write is files.write_csv else "\t"
        path = files.write(tmp_path / name, whole[: whole.rindex(separator)] + "\n")
    else:
        path = case.write(tmp_path / name, [case.good, short])
    assert refusal(path, case).row == 2


@EVERY
def test_a_cut_gzip_file_is_refused(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    path = case.write(tmp_path / f"{name}.gz", two_rows(case))
    path.write_bytes(path.read_bytes()[:-12])
    assert "cut or damaged" in refusal(path, case).reason


@EVERY
def test_a_file_of_another_encoding_or_none_is_refused(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    path = tmp_path / name
    path.write_bytes('{"a": "über"}\n'.encode("latin-1"))
    assert "UTF-8" in refusal(path, case).reason
    assert "cannot be read" in refusal(tmp_path / "nowhere", case).reason


@pytest.mark.parametrize("name", ["empathetic_dialogues", "goemotions", "empathic_reactions", "profiles"])
def test_an_id_given_twice_is_refused(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    assert "id" in refusal(case.write(tmp_path / name, [case.good, case.good]), case).reason


SPOILT: dict[str, list[files.Fields]] = {
    "esconv": [
        {"emotion_type": "meh"},
        {"problem_type": 7},
        {"survey_score": {"seeker": {"empathy": "9"}}},
        {"dialog": "none"},
        {"dialog": []},
        {"dialog": [{"text": "hi", "speaker": "usr", "strategy": "Question"}]},
        {"dialog": [{"text": "hi", "speaker": "sys", "strategy": "Hypnosis"}]},
        {"dialog": [{"text": "hi", "speaker": "sys"}]},
        {"dialog": ["hi"]},
    ],
    "epitome": [{"level": "3"}, {"level": "nan"}, {"level": ""}],
    "goemotions": [{"label_ids": "28"}, {"label_ids": ""}, {"label_ids": "x"}],
    "counsel_chat": [{"upvotes": "-1"}, {"split": "other"}],
    "empathic_reactions": [{"empathy": "nan"}, {"empathy": "8"}, {"distress": "inf"}],
    "profiles": [{"main_cha": "?"}, {"task": "be a friend"}, {"cha_group": []}, {"cha_group": "modest"}],
    "emotion_changes": [{"emotion_after": 1}, {"turn": 0}, {"change": "much"}],
}


@pytest.mark.parametrize(("name", "changed"), [(name, each) for name in SPOILT for each in SPOILT[name]])
def test_a_wrong_value_is_refused_with_its_row(tmp_path: Path, name: str, changed: files.Fields) -> None:
    case = CASES[name]
    assert refusal(case.write(tmp_path / name, two_rows(case, **changed)), case).row == 2


@pytest.mark.parametrize("name", ["esconv", "empathetic_dialogues", "profiles", "emotion_changes"])
@pytest.mark.parametrize("line", ['{"a": NaN}', "[1]", "{", "{" * 50, '{"a": 1, "a": 2}'])
def test_a_line_that_is_no_json_object_is_refused(tmp_path: Path, name: str, line: str) -> None:
    case = CASES[name]
    good = json.dumps(case.good)
    assert refusal(files.write(tmp_path / name, f"{good}\n\n{line}\n"), case).row == 3


@pytest.mark.parametrize("text", ["{}", "[", "[1]", '[{"a": NaN}]'])
def test_failed_conversations_are_one_list_of_objects(tmp_path: Path, text: str) -> None:
    refusal(files.write(tmp_path / "failed.json", text), CASES["failed_esconv"])


def test_an_error_repeats_nothing_of_the_text(tmp_path: Path) -> None:
    case = CASES["esconv"]
    secret = "the name of my sister"
    path = case.write(tmp_path / "f", [files.esconv(situation=secret, emotion_type=secret)])
    assert secret not in str(refusal(path, case))


def test_a_bad_file_is_refused_whole_and_its_neighbour_still_loads(tmp_path: Path) -> None:
    good = files.write_jsonl(tmp_path / "good", [files.esconv()])
    bad = files.write_jsonl(tmp_path / "bad", [files.esconv(), files.esconv(dialog=[])])
    loaded = load_files([bad, good], ESCONV)
    assert list(loaded.records) == [good]
    assert [error.path for error in loaded.refused] == [bad]


def test_a_conversation_of_500_turns_loads(tmp_path: Path) -> None:
    said = [{"text": f"Line {n}.", "speaker": "usr"} for n in range(1_000)]
    (conversation,) = load_file(files.write_jsonl(tmp_path / "long", [files.esconv(dialog=said)]), ESCONV)
    assert len(conversation.utterances) == 1_000


def test_both_shapes_of_esconv_give_the_same_record(tmp_path: Path) -> None:
    (plain,) = load_file(files.write_jsonl(tmp_path / "plain", [files.esconv()]), ESCONV)
    (failed,) = load_file(write_list(tmp_path / "failed", [files.failed_esconv()]), FAILED_ESCONV)
    assert (plain.emotion, plain.area) == (failed.emotion, failed.area) == (Emotion.ANXIETY, Area.JOB)
    assert (plain.survey.initial_intensity, plain.survey.empathy) == (4, None)
    assert [each.speaker for each in failed.utterances] == ["seeker", "supporter", "supporter"]
    assert failed.utterances[0].rating == 2
    assert [each.strategy for each in failed.utterances][1:] == [SupportStrategy.QUESTION, SupportStrategy.OTHER]


def test_a_pair_that_stands_twice_in_epitome_counts_once(tmp_path: Path) -> None:
    path = files.write_csv(tmp_path / "e.csv", [files.empathy(), files.empathy(level="0")])
    (only,) = load_file(path, EPITOME)
    assert (only.level, only.rationales) == (2, ("That hurts.",))


def test_answers_to_one_question_pair_up_by_their_upvotes(tmp_path: Path) -> None:
    rows = [files.answer(upvotes=votes) for votes in ("1", "3", "3")]
    rows.append(files.answer(questionID="8", upvotes="9"))
    answers = load_file(files.write_csv(tmp_path / "c.csv", rows), COUNSEL_CHAT)
    pairs = list(preference_pairs(answers))
    assert [(pair.better.id, pair.worse.id) for pair in pairs] == [
        ("counsel-2", "counsel-1"),
        ("counsel-3", "counsel-1"),
    ]


@pytest.mark.parametrize(
    "player",
    ["* name: Lin\n* age: 29\n* job:\n1. archivist\n", "* 姓名：Lin\n* 年龄：29\n\n* 职业：\n1. archivist\n"],
    ids=["english", "chinese"],
)
def test_a_persona_is_read_in_both_languages_and_punctuations(player: str) -> None:
    assert persona_fields(player) == {"name": "Lin", "age": "29", "job": "1. archivist"}


def test_an_intention_is_known_by_its_sentence() -> None:
    assert intention_of("你希望对方真诚地夸奖你在事件中的具体行为") is Intention.PRAISE
    assert intention_of("Listen to my venting") is Intention.VENTING
    assert not Intention.VENTING.is_rational
    with pytest.raises(ValueError, match="none of the eight"):
        intention_of("")


@given(st.binary(max_size=300))
def test_no_bytes_break_a_loader_in_another_way(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("bytes") / "file.gz"
    path.write_bytes(gzip.compress(content))
    for case in CASES.values():
        try:
            load_file(path, case.loader)
        except DataFileInvalid:
            continue


@given(st.text())
def test_a_group_has_one_bucket_of_a_hundred(group: str) -> None:
    assert bucket_of(group, salt="a") == bucket_of(group, salt="a")
    assert bucket_of(group, salt="a") in range(100)
