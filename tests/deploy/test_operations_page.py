"""docs/operations.md names every setting that the code reads, and every make target."""

import re
from pathlib import Path

import pytest

from deploy.local.place import ROOT

PAGE = (ROOT / "docs" / "operations.md").read_text()
SETTINGS = (ROOT / "deploy" / "settings.py").read_text()
ENVIRONMENT_NAME = re.compile(r"""["']((?:RAPPORT|TEST)_[A-Z_]+|DATABASE_URL|REDIS_URL|FORWARDED_ALLOW_IPS)["']""")


def names_read() -> set[str]:
    sources = [path for path in (ROOT / "deploy").rglob("*.py") if path.name != "bench_settings.py"]
    return {name for path in sources for name in ENVIRONMENT_NAME.findall(Path(path).read_text())}


@pytest.mark.parametrize("name", sorted(names_read()))
def test_every_variable_is_described(name: str) -> None:
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("name", sorted(set(re.findall(r"^(RAPPORT_[A-Z_]+) =", SETTINGS, re.MULTILINE))))
def test_every_setting_is_described(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_every_described_variable_exists() -> None:
    described = set(re.findall(r"`(RAPPORT_[A-Z_]+)`", PAGE))
    known = names_read() | set(re.findall(r"^(RAPPORT_[A-Z_]+) =", SETTINGS, re.MULTILINE))
    assert described <= known


def test_every_target_is_described() -> None:
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets is not None
    for target in targets[1].split():
        assert f"`make {target}`" in PAGE
