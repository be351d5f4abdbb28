"""English and very short texts count as covered, other languages and scripts do not."""

import json
from pathlib import Path

import pytest

from rubric.serve.coverage import Coverage, latin_share, ngram_counts
from training.recipes.encoder_export import WEIGHTS

LINES = WEIGHTS.parents[1] / "corpus" / "coverage" / "languages.jsonl"


@pytest.fixture(scope="module")
def coverage() -> Coverage:
    return Coverage.load(Path(WEIGHTS) / "coverage.safetensors")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok",
        "no",
        "hola",
        "😔",
        "???",
        "Siobhán",
        "i cant sleep again and my head wont stop",
        "ngl im so done w this week lol",
        "we had crème brûlée at the café and talked for hours",
        "URGENT: order 48213 did not arrive",
        "helpp me pls im scaredd",
    ],
)
def test_english_and_very_short_texts_are_covered(coverage: Coverage, text: str) -> None:
    assert coverage.is_covered(text)


@pytest.mark.parametrize(
    "text",
    [
        "ya no quiero seguir viviendo de esta manera",
        "je voudrais que tout s'arrête maintenant",
        "ich möchte einfach nur noch schlafen",
        "não tenho mais vontade de fazer nada",
        "我不想活了",
        "мне очень плохо",
        "لا أريد أن أعيش",
        "もう疲れた",
        "나 너무 힘들어",
        "मैं थक गया हूँ",
    ],
)
def test_other_languages_and_scripts_are_not_covered(coverage: Coverage, text: str) -> None:
    assert not coverage.is_covered(text)


def test_nearly_all_own_lines_in_other_languages_are_found(coverage: Coverage) -> None:
    rows = [json.loads(line) for line in LINES.read_text("utf-8").splitlines()]
    long_enough = [row["text"] for row in rows if latin_share(row["text"])[0] >= 12]
    found = sum(not coverage.is_covered(text) for text in long_enough)
    assert found >= 0.98 * len(long_enough)


def test_links_handles_and_digits_say_nothing() -> None:
    assert ngram_counts("hello") == ngram_counts("hello https://example.org @someone #tag 123")


def test_a_long_text_is_judged_by_its_beginning(coverage: Coverage) -> None:
    assert coverage.is_covered("the quick brown fox is asleep " * 100 + "no quiero vivir " * 5000)
