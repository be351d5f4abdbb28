"""Rubrics as values, and the rules by which text becomes one."""

from __future__ import annotations

import copy
import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.criteria import Criterion, Dimension, Polarity, Rubric, Stage, Weights
from rubric.errors import RubricInvalid
from rubric.fallback import GENERIC_CRITERIA, fallback_rubric
from rubric.json_text import MAX_DEPTH, JsonRefused, read_object
from rubric.json_types import JsonObject
from rubric.parsing import parse_rubric
from rubric.rules import forbidden_rewards, leaked_criteria, lint_criteria
from tests.rubric.rubrics import draft_form, golden_rubric, points, rubrics, stored_form

C, A, P = Dimension


def problems_of(form: dict[str, Any]) -> str:
    with pytest.raises(RubricInvalid) as caught:
        parse_rubric(json.dumps(form))
    return " | ".join(caught.value.problems)


def criterion(text: str, polarity: Polarity = Polarity.WANT) -> Criterion:
    return Criterion(id="C1", text=text, dimension=C, polarity=polarity)


# ---- weights ----------------------------------------------------------------------------------------------------


@given(points)
def test_normalised_points_sum_to_one_and_keep_their_order(three: tuple[int, int, int]) -> None:
    made = Weights.from_points(dict(zip(Dimension, three, strict=True)))
    shares = [made.of(dimension) for dimension in Dimension]
    assert math.fsum(shares) == pytest.approx(1, abs=1e-12)
    assert all(0 <= share <= 1 for share in shares)
    assert made.of(made.dominant) == max(shares)
    assert three[list(Dimension).index(made.dominant)] == max(three)


@pytest.mark.parametrize(
    "bad", [{C: 0, A: 0, P: 0}, {C: 1, A: 1}, {C: -1, A: 1, P: 1}, {C: True, A: 1, P: 1}, {C: 10**30, A: 1, P: 1}]
)
def test_points_that_say_nothing_are_invalid(bad: dict[Dimension, int]) -> None:
    with pytest.raises(RubricInvalid):
        Weights.from_points(bad)


def test_float_points_are_invalid() -> None:
    form = draft_form()
    form["points"]["cognitive"] = 25.0
    assert "whole number" in problems_of(form)


@pytest.mark.parametrize(
    ("affective", "is_valid"), [(0.55, True), (0.57, True), (0.53, True), (0.58, False), (0.5, False)]
)
def test_shares_may_miss_one_by_two_hundredths(affective: float, is_valid: bool) -> None:
    form = stored_form()
    form["weights"]["affective"] = affective
    if not is_valid:
        assert "sum to" in problems_of(form)
        return
    parsed = parse_rubric(json.dumps(form)).weights
    assert math.fsum(parsed.of(dimension) for dimension in Dimension) == pytest.approx(1, abs=1e-12)
    assert parsed.affective == pytest.approx(affective / (0.45 + affective))


@pytest.mark.parametrize("shares", [(math.nan, 0.5, 0.5), (math.inf, 0, 0), (-0.1, 0.6, 0.5), (1.2, -0.2, 0)])
def test_weights_outside_zero_to_one_cannot_be_made(shares: tuple[float, float, float]) -> None:
    with pytest.raises(RubricInvalid):
        Weights(cognitive=shares[0], affective=shares[1], proactive=shares[2])


def test_a_tie_has_several_leaders_and_the_first_dominates() -> None:
    tied = Weights.from_points({C: 1, A: 2, P: 2})
    assert tied.leaders == {A, P}
    assert tied.dominant is A


# ---- the two written forms -----------------------------------------------------------------------------------------


def test_the_stored_form_is_read_with_its_state() -> None:
    parsed = parse_rubric(json.dumps(stored_form()))
    assert parsed.weights == golden_rubric().weights
    assert parsed.criteria == golden_rubric().criteria
    assert parsed.state is not None
    assert (parsed.state.stage, parsed.state.emotion_intensity) == (Stage.OPENING, 0.7)
    assert parsed.sha256 == golden_rubric().sha256


def test_a_draft_gives_the_same_rubric_as_the_stored_form() -> None:
    parsed = parse_rubric(json.dumps(draft_form()))
    assert parsed.sha256 == golden_rubric().sha256
    assert parsed.state is not None
    assert parsed.state.emotion_intensity == 0.7


def test_a_code_fence_around_the_json_is_taken_off() -> None:
    assert parse_rubric(f"```json\n{json.dumps(draft_form())}\n```").sha256 == golden_rubric().sha256


def test_a_model_cannot_declare_its_own_rubric_a_fallback() -> None:
    form = stored_form() | {"fallback": True, "fallback_reason": "mine", "repairs": 7}
    parsed = parse_rubric(json.dumps(form))
    assert (parsed.is_fallback, parsed.fallback_reason, parsed.repairs) == (False, None, 0)


@given(rubrics())
def test_a_stored_rubric_is_read_back_equal(rubric: Rubric) -> None:
    again = Rubric.from_json(json.loads(json.dumps(rubric.to_json())))
    assert again == rubric
    assert again.sha256 == rubric.sha256


def test_the_fallback_is_read_back_with_its_flags() -> None:
    fallback = fallback_rubric("length", repairs=1)
    assert Rubric.from_json(fallback.to_json()) == fallback


def test_a_stored_rubric_stays_readable_after_a_rule_was_sharpened() -> None:
    stored: Any = golden_rubric().to_json()
    stored["criteria"][0]["text"] = "Flatters the user"
    assert Rubric.from_json(stored).criteria[0].text == "Flatters the user"


@pytest.mark.parametrize("key", ["schema", "weights", "criteria", "fallback", "repairs"])
def test_a_stored_rubric_without_a_part_is_refused(key: str) -> None:
    stored: Any = golden_rubric().to_json()
    del stored[key]
    with pytest.raises(RubricInvalid):
        Rubric.from_json(stored)


def test_the_hash_sees_weights_and_criteria_and_nothing_else() -> None:
    base = golden_rubric()
    stored: Any = base.to_json()
    with_state = copy.deepcopy(stored) | {"state": {"stage": "closing"}, "repairs": 1}
    assert Rubric.from_json(with_state).sha256 == base.sha256
    reworded = copy.deepcopy(stored)
    reworded["criteria"][0]["text"] += " at once"
    assert Rubric.from_json(reworded).sha256 != base.sha256
    turned = copy.deepcopy(stored)
    turned["criteria"][0]["polarity"] = "avoid"
    assert Rubric.from_json(turned).sha256 != base.sha256
    reweighted = copy.deepcopy(stored)
    reweighted["weights"] = {"cognitive": 0.2, "affective": 0.6, "proactive": 0.2}
    assert Rubric.from_json(reweighted).sha256 != base.sha256


def test_whole_number_weights_hash_like_floats() -> None:
    whole: Any = golden_rubric().to_json()
    for row in whole["criteria"]:
        row["weight"] = 1
    assert Rubric.from_json(whole).sha256 == golden_rubric().sha256


# ---- rules ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "is_valid"), [(1, False), (2, True), (4, True), (5, False)])
def test_a_dimension_has_two_to_four_criteria(count: int, is_valid: bool) -> None:
    form = draft_form()
    things = ["late bus", "old letter", "broken cup", "green door", "lost ring"]
    form["proactive"] = [{"want": f"Asks about the {thing} in plain words"} for thing in things[:count]]
    if is_valid:
        assert len(parse_rubric(json.dumps(form)).criteria_of(P)) == count
    else:
        assert problems_of(form) == f"proactive: {count} criteria, must be 2 to 4"


@pytest.mark.parametrize(
    ("text", "is_valid"), [("x" * 7, False), ("x" * 8, True), ("x" * 240, True), ("x" * 241, False)]
)
def test_a_text_has_8_to_240_characters(text: str, is_valid: bool) -> None:
    form = draft_form()
    form["cognitive"][0] = {"want": text}
    if is_valid:
        assert parse_rubric(json.dumps(form)).criteria[0].text == text
    else:
        assert problems_of(form) == f"C1: text has {len(text)} characters, must have 8 to 240"


def test_white_space_in_a_text_becomes_single() -> None:
    form = draft_form()
    form["cognitive"][0] = {"want": "  Names \n\t the   silence "}
    assert parse_rubric(json.dumps(form)).criteria[0].text == "Names the silence"


@pytest.mark.parametrize("char", ["\x00", "\x1b", "\u202e"])
def test_control_characters_in_a_text_are_refused(char: str) -> None:
    form = draft_form()
    form["cognitive"][0] = {"want": f"Names the {char} silence"}
    assert "control character" in problems_of(form)


def test_near_duplicates_within_a_rubric_are_refused_across_dimensions_too() -> None:
    form = draft_form()
    form["cognitive"][0] = {"want": "Names the silence at the long dinner table"}
    form["proactive"][0] = {"want": "names the silence, at the dinner table!"}
    assert problems_of(form) == "C1 and P1: say nearly the same"


def test_texts_that_share_fewer_words_are_no_duplicates() -> None:
    form = draft_form()
    form["cognitive"][0] = {"want": "Names the silence at the dinner table"}
    form["proactive"][0] = {"want": "Names the silence at the office party"}
    parse_rubric(json.dumps(form))


def test_texts_in_a_script_without_spaces_are_compared_by_characters() -> None:
    form = draft_form()
    form["cognitive"][0] = {"want": "说出晚餐时沉默带来的伤害"}
    form["affective"][0] = {"want": "说出晚餐时沉默带来的伤害了"}
    assert problems_of(form) == "C1 and A1: say nearly the same"


@pytest.mark.parametrize(
    ("kind", "text", "polarity"),
    [
        ("self_description", "Says that it is an empathetic reply", Polarity.WANT),
        ("self_description", "The reply claims to be supportive", Polarity.WANT),
        ("self_description", "Describes itself as kind", Polarity.WANT),
        ("self_description", "States that it meets all criteria", Polarity.WANT),
        ("length", "Gives a long answer with much detail", Polarity.WANT),
        ("length", "Writes at least 80 words about it", Polarity.WANT),
        ("length", "Is too short to be of use", Polarity.AVOID),
        ("length", "Does not give a brief answer", Polarity.WANT),
        ("flattery", "Flatters the user", Polarity.WANT),
        ("flattery", "Tells the visitor how amazing they are", Polarity.WANT),
        ("flattery", "Agrees with everything that was said", Polarity.WANT),
        ("engagement", "Keeps the conversation going", Polarity.WANT),
        ("engagement", "Invites them to come back to the chat tomorrow", Polarity.WANT),
        ("engagement", "Lets the visitor rely on this assistant", Polarity.WANT),
        ("engagement", "Ends the conversation", Polarity.AVOID),
        ("engagement", "Does not keep the user chatting", Polarity.AVOID),
    ],
)
def test_criteria_that_reward_a_forbidden_thing_are_refused(kind: str, text: str, polarity: Polarity) -> None:
    assert [found.name for found in forbidden_rewards(criterion(text, polarity))] == [kind]
    form = draft_form()
    form["cognitive"][0] = {polarity.value: text}
    assert problems_of(form).startswith("C1: rewards ")


@pytest.mark.parametrize(
    ("text", "polarity"),
    [
        ("Claims to be empathetic", Polarity.AVOID),
        ("Does not claim that it is empathetic", Polarity.WANT),
        ("Gives a long answer", Polarity.AVOID),
        ("Avoids a long reply", Polarity.WANT),
        ("Flatters the user", Polarity.AVOID),
        ("Keeps the conversation going", Polarity.AVOID),
        ("Uses at least one word for the feeling", Polarity.WANT),
        ("Names how long the wait for the letter has been", Polarity.WANT),
        ("Takes up that her boss never paid her a word of thanks", Polarity.WANT),
        ("Praises the step of having called the clinic", Polarity.WANT),
        ("Invites the visitor to say more about the dinner", Polarity.WANT),
        ("Suggests a talk with the friend that she relies on", Polarity.WANT),
    ],
)
def test_criteria_that_only_touch_a_forbidden_thing_pass(text: str, polarity: Polarity) -> None:
    assert forbidden_rewards(criterion(text, polarity)) == ()


def test_our_own_generic_criteria_keep_every_rule() -> None:
    form = stored_form()
    form["criteria"] = [one.to_json() | {"id": one.id.removeprefix("G")} for one in GENERIC_CRITERIA]
    assert len(parse_rubric(json.dumps(form)).criteria) == 6
    assert lint_criteria(GENERIC_CRITERIA) == ()


def test_ids_of_the_generic_criteria_are_reserved() -> None:
    form = stored_form()
    form["criteria"][0]["id"] = "GC1"
    assert problems_of(form) == "GC1: ids that begin with G are reserved"


@pytest.mark.parametrize(
    ("key", "value"), [("id", "C2"), ("id", "Anna"), ("dimension", "social"), ("polarity", "maybe")]
)
def test_a_criterion_with_a_wrong_part_is_refused(key: str, value: str) -> None:
    form = stored_form()
    form["criteria"][0][key] = value
    problems_of(form)


@pytest.mark.parametrize("weight", [0, -1, 10.5, "1", True, None])
def test_a_criterion_weight_must_be_over_zero_and_at_most_ten(weight: object) -> None:
    form = stored_form()
    form["criteria"][0]["weight"] = weight
    assert "weight" in problems_of(form)


def test_outcome_statements_and_inner_states_warn_but_pass() -> None:
    form = draft_form()
    form["cognitive"][0] = {"want": "The user will feel understood at last"}
    form["affective"] = [
        {"avoid": "Genuinely cares about nothing but the dinner"},
        {"avoid": "Mocks the tears of the sister"},
    ]
    warnings = lint_criteria(parse_rubric(json.dumps(form)).criteria)
    assert [warning.split(":")[0] for warning in warnings] == ["C1", "A1", "affective"]


def test_all_problems_are_named_at_once_and_none_repeats_a_text() -> None:
    form = stored_form()
    form["weights"] = {"cognitive": 0.9, "affective": 0.9, "proactive": 0.9}
    form["criteria"][0]["dimension"] = "SECRET-WORD"
    form["criteria"][1]["text"] = None
    form["state"]["stage"] = "SECRET-WORD"
    found = problems_of(form)
    assert found.count("|") == 3
    assert "SECRET-WORD" not in found


def test_a_criterion_that_copies_twelve_words_of_a_known_reply_leaks() -> None:
    reply = "You covered it up so that nobody would worry and then you sat alone with all of it."
    copied = criterion("Says you covered it up so that nobody would worry and then you sat there")
    short = criterion("You covered it up so that nobody would worry")
    assert leaked_criteria([copied], reply) == ("C1",)
    assert leaked_criteria([short], reply) == ()


# ---- hostile text -----------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
parts = st.sampled_from(
    ["state", "points", "weights", "criteria", "cognitive", "affective", "proactive", "want", "id", "text", "stage"]
)


def parse_or_refuse(text: str) -> None:
    problems: tuple[str, ...] = ()
    try:
        parsed = parse_rubric(text)
    except RubricInvalid as error:
        problems = error.problems
    assert problems or len(parsed.criteria) >= 6


@given(st.text())
def test_arbitrary_text_raises_nothing_but_rubric_invalid(text: str) -> None:
    parse_or_refuse(text)


@given(st.dictionaries(parts, json_values, max_size=6))
def test_arbitrary_json_raises_nothing_but_rubric_invalid(form: dict[str, Any]) -> None:
    parse_or_refuse(json.dumps(form))


@given(st.sampled_from([stored_form(), draft_form()]), st.data())
def test_a_rubric_with_any_part_exchanged_is_read_or_refused(form: dict[str, Any], data: st.DataObject) -> None:
    mutated = copy.deepcopy(form)
    node: Any = mutated
    while True:
        key = (
            data.draw(st.sampled_from(sorted(node)))
            if isinstance(node, dict)
            else data.draw(st.integers(0, len(node) - 1))
        )
        if isinstance(node[key], dict | list) and node[key] and data.draw(st.booleans()):
            node = node[key]
            continue
        node[key] = data.draw(json_values)
        break
    parse_or_refuse(json.dumps(mutated))
    with suppress(RubricInvalid):
        Rubric.from_json(mutated)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '{"points": NaN}',
        '{"points": Infinity}',
        '{"points": {"cognitive": 1e999}}',
        '{"points": {"cognitive": ' + "9" * 5_000 + "}}",
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"a": "' + '\\"' * 100_000,
        '{"points": "\\ud83d"}',
        '{"points": {"\\ud83d": 1}}',
        '{"criteria": ["\ud83d"]}',
        '{"points": 1, "points": 2}',
        '{"points": "\x00"}',
        "```json\n{}\n```",
        "{" * 300_000,
    ],
)
@pytest.mark.timeout(5)
def test_known_kinds_of_hostile_text_are_refused(text: str) -> None:
    with pytest.raises(RubricInvalid):
        parse_rubric(text)


def test_a_number_too_large_for_a_float_is_refused_in_stored_json() -> None:
    stored: Any = golden_rubric().to_json()
    stored["criteria"][0]["weight"] = 10**400
    with pytest.raises(RubricInvalid):
        Rubric.from_json(stored)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": NaN}', "not finite"),
        ('{"a": -Infinity}', "not finite"),
        ('{"a": 1e999}', "not finite"),
        ('{"a": ' + "9" * 65 + "}", "too long"),
        ('{"a": 0.' + "1" * 65 + "}", "too long"),
        ('{"a": 1, "a": 1}', "twice"),
        ('{"a": [["\\udfff"]]}', "surrogate"),
        ('["a"]', "not a JSON object"),
        ('{"a": 1} and more', "not valid JSON"),
    ],
)
def test_json_outside_our_bounds_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(JsonRefused, match=reason):
        read_object(text)


def test_brackets_inside_strings_do_not_count_as_depth() -> None:
    assert read_object(json.dumps({"a": "[" * 50})) == {"a": "[" * 50}


def test_objects_are_read_up_to_the_depth_bound() -> None:
    def nested(depth: int) -> str:
        value: JsonObject = {}
        for _ in range(depth - 1):
            value = {"a": value}
        return json.dumps(value)

    read_object(nested(MAX_DEPTH))
    with pytest.raises(JsonRefused):
        read_object(nested(MAX_DEPTH + 1))
