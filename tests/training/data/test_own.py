"""Our own text through the same doors as the public data: whole files, ids, groups, manifests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric import Episode, Rollout, Turn, to_line
from rubric.corpus.records import CONVERSATIONS, read_corpus
from tests.rubric.corpus.conversations import fields
from tests.training.data import files
from training.data.own import CORPUS, EPISODES, OWN_CORPUS
from training.data.reading import DataFileInvalid, load_file, load_files, stream_file
from training.data.sources import Use, manifest_of

EPISODE = Episode(conversation_id="c1", visitor_key="v1", split_bucket=7, turns=(Turn(visitor="שלום 👋", reply="Hi."),))
ROLLOUT = Rollout(rollout_id="r1", simulator="s", group_key="p1", seed=1, turns=(Turn(visitor="Hi.", reply="Hello."),))


def test_the_committed_corpus_loads_file_by_file_with_its_manifest() -> None:
    paths = OWN_CORPUS.paths(CONVERSATIONS)
    loaded = load_files(paths, CORPUS)
    assert loaded.refused == ()
    assert sum(len(records) for records in loaded.records.values()) == len(read_corpus())
    manifest = manifest_of(paths[0], source=OWN_CORPUS, loader=CORPUS)
    assert (manifest.licence, manifest.use, manifest.rows) == ("Apache-2.0", Use.SHIP, 8)


def test_a_bad_conversation_refuses_its_file_by_row_without_its_text(tmp_path: Path) -> None:
    path = files.write_jsonl(tmp_path / "a.jsonl", [fields(), fields(id="a-002", emotion="kettle")])
    with pytest.raises(DataFileInvalid, match=r"a\.jsonl, row 2: emotion") as refused:
        load_file(path, CORPUS)
    assert "kettle" not in str(refused.value)


def test_episodes_and_rollouts_load_with_what_splits_keep_together(tmp_path: Path) -> None:
    path = files.write(tmp_path / "e.jsonl.gz", f"{to_line(EPISODE)}\n\n{to_line(ROLLOUT)}\n")
    one, other = stream_file(path, EPISODES)
    assert (one.id, one.group, one.episode) == ("c1", "v1", EPISODE)
    assert (other.id, other.group) == ("r1", "p1")


def damaged(name: str) -> str:
    row = json.loads(to_line(EPISODE))
    return json.dumps(row | {name: None})


@pytest.mark.parametrize("name", ["schema", "kind", "conversation_id", "split_bucket", "turns"])
def test_a_damaged_episode_is_refused_with_its_row(tmp_path: Path, name: str) -> None:
    path = files.write(tmp_path / "e.jsonl", f"{to_line(EPISODE)}\n{damaged(name)}\n")
    with pytest.raises(DataFileInvalid, match=r"e\.jsonl, row 2"):
        load_file(path, EPISODES)


def test_an_episode_given_twice_or_cut_short_is_refused(tmp_path: Path) -> None:
    twice = files.write(tmp_path / "twice.jsonl", f"{to_line(EPISODE)}\n{to_line(EPISODE)}\n")
    with pytest.raises(DataFileInvalid, match="row 2: its id"):
        load_file(twice, EPISODES)
    cut = files.write(tmp_path / "cut.jsonl", to_line(EPISODE)[:-5])
    with pytest.raises(DataFileInvalid, match="row 1"):
        load_file(cut, EPISODES)
