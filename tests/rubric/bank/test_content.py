"""Claims about the content of the bank: size, shares, coverage, and texts that no rule speaks against."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from rubric.bank import BankCriterion, Kind, Setting, load_bank
from rubric.criteria import Criterion, Dimension, Polarity, Stage
from rubric.fallback import GENERIC_CRITERIA
from rubric.rules import copied_criteria, forbidden_rewards, lint_criteria, words_of
from rubric.states import CORE_EMOTIONS, Emotion, Need

BANK = load_bank()
SAFE_CUE = "my sister's old flat"
DUPLICATE_JACCARD = 0.6
AVOID_SHARE = (0.20, 0.30)
LEAST_WANTS = 2  # a rubric has at least two criteria in each dimension
NAMED_EMOTIONS = (*CORE_EMOTIONS, Emotion.FRUSTRATION, Emotion.JOY, Emotion.PRIDE, Emotion.RELIEF, Emotion.CALM)


def filled(entry: BankCriterion) -> Criterion:
    return entry.to_criterion(entry.id, cue=SAFE_CUE)


def wants(*, dimension: Dimension, setting: Setting) -> tuple[BankCriterion, ...]:
    return BANK.select(dimension=dimension, polarity=Polarity.WANT, setting=setting)


# ---- counts and shares ------------------------------------------------------------------------------------------


def test_the_bank_holds_what_a_choice_needs() -> None:
    entries = BANK.criteria
    assert len(entries) >= 250
    assert sum(entry.kind is Kind.STATE for entry in entries) >= 120
    assert sum(entry.setting is Setting.SERVICE for entry in entries) >= 36
    assert sum(entry.slot is not None for entry in entries) >= 15


def test_about_a_quarter_says_what_to_avoid() -> None:
    low, high = AVOID_SHARE
    share = len(BANK.select(polarity=Polarity.AVOID)) / len(BANK.criteria)
    assert low <= share <= high


@pytest.mark.parametrize("dimension", Dimension)
def test_each_dimension_holds_about_a_third(dimension: Dimension) -> None:
    assert 0.28 <= len(BANK.select(dimension=dimension)) / len(BANK.criteria) <= 0.38


def test_no_id_is_in_use_and_retired() -> None:
    assert BANK.retired.isdisjoint(BANK.by_id)


# ---- texts ------------------------------------------------------------------------------------------------------


def test_no_text_rewards_what_is_forbidden_or_draws_a_warning() -> None:
    for entry in BANK.criteria:
        criterion = filled(entry)
        assert not forbidden_rewards(criterion), entry.id
        assert not lint_criteria([criterion])


def test_texts_are_statements_about_the_reply_without_a_full_stop() -> None:
    for entry in BANK.criteria:
        assert 8 <= len(entry.text) <= 140, entry.id
        assert entry.text[0].isupper(), entry.id
        assert entry.text[-1] not in ".!?", entry.id
        verb = entry.text.removeprefix("On a sign of danger, ").split()[0].rstrip(",")
        assert verb.endswith("s"), f"{entry.id} begins with no verb in the present tense"


def test_no_two_texts_say_nearly_the_same() -> None:
    bags = [(entry.id, frozenset(words_of(entry.text))) for entry in BANK.criteria]
    near = [
        (first, second)
        for (first, one), (second, other) in combinations(bags, 2)
        if len(one & other) / len(one | other) >= DUPLICATE_JACCARD
    ]
    assert not near


def test_no_text_repeats_a_generic_criterion() -> None:
    assert not copied_criteria([filled(entry) for entry in BANK.criteria], GENERIC_CRITERIA)


# ---- coverage ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("emotion", NAMED_EMOTIONS)
def test_each_emotion_is_named_in_every_dimension(emotion: Emotion) -> None:
    for dimension in Dimension:
        named = [entry for entry in wants(dimension=dimension, setting=Setting.SUPPORT) if emotion in entry.emotions]
        assert len(named) >= LEAST_WANTS, dimension


@pytest.mark.parametrize("need", Need)
def test_each_need_is_named_in_every_dimension(need: Need) -> None:
    for dimension in Dimension:
        settings = Setting if need is Need.FIXED else (Setting.SUPPORT,)
        assert any(
            need in entry.needs for setting in settings for entry in wants(dimension=dimension, setting=setting)
        ), dimension


@pytest.mark.parametrize("stage", Stage)
def test_each_stage_is_named_in_every_dimension(stage: Stage) -> None:
    for dimension in Dimension:
        assert any(stage in entry.stages for entry in wants(dimension=dimension, setting=Setting.SUPPORT)), dimension


@pytest.mark.parametrize("setting", Setting)
def test_no_state_lacks_criteria_to_choose_from(setting: Setting) -> None:
    for dimension in Dimension:
        offered = wants(dimension=dimension, setting=setting)
        slotless = [entry for entry in offered if entry.slot is None]
        for stage, emotion, need in product(Stage, Emotion, Need):
            fitting = [entry for entry in slotless if entry.fits(stage=stage, emotion=emotion, need=need)]
            assert len(fitting) >= LEAST_WANTS, (dimension, stage, emotion, need)


def test_advice_before_the_feeling_is_not_counted_against_a_plain_answer() -> None:
    early_advice = [entry for entry in BANK.criteria if entry.text.startswith("Gives advice before")]
    assert early_advice
    assert all(Need.FACTS not in entry.needs and entry.needs for entry in early_advice)


def test_no_support_criterion_for_an_emotion_asks_questions_of_somebody_who_wants_peace() -> None:
    for emotion in NAMED_EMOTIONS:
        fitting = BANK.select(polarity=Polarity.WANT, setting=Setting.SUPPORT, emotion=emotion, need=Need.SPACE)
        asking = [entry for entry in fitting if entry.text.startswith("Asks") and entry.emotions]
        assert all("danger" in entry.text for entry in asking), emotion


def test_no_support_criterion_for_an_emotion_offers_steps_to_somebody_who_wants_to_be_heard() -> None:
    for emotion in (*CORE_EMOTIONS, Emotion.FRUSTRATION):
        fitting = BANK.select(
            dimension=Dimension.PROACTIVE,
            polarity=Polarity.WANT,
            setting=Setting.SUPPORT,
            emotion=emotion,
            need=Need.HEARD,
        )
        openings = ("Offers", "Suggests", "Proposes")
        assert not [entry.id for entry in fitting if entry.text.startswith(openings) and entry.emotions], emotion


def test_danger_is_taken_up_answered_with_real_help_and_never_with_a_promise() -> None:
    by_polarity = {
        polarity: [entry.text for entry in BANK.select(polarity=polarity) if "On a sign of danger" in entry.text]
        for polarity in Polarity
    }
    assert any("helpline" in text for text in by_polarity[Polarity.WANT])
    assert any("seriously" in text for text in by_polarity[Polarity.WANT])
    assert any("promises that somebody is on the way" in text for text in by_polarity[Polarity.AVOID])
