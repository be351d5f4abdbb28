from __future__ import annotations

import pytest

from rubric.dialogue import Transcript
from rubric.serve.readings import (
    CONTEXT_TOKENS,
    CRITERION_TOKENS,
    READING_TOKENS,
    REPLY_TOKENS,
    SURFACE_NAMES,
    ReplyBlank,
    build_reading,
    context_text,
    criterion_ids,
    marker_ids,
    surface_of,
)
from rubric.serve.texts import open_tokenizer
from training.recipes.minilm import package_folder

TOKENIZER = open_tokenizer(package_folder() / "tokenizer.json")
FIRST, LAST = marker_ids(TOKENIZER)


def _reply_tokens(context: str, reply: str) -> list[int]:
    reading = build_reading(context, reply, TOKENIZER)
    return [number for number, is_reply in zip(reading.ids, reading.reply_mask, strict=True) if is_reply]


def _ids(text: str) -> list[int]:
    ids: list[int] = TOKENIZER.encode(text, add_special_tokens=False).ids
    return ids


def _surface(context: str, reply: str) -> dict[str, float]:
    return dict(zip(SURFACE_NAMES, surface_of(context, reply), strict=True))


def test_reading_is_context_then_reply_between_markers() -> None:
    reading = build_reading("visitor: my cat died", "That is a loss.", TOKENIZER)
    said = _ids("That is a loss.")
    assert reading.ids == (FIRST, *_ids("visitor: my cat died"), LAST, *said, LAST)
    assert reading.reply_mask == (*(0,) * (len(reading.ids) - len(said) - 1), *(1,) * len(said), 0)


def test_long_context_gives_way_at_its_oldest_end() -> None:
    reading = build_reading(f"{'old ' * 400}newest", "I see.", TOKENIZER)
    assert len(build_reading("old " * 400, "word " * 400, TOKENIZER).ids) == READING_TOKENS
    assert reading.reply_mask.count(0) == CONTEXT_TOKENS + 3
    assert reading.ids[-len(_ids("I see.")) - 3] == _ids("newest")[0]


def test_long_reply_keeps_head_and_tail() -> None:
    said = _reply_tokens("visitor: hi", f"begin {'middle ' * 500}end")
    assert len(said) == REPLY_TOKENS
    assert (said[0], said[-1]) == (_ids("begin")[0], _ids("end")[0])


def test_short_context_leaves_the_reply_at_its_own_limit() -> None:
    assert len(_reply_tokens("", "word " * 500)) == REPLY_TOKENS


@pytest.mark.parametrize("blank", ["", "  \n", "\u200b\u200d", "\0", "[SEP][CLS]"])
def test_reply_without_anything_to_read_has_no_reading(blank: str) -> None:
    with pytest.raises(ReplyBlank):
        build_reading("visitor: hi", blank, TOKENIZER)


def test_markers_written_out_in_a_text_end_nothing() -> None:
    reading = build_reading("visitor: hi [SEP] you", "I see. [SEP] [CLS] Level 1. [PAD]", TOKENIZER)
    assert reading.ids.count(LAST) == 2
    assert reading.ids.count(FIRST) == 1


@pytest.mark.parametrize("reply", ["\ud800 lone half", "🙂🙂", "שלום לך", "x" * 65_536, ":"])
def test_any_text_has_a_reading_within_the_limits(reply: str) -> None:
    reading = build_reading("visitor: \ud800", reply, TOKENIZER)
    assert len(reading.ids) == len(reading.reply_mask) <= READING_TOKENS
    assert all(0 <= number < 2.5 for number in reading.surface)


def test_context_text_names_speakers_and_drops_system_texts() -> None:
    said = Transcript.of(("system", "be kind"), ("user", "hi\nthere"), ("assistant", "hello"), ("user", "well"))
    assert context_text(said) == "visitor: hi there\nreply: hello\nvisitor: well"


def test_context_text_of_a_long_talk_keeps_its_newest_part() -> None:
    said = Transcript.of(*(("user", f"{number} {'x' * 2_000}") for number in range(500)))
    shown = context_text(said)
    assert len(shown) < 10_000
    assert shown.rpartition("visitor: ")[2].startswith("499 ")


def test_long_criterion_is_cut() -> None:
    assert len(criterion_ids("word " * 300, TOKENIZER)) == CRITERION_TOKENS


def test_surface_counts_questions_and_care() -> None:
    plain, asking = _surface("visitor: hi", "I see."), _surface("visitor: hi", "I'm sorry. How was it?")
    assert (plain["questions"], plain["care_words"]) == (0, 0)
    assert asking["questions"] > 0 < asking["care_words"]
    assert asking["ends_with_question"] == 1


def test_surface_tells_a_copy_of_the_visitor_from_words_of_ones_own() -> None:
    context = "visitor: hello\nreply: hi\nvisitor: my landlord sold the flat last week"
    assert _surface(context, "My landlord sold the flat last week")["copied_run"] == 1
    own = _surface(context, "Losing the flat like that leaves little time to think")
    assert own["copied_run"] == 0
    assert 0 < own["share_from_visitor"] < 1


def test_surface_does_not_see_earlier_visitors_texts_as_the_newest() -> None:
    context = "visitor: the garden fence fell\nreply: oh\nvisitor: and then it rained"
    assert _surface(context, "the garden fence fell")["copied_run"] == 0
