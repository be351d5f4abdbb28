"""One whole export for every test of this folder: it takes a minute."""

from pathlib import Path

import pytest

from rubric.serve.bundle import Bundle
from tests.training.recipes.judges import write_weights
from training.recipes.encoder_export import export_bundle


@pytest.fixture(scope="session")
def judge_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The committed screen and a judge of drawn weights."""
    return write_weights(tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="session")
def exported(judge_weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """What the encoder process would serve of them."""
    return export_bundle(tmp_path_factory.mktemp("export"), weights=judge_weights)
