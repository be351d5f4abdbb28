"""From rows to the exact prompt: within the budget, the newest always in, roles alternating, and found again later."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.prompting import (
    TOKENS_PER_UTTERANCE,
    Prompt,
    Said,
    build_prompt,
    context_transcript,
    default_system_prompt,
    estimate_tokens,
    order_context,
    prompt_version,
)
from rubric import Role, Transcript, Utterance

SYSTEM = "Be kind."


def words(text: str) -> int:
    """One token a word: small numbers that a test can add up."""
    return len(text.split())


def visitor(seq: int, text: str) -> Said:
    return Said(seq=seq, position=seq, role=Role.USER, text=text)


def reply(seq: int, text: str, *, to: int) -> Said:
    return Said(seq=seq, position=to, role=Role.ASSISTANT, text=text)


def build(*said: Said, budget_tokens: int = 1_400) -> Prompt:
    return build_prompt(said, system=SYSTEM, budget_tokens=budget_tokens, count=words)


def texts(prompt: Prompt) -> list[tuple[str, str]]:
    return [(utterance.role.value, utterance.text) for utterance in prompt.transcript]


def test_whole_conversation_goes_in_where_it_fits() -> None:
    prompt = build(visitor(1, "Hi"), reply(2, "Hello", to=1), visitor(4, "I am sad"))
    assert texts(prompt) == [("system", SYSTEM), ("user", "Hi"), ("assistant", "Hello"), ("user", "I am sad")]
    assert prompt.context_from_seq == 1


def test_reply_stands_at_the_message_that_it_answers() -> None:
    said = [visitor(1, "one"), visitor(2, "two"), visitor(4, "three"), reply(3, "to two", to=2)]
    assert [one.text for one in order_context(said)] == ["one", "two", "to two", "three"]


def test_messages_without_a_reply_between_them_are_joined() -> None:
    prompt = build(visitor(1, "Hi"), visitor(2, "Are you there?"))
    assert texts(prompt) == [("system", SYSTEM), ("user", "Hi\n\nAre you there?")]


def test_reply_without_text_leaves_no_empty_turn() -> None:
    prompt = build(visitor(1, "Hi"), reply(2, "", to=1), visitor(3, "Hello?"))
    assert texts(prompt) == [("system", SYSTEM), ("user", "Hi\n\nHello?")]


def test_nothing_said_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing to answer"):
        build(reply(2, "", to=1))


def long_talk(turns: int = 30) -> list[Said]:
    said = []
    for turn in range(turns):
        said += [visitor(2 * turn + 1, f"turn {turn} said"), reply(2 * turn + 2, f"answer {turn}", to=2 * turn + 1)]
    return [*said, visitor(2 * turns + 1, "the newest words")]


def test_first_visitor_turn_and_the_newest_turns_are_kept_within_the_budget() -> None:
    said = long_talk()
    prompt = build(*said, budget_tokens=100)
    kept = texts(prompt)
    assert kept[0] == ("system", SYSTEM)
    assert kept[1] == ("user", "turn 0 said")
    assert kept[-1] == ("user", "the newest words")
    assert "turn 15 said" not in str(kept)
    inside = [one for one in order_context(said) if one.seq >= prompt.context_from_seq]
    used = sum(words(one.text) + TOKENS_PER_UTTERANCE for one in (said[0], *inside))
    assert 100 - 2 * (3 + TOKENS_PER_UTTERANCE) < used <= 100


def test_prompt_can_be_rebuilt_from_context_from_seq() -> None:
    said = long_talk()
    prompt = build(*said, budget_tokens=100)
    rows = [said[0], *(one for one in order_context(said) if one.seq >= prompt.context_from_seq)]
    rebuilt = Transcript((Utterance(Role.SYSTEM, SYSTEM), *(Utterance(one.role, one.text) for one in rows))).merged()
    assert rebuilt.sha256 == prompt.sha256


def test_first_turn_that_would_eat_the_budget_is_left_out() -> None:
    prompt = build(visitor(1, "w " * 60), reply(2, "ok", to=1), visitor(3, "next"), budget_tokens=90)
    assert "w w" in str(texts(prompt))  # it fits: it is one of the newest
    prompt = build(visitor(1, "w " * 60), *long_talk(6)[2:], budget_tokens=90)
    assert "w w" not in str(texts(prompt))
    assert texts(prompt)[-1] == ("user", "the newest words")


def test_newest_message_over_the_budget_keeps_its_end() -> None:
    prompt = build(visitor(1, " ".join(f"w{n}" for n in range(500))), budget_tokens=50)
    (_, (role, text)) = texts(prompt)
    assert role == "user"
    assert text.endswith("w499")
    assert words(text) + TOKENS_PER_UTTERANCE <= 50
    assert words(text) > 30
    assert prompt.context_from_seq == 1


def test_first_turn_is_left_out_where_the_newest_message_needs_its_room() -> None:
    newest = " ".join(f"w{n}" for n in range(60))
    prompt = build(visitor(1, "hello there"), reply(2, "hi", to=1), visitor(3, newest), budget_tokens=70)
    assert texts(prompt) == [("system", SYSTEM), ("user", newest)]
    assert prompt.context_from_seq == 3


def test_version_names_the_system_text() -> None:
    assert build(visitor(1, "Hi")).version == prompt_version(SYSTEM)
    assert prompt_version("a") != prompt_version("b")
    assert default_system_prompt() == default_system_prompt().strip() != ""


def test_estimate_is_never_below_a_third_of_the_bytes() -> None:
    assert estimate_tokens("") >= 1
    assert estimate_tokens("ž😀" * 10) >= len("ž😀".encode()) * 10 / 3


def test_rubrics_context_is_the_whole_talk_without_system_text() -> None:
    said = long_talk()
    context = context_transcript(said)
    assert [utterance.role for utterance in context][:2] == [Role.USER, Role.ASSISTANT]
    assert context.last_user == "the newest words"
    assert len(context) == len(said)


@st.composite
def talks(draw: st.DrawFn) -> list[Said]:
    """Visitor messages, some answered, in any order of arrival, some replies empty."""
    said: list[Said] = []
    seq = 0
    for _ in range(draw(st.integers(1, 12))):
        seq += 1
        position = seq
        said.append(visitor(position, "v" + " word" * draw(st.integers(0, 40))))
        for _ in range(draw(st.integers(0, 2))):
            seq += 1
            said.append(reply(seq, " ".join(["r"] * draw(st.integers(0, 40))), to=position))
    seq += 1
    said.append(visitor(seq, "newest" + " word" * draw(st.integers(0, 60))))
    return draw(st.permutations(said))


@given(talks(), st.integers(20, 400))
def test_prompt_holds_the_newest_alternates_and_keeps_its_budget(said: list[Said], budget_tokens: int) -> None:
    prompt = build(*said, budget_tokens=budget_tokens)
    roles = [utterance.role for utterance in prompt.transcript]
    assert roles[0] is Role.SYSTEM
    assert Role.SYSTEM not in roles[1:]
    assert all(one is not other for one, other in pairwise(roles))
    newest = order_context(said)[-1]
    assert roles[-1] is Role.USER
    last = prompt.transcript.utterances[-1].text
    assert last.split()[-1] == newest.text.split()[-1]
    if words(newest.text) + TOKENS_PER_UTTERANCE <= budget_tokens:
        assert newest.text in last
    parts = [part for utterance in prompt.transcript.utterances[1:] for part in utterance.text.split("\n\n")]
    assert sum(words(part) + TOKENS_PER_UTTERANCE for part in parts) <= budget_tokens


@given(talks(), st.integers(20, 400))
def test_prompt_is_a_function_of_what_was_said_not_of_its_order(said: list[Said], budget_tokens: int) -> None:
    first = build(*said, budget_tokens=budget_tokens)
    again = build(*reversed(said), budget_tokens=budget_tokens)
    assert (first.sha256, first.context_from_seq) == (again.sha256, again.context_from_seq)


@given(talks(), st.integers(20, 400))
def test_from_context_from_seq_on_nothing_is_missing(said: list[Said], budget_tokens: int) -> None:
    prompt = build(*said, budget_tokens=budget_tokens)
    ordered = [one for one in order_context(said) if one.text]
    start = next(index for index, one in enumerate(ordered) if one.seq == prompt.context_from_seq)
    spoken = "\n\n".join(utterance.text for utterance in prompt.transcript.utterances[1:])
    if start < len(ordered) - 1:
        for one in ordered[start:]:
            assert one.text in spoken
