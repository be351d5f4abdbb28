"""The coverage recipe reads translations, learns from them, and sets its threshold where few English texts fall."""

from pathlib import Path

import numpy as np

from rubric.serve.coverage import BUCKETS, Coverage
from training.data.languages import LanguageText, interface_texts, own_lines
from training.recipes.coverage import FALSE_ALARMS, features, fit, share_not_covered, threshold_for
from training.recipes.encoder_export import WEIGHTS

CORPUS = WEIGHTS.parents[1] / "corpus" / "coverage"
ENGLISH = ("I went to the shop with my brother", "what shall we have for dinner tonight", "the weather is nice today")
SPANISH = ("fui a la tienda con mi hermano", "qué vamos a cenar esta noche", "hoy hace muy buen tiempo")


def texts() -> list[LanguageText]:
    return [
        *(LanguageText(language="en", text=text) for text in ENGLISH),
        *(LanguageText(language="es", text=text) for text in SPANISH),
    ]


def test_a_fit_tells_the_languages_of_its_texts_apart() -> None:
    weights, bias = fit(texts(), repeats=[1] * 6)
    coverage = Coverage(weights=weights, bias=bias, threshold=0.0)
    assert all(coverage.evidence(text) > 0 for text in ENGLISH)
    assert all(coverage.evidence(text) < 0 for text in SPANISH)


def test_training_and_serving_sum_the_same_numbers() -> None:
    weights, bias = fit(texts(), repeats=[1] * 6)
    coverage = Coverage(weights=weights, bias=bias, threshold=0.0)
    matrix = features([*ENGLISH, *SPANISH])
    assert matrix.shape == (6, BUCKETS)
    sums = matrix @ weights + bias
    assert np.allclose(sums, [coverage.evidence(text) for text in (*ENGLISH, *SPANISH)], atol=1e-4)


def test_the_threshold_leaves_the_allowed_share_of_english_below() -> None:
    weights, bias = fit(texts(), repeats=[1] * 6)
    many = [f"{text} number {number}" for number in range(100) for text in ENGLISH]
    coverage = Coverage(weights=weights, bias=bias, threshold=0.0)
    threshold = threshold_for(coverage, many)
    below = sum(coverage.evidence(text) < threshold for text in many) / len(many)
    assert below <= FALSE_ALARMS + 1 / len(many)


def test_a_share_of_nothing_is_none() -> None:
    assert share_not_covered(Coverage(np.zeros(BUCKETS, dtype=np.float32), 0.0, 0.0), []) is None


def test_the_installed_translations_give_many_languages_and_english() -> None:
    found = interface_texts()
    languages = {text.language for text in found}
    assert {"en", "es", "fr", "de", "tr", "vi"} <= languages
    assert len(languages) > 50
    assert sum("%(" in text.text for text in found) < 0.02 * len(found)


def test_own_lines_name_their_languages() -> None:
    lines = own_lines(Path(CORPUS))
    assert len({line.language for line in lines}) >= 20
    assert not any(line.is_english for line in lines)
