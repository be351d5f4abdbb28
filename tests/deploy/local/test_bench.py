"""The benches' door: what is started for them, and what is said where it does not start."""

from pathlib import Path

import pytest

from deploy.local import bench
from deploy.local.__main__ import COMMANDS
from deploy.local.bench import EncoderNotStarted, start_encoder


def test_every_bench_has_a_command() -> None:
    assert {f"bench-{name}" for name in bench.BENCHES} < set(COMMANDS)


def test_an_encoder_that_cannot_start_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(EncoderNotStarted, match="ended with 2"), start_encoder(tmp_path):
        pass


def test_a_bench_whose_encoder_does_not_start_fails_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAPPORT_ENCODER_FOLDER", str(tmp_path))
    assert bench.main("judge") == 1
    assert "before it answered" in capfd.readouterr().err
