"""Own pairs: each reply by weights that never saw its conversation, against author, reader and length."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from rubric.corpus.pairs import agrees
from rubric.corpus.rubrics import rubric_of
from rubric.criteria import Polarity
from tests.fakes.judges import EVEN, Level, instruments, shares_of, write_lines
from training.bench.judge_asking import Question
from training.bench.judge_pairs import (
    SIDES,
    Pairs,
    Rewards,
    is_of_examiner,
    judge_rewards,
    judged,
    judged_by_reader,
    load_pairs,
    measure_over,
    rows_of,
)
from training.bench.judge_rows import Row


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    """Every sixth pair of the corpus: all authors, a few disputed ones."""
    every = load_pairs()
    read = every.read[::6]
    kept = {pair.id for pair in every.kept}
    return Pairs(kept=[pair for pair in read if pair.id in kept], read=read, relabels=every.relabels)


def by_key(rows: list[Row]) -> Mapping[str, Row]:
    return {row.goal.key: row for row in rows}


def knowing(pairs: Pairs) -> Level:
    """A judge that knows every better reply."""
    good = {pair.turn.reply for pair in pairs.read}
    avoid = {
        criterion.text
        for pair in pairs.read
        for criterion in rubric_of(pair.turn)
        if criterion.polarity is Polarity.AVOID
    }

    def level(question: Question, criterion: str) -> float:
        return float((question.reply in good) is (criterion not in avoid))

    return level


def write_folds(folder: Path, pairs: Pairs, *, reply: float, worse: float) -> None:
    """Levels for authors A to C: on every wanted criterion one level for good replies, another for worse ones."""
    write_lines(
        folder / "judge" / "folds.jsonl",
        [
            {
                "conversation": pair.conversation.id,
                "turn": int(pair.id.rpartition(".")[2]),
                "side": side,
                "fold": 0,
                "mechanisms": EVEN,
                "levels": [
                    shares_of(1 - level if criterion.polarity is Polarity.AVOID else level)
                    for criterion in rubric_of(pair.turn)
                ],
            }
            for pair in pairs.read
            if not is_of_examiner(pair)
            for side, level in (("reply", reply), ("worse", worse))
        ],
    )


async def test_authors_a_to_c_come_from_the_folds_and_d_from_the_process(pairs: Pairs, tmp_path: Path) -> None:
    write_folds(tmp_path, pairs, reply=0.25, worse=0.75)  # the folds prefer the worse one, the process the better one
    rewards = await judge_rewards(pairs.read, instruments(level=knowing(pairs), predictions=tmp_path))
    assert all(
        (judged(pair, rewards).credit, is_of_examiner(pair)) in {(0.0, False), (1.0, True)} for pair in pairs.kept
    )


async def test_without_folds_only_the_new_author_is_measured(pairs: Pairs) -> None:
    rows = by_key(
        await measure_over(pairs, instruments(level=knowing(pairs), quality=lambda _context, reply: float(len(reply))))
    )
    assert rows["pairs.judge"].is_met is None
    assert "training.recipes.judge" in rows["pairs.judge"].note
    assert rows["pairs.examiner_matched"].is_met is None
    new = rows["pairs.judge_new_author"]
    assert new.found is not None
    assert (new.found.estimate, new.n) == (1.0, sum(map(is_of_examiner, pairs.kept)))
    assert rows["pairs.longer"].n == len(pairs.kept)


async def test_a_reply_that_is_in_no_fold_is_ungraded_and_counted(pairs: Pairs, tmp_path: Path) -> None:
    write_lines(tmp_path / "judge" / "folds.jsonl", [])
    rows = by_key(await measure_over(pairs, instruments(level=knowing(pairs), predictions=tmp_path)))
    learned = sum(not is_of_examiner(pair) for pair in pairs.kept)
    assert rows["pairs.judge"].note == f"{learned} ungraded"
    assert rows["pairs.judge"].n == len(pairs.kept) - learned


def test_a_disputed_pair_counts_as_its_reader_has_it(pairs: Pairs) -> None:
    disputed = next(pair for pair in pairs.read if agrees(pair, pairs.relabels) is False)
    rewards: Rewards = {(disputed.id, "reply"): 0.9, (disputed.id, "worse"): 0.1}
    assert judged(disputed, rewards).credit == 1.0
    turned = judged_by_reader(disputed, rewards, pairs.relabels)
    assert turned.credit == 0.0
    assert turned.chosen_chars == len(disputed.worse.text)


def test_a_judge_that_only_measures_length_shows_as_biased(pairs: Pairs) -> None:
    rewards: Rewards = {
        (pair.id, side): float(len(text))
        for pair in pairs.read
        for side, text in zip(SIDES, (pair.turn.reply, pair.worse.text), strict=True)
    }
    rows = by_key(rows_of("judge", pairs, rewards, seed=1))
    bias = rows["pairs.judge_length_bias"].found
    assert bias is not None
    assert bias.low > 0.4  # it always takes the longer reply, authors in about half of the pairs
    assert rows["pairs.judge"].is_met is False
    assert rows["pairs.judge_matched"].is_met is False
