"""The real data sets, where they lie beside the checkout: counts as published, and none of their text among ours."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from training.bench.support_baselines import measure
from training.data.counsel_chat import COUNSEL_CHAT, preference_pairs
from training.data.empathetic_dialogues import EMPATHETIC_DIALOGUES
from training.data.epitome import EPITOME
from training.data.esconv import ESCONV
from training.data.overlap import known_runs, overlaps
from training.data.profiles import EMOTION_CHANGES, PROFILES
from training.data.reactions import EMPATHIC_REACTIONS, GOEMOTIONS
from training.data.reading import Loader, load_file
from training.data.sources import SOURCES, Use, manifest_of, public_data_folder, source_named
from training.data.support_rows import support_rows

FOLDER = public_data_folder() or Path("nowhere")
ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the public data sets are not beside this checkout")

LOADERS: dict[str, tuple[Loader[Any], tuple[int, ...]]] = {
    "esconv": (ESCONV, (910, 195, 195)),
    "empathetic_dialogues": (EMPATHETIC_DIALOGUES, (19_541, 2_769, 2_546)),
    "epitome": (EPITOME, (3_023, 3_023, 3_023)),
    "goemotions": (GOEMOTIONS, (43_410, 5_426, 5_427)),
    "counsel_chat": (COUNSEL_CHAT, (2_129,)),
    "empathic_reactions": (EMPATHIC_REACTIONS, (1_860,)),
    "rlver_train": (PROFILES, (500,)),
    "rlver_test": (PROFILES, (100,)),
    "sage": (EMOTION_CHANGES, (9_425,)),
}


@pytest.fixture(scope="module")
def records() -> dict[str, list[tuple[Any, ...]]]:
    """Every record of every source, file by file; read once for all these tests."""
    return {
        name: [load_file(path, loader) for path in source_named(name).paths(FOLDER)]
        for name, (loader, _) in LOADERS.items()
    }


Records: TypeAlias = dict[str, list[tuple[Any, ...]]]


def test_every_source_has_a_loader_and_the_counts_of_its_readme(records: Records) -> None:
    assert set(LOADERS) == {source.name for source in SOURCES}
    for name, (_, expected) in LOADERS.items():
        assert tuple(len(file) for file in records[name]) == expected, name


def test_a_manifest_names_licence_use_hash_and_rows() -> None:
    source = source_named("rlver_test")
    manifest = manifest_of(source.paths(FOLDER)[0], source=source, loader=PROFILES)
    assert (manifest.licence, manifest.use, manifest.rows) == ("MIT", Use.BENCHMARK, 100)
    assert len(manifest.sha256) == 64


def test_no_profile_is_in_train_and_test(records: Records) -> None:
    (train,), (test,) = records["rlver_train"], records["rlver_test"]
    assert {person.id for person in train}.isdisjoint(person.id for person in test)
    assert Counter(person.intention for person in train).most_common(1)[0][1] == 66
    assert all({"name", "age", "job"} <= set(person.persona) for person in train)


def test_counsellors_answers_make_2523_pairs_and_no_question_is_in_two_splits(records: Records) -> None:
    (answers,) = records["counsel_chat"]
    assert len(list(preference_pairs(answers))) == 2_523
    assert len({each.group for each in answers}) == len({(each.group, each.split) for each in answers}) == 815


def test_the_baselines_on_esconv_come_out_again(records: Records) -> None:
    train, _, test = ([row for each in file for row in support_rows(each)] for file in records["esconv"])
    figures = measure(train, test)
    assert (figures.train_rows, figures.test_rows) == (8_357, 1_917)
    assert figures.uniform == pytest.approx(1.099, abs=0.001)
    assert figures.fixed == pytest.approx(1.085, abs=0.001)
    assert figures.stage == pytest.approx(0.993, abs=0.003)
    assert figures.stage_and_strategies == pytest.approx(0.957, abs=0.003)


def test_nothing_that_may_not_ship_stands_in_a_committed_text(records: Records) -> None:
    kept_out = [source.name for source in SOURCES if source.use in {Use.LOCAL, Use.BENCHMARK}]
    known = known_runs(
        text for name in kept_out for file in records[name] for record in file for text in _texts_of(record)
    )
    assert len(known) > 500_000
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    ours = [ROOT / name for name in listed.splitlines() if Path(name).suffix in {".jsonl", ".md", ".py", ".ts", ".txt"}]
    assert len(ours) > 300
    found = [
        hit
        for path in ours
        if path.is_file()
        for hit in overlaps(os.fspath(path.relative_to(ROOT)), path.read_text(encoding="utf-8"), known=known)
    ]
    assert found == []


def _texts_of(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts_of(each)]
    if isinstance(value, list | tuple):
        return [text for each in value for text in _texts_of(each)]
    dumped = getattr(value, "model_dump", None)
    return _texts_of(dumped()) if dumped else []
