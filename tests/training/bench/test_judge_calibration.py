"""Calibration, sameness and None: of the corpus authors' own levels, by weights that never saw the reply."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rubric import JudgeReading
from rubric.corpus.records import read_corpus
from rubric.corpus.rubrics import levels_of, rubric_of
from tests.fakes.judges import EVEN, instruments, shares_of, write_lines
from training.bench.judge_asking import Question
from training.bench.judge_calibration import measure_over, replies_of
from training.bench.judge_pairs import AUTHOR_OF_EXAMINER
from training.bench.judge_rows import Row

CORPUS = read_corpus()
CONVERSATIONS = (*CORPUS[:6], *CORPUS[-6:])  # six of author A, six of author D
TRUE = {
    (reply.context.sha256, reply.text, criterion.text): level
    for reply in replies_of(CONVERSATIONS)
    for criterion, level in zip(rubric_of(reply.turn), reply.levels, strict=True)
}


def author_level(question: Question, criterion: str) -> float:
    return TRUE[question.context.sha256, question.reply, criterion]


def by_key(rows: Sequence[Row]) -> dict[str, Row]:
    return {row.goal.key: row for row in rows}


def test_every_reply_comes_with_its_own_levels() -> None:
    found = {reply.id: reply for reply in replies_of(CONVERSATIONS[:2])}
    turn = CONVERSATIONS[0].turns[0]
    assert found[f"{CONVERSATIONS[0].id}.1/reply"].levels == levels_of(turn, "reply")
    assert (f"{CONVERSATIONS[0].id}.1/worse" in found) is (turn.worse is not None)


async def test_a_judge_that_gives_the_authors_levels_is_calibrated_and_agrees(tmp_path: Path) -> None:
    learned = [one for one in CONVERSATIONS if one.author != AUTHOR_OF_EXAMINER]
    lines = []
    for reply in replies_of(learned):
        place, _, side = reply.id.partition("/")
        conversation, _, turn = place.rpartition(".")
        shares = [shares_of(level) for level in reply.levels]
        lines.append(
            {
                "conversation": conversation,
                "turn": int(turn),
                "side": side,
                "fold": 0,
                "levels": shares,
                "mechanisms": EVEN,
            }
        )
    write_lines(tmp_path / "judge" / "folds.jsonl", lines)
    rows = by_key(await measure_over(CONVERSATIONS, instruments(level=author_level, predictions=tmp_path)))
    assert rows["calibration.levels"].found is not None
    assert rows["calibration.levels"].found.estimate == 0.0
    assert rows["calibration.levels"].n == sum(len(reply.levels) for reply in replies_of(learned))
    assert rows["calibration.kappa"].found is not None
    assert rows["calibration.kappa"].found.estimate == 1.0
    assert rows["calibration.batches"].is_met
    assert rows["calibration.none"].is_met


async def test_one_level_for_everything_is_miscalibrated_and_without_folds_it_says_so() -> None:
    rows = by_key(await measure_over(CONVERSATIONS, instruments(level=lambda _question, _criterion: 1.0)))
    assert rows["calibration.new_author"].found is not None
    assert rows["calibration.new_author"].found.estimate > 0.08
    assert rows["calibration.levels"].is_met is None
    assert "training.recipes.judge" in rows["calibration.levels"].note


async def test_an_answer_that_depends_on_its_company_is_counted() -> None:
    tools = instruments(level=author_level)

    async def swayed(questions: Sequence[Question]) -> list[JudgeReading]:
        readings = await tools.judge(questions)
        first = replace(readings[0].criteria[0], expected=0.123 if len(questions) > 1 else 0.124)
        return [replace(readings[0], criteria=(first, *readings[0].criteria[1:])), *readings[1:]]

    rows = by_key(await measure_over(CONVERSATIONS, replace(tools, ask_afresh=swayed)))
    assert rows["calibration.batches"].is_met is False


async def test_levels_that_are_missing_are_counted() -> None:
    def level(question: Question, criterion: str) -> float | None:
        return None if len(criterion) % 2 else author_level(question, criterion)

    none = by_key(await measure_over(CONVERSATIONS, instruments(level=level)))["calibration.none"]
    assert none.found is not None
    assert 10 < none.found.estimate < 90
    assert none.is_met is False
