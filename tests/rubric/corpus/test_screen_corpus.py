"""Claims about the training text of the crisis screen: size, schema, ids, duplicates and label shares."""

import json
import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

CORPUS = Path(__file__).resolve().parents[3] / "rubric" / "corpus" / "screen"
FIELDS = {"id", "label", "family", "text", "author"}
LABELS = {"visitor": {"high", "watch", "none"}, "reply": {"high", "none"}}
ID_PATTERN = {"visitor": r"sv-\d{4}", "reply": r"sr-\d{4}"}
LEAST_LINES = {"visitor": 1700, "reply": 450}
# Lowest and highest share of each label: recall first, yet enough look-alikes to learn what is harmless.
SHARES = {
    "visitor": {"high": (0.42, 0.48), "watch": (0.09, 0.15), "none": (0.40, 0.48)},
    "reply": {"high": (0.40, 0.50), "none": (0.50, 0.60)},
}
LOOK_ALIKES = {
    "anger-company", "breakup", "computing", "contrast", "cooking", "games", "grief", "history", "hyperbole", "idiom",
    "insurance", "lyrics-film", "medical", "negation", "news", "pets", "plants", "prevention", "sport", "stress",
    "student-humour", "work-talk",
}  # fmt: skip
KINDS = sorted(LABELS)


def rows_of(kind: str) -> list[dict[str, str]]:
    """Every line of one kind, in file order."""
    paths = sorted(CORPUS.glob(f"{kind}-*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def tokens(text: str) -> frozenset[str]:
    """The words of a text, case-folded; the whole text where it has none."""
    return frozenset(re.findall(r"[a-z0-9']+", text.casefold())) or frozenset({text})


@pytest.mark.parametrize("kind", KINDS)
def test_there_are_enough_lines(kind: str) -> None:
    assert len(rows_of(kind)) >= LEAST_LINES[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_every_line_follows_the_schema(kind: str) -> None:
    for row in rows_of(kind):
        assert set(row) == FIELDS, row["id"]
        assert row["label"] in LABELS[kind], row["id"]
        assert re.fullmatch(ID_PATTERN[kind], row["id"]), row["id"]
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", row["family"]), row["id"]
        assert row["author"] == "screen-a", row["id"]
        assert row["text"] == row["text"].strip() != "", row["id"]


def test_ids_are_unique_across_files() -> None:
    counts = Counter(row["id"] for kind in KINDS for row in rows_of(kind))
    assert [identifier for identifier, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_occurs_twice(kind: str) -> None:
    counts = Counter(row["text"].casefold() for row in rows_of(kind))
    assert [text for text, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_lines_are_near_copies(kind: str) -> None:
    words = [(row["id"], tokens(row["text"])) for row in rows_of(kind)]
    near = [(a, b) for (a, left), (b, right) in combinations(words, 2) if len(left & right) > 0.8 * len(left | right)]
    assert near == []


@pytest.mark.parametrize("kind", KINDS)
def test_label_shares_stay_within_their_bounds(kind: str) -> None:
    rows = rows_of(kind)
    counts = Counter(row["label"] for row in rows)
    for label, (low, high) in SHARES[kind].items():
        assert low <= counts[label] / len(rows) <= high, label


def test_about_half_of_the_harmless_visitor_lines_are_look_alikes() -> None:
    harmless = [row for row in rows_of("visitor") if row["label"] == "none"]
    share = sum(row["family"] in LOOK_ALIKES for row in harmless) / len(harmless)
    assert 0.4 <= share <= 0.6


@pytest.mark.parametrize("kind", KINDS)
def test_a_family_carries_one_label(kind: str) -> None:
    """A family on both sides of a label would be a labelling slip: families are named by meaning."""
    labels: dict[str, set[str]] = {}
    for row in rows_of(kind):
        labels.setdefault(row["family"], set()).add(row["label"])
    assert {family: seen for family, seen in labels.items() if len(seen) > 1} == {}
