from __future__ import annotations

import math
import random

import pytest

from rubric.bank import load_bank
from rubric.corpus.opposed import read_opposed_talks
from rubric.corpus.opposites import OWN_OPPOSITES, read_opposites
from rubric.corpus.pairs import read_relabels
from rubric.corpus.records import Conversation, read_corpus
from rubric.corpus.rubrics import levels_of, rubric_of
from rubric.criteria import Polarity
from rubric.reward import reward_of
from rubric.score import Judgement, Score
from training.data.judge_noise import NoReplies
from training.data.judge_probes import FOLDER as PROBES
from training.data.judge_probes import read_opposed as read_probe_sentences
from training.data.judge_rows import JudgeTurn, corpus_turns, opposed_turns


@pytest.fixture(scope="module")
def conversations() -> tuple[Conversation, ...]:
    return read_corpus()


@pytest.fixture(scope="module")
def turns(conversations: tuple[Conversation, ...]) -> list[JudgeTurn]:
    opposites = {**read_opposites(), **read_opposites(OWN_OPPOSITES)}
    return list(corpus_turns(conversations, relabels=read_relabels(), opposites=opposites))


def test_no_turn_of_the_examiners_author_comes_in(turns: list[JudgeTurn]) -> None:
    assert {turn.group[0] for turn in turns} == {"a", "b", "c"}


def test_replies_that_miss_come_in_with_their_levels(
    conversations: tuple[Conversation, ...], turns: list[JudgeTurn]
) -> None:
    by_id = {turn.id: turn for turn in turns}
    conversation = next(one for one in conversations if one.missed and one.author != "D")
    index = min(conversation.missed)
    found = by_id[f"{conversation.id}.{index + 1}"].replies[0]
    assert found.text == conversation.turns[index].reply
    assert found.levels == levels_of(conversation.turns[index], "reply")


def test_shares_move_the_reward_as_the_reward_rule_does(
    conversations: tuple[Conversation, ...], turns: list[JudgeTurn]
) -> None:
    by_id = {turn.id: turn for turn in turns}
    compared = 0
    for conversation in conversations[:6]:
        for index, turn in enumerate(conversation.turns):
            if turn.worse is None:
                continue
            rubric = rubric_of(turn)
            rewards = []
            for side in ("reply", "worse"):
                given = [
                    Judgement(criterion_id=criterion.id, level=level)
                    for criterion, level in zip(rubric, levels_of(turn, side), strict=True)
                ]
                score = Score(judgements=tuple(given), judge="author", prompt_sha256="", attempts=1, latency_ms=0.0)
                reward = reward_of(score, rubric)
                assert reward is not None
                rewards.append(reward.value)
            row = by_id[f"{conversation.id}.{index + 1}"]
            sums = [
                math.fsum(one.share * level for one, level in zip(row.criteria, reply.levels, strict=True))
                for reply in row.replies
            ]
            assert sums[0] - sums[1] == pytest.approx(rewards[0] - rewards[1], abs=1e-9)
            compared += 1
    assert compared > 20


def test_faults_are_what_the_bank_says_to_avoid(turns: list[JudgeTurn]) -> None:
    avoided = {criterion.text for criterion in load_bank().criteria if criterion.polarity is Polarity.AVOID}
    asked = [
        criterion
        for turn in turns
        for criterion in turn.criteria
        if criterion.opposite is not None and not criterion.is_own
    ]
    assert all(criterion.names_fault is (criterion.text in avoided) for criterion in asked)
    assert all((criterion.share < 0) is criterion.names_fault for criterion in asked if criterion.share)


def test_every_sentence_of_an_author_has_its_opposite(turns: list[JudgeTurn]) -> None:
    own = [criterion for turn in turns for criterion in turn.criteria if criterion.is_own]
    assert len(own) == len(read_opposites(OWN_OPPOSITES)) > 400
    assert all(criterion.opposite and criterion.opposite != criterion.text for criterion in own)


def test_both_sides_of_a_pair_are_asked_and_one_of_them_holds() -> None:
    talks = read_opposed_talks()
    for talk, row in zip(talks, opposed_turns(talks), strict=True):
        assert [one.text for one in row.criteria] == [text for pair in talk.criteria for text in pair[:2]]
        for number, reply in enumerate(row.replies):
            sides = list(zip(reply.levels[::2], reply.levels[1::2], strict=True))
            assert sides == [(1.0, 0.0) if truths[number] == "1" else (0.0, 1.0) for _, _, truths in talk.criteria]


def test_nothing_of_the_probes_is_learned_from(turns: list[JudgeTurn]) -> None:
    probed = {one.reply for one in read_probe_sentences()} | {
        text for one in read_probe_sentences() for text in (one.criterion, one.opposite)
    }
    learned = [*turns, *opposed_turns(read_opposed_talks())]
    assert PROBES.is_dir()
    assert not probed & {reply.text for turn in learned for reply in turn.replies}
    assert not probed & {criterion.text for turn in learned for criterion in turn.criteria}


def test_texts_that_are_no_reply_differ_from_every_reply(turns: list[JudgeTurn]) -> None:
    dice = random.Random(0)
    makes = NoReplies(turns)
    replies = {reply.text for turn in turns for reply in turn.replies}
    made = [makes.make(turn, dice=dice) for turn in turns[:400]]
    assert all(text.strip() for text in made)
    assert not replies & set(made)


def test_same_dice_make_the_same_texts(turns: list[JudgeTurn]) -> None:
    makes = NoReplies(turns)
    first, second = ([makes.make(turn, dice=random.Random(4)) for turn in turns[:20]] for _ in range(2))
    assert first == second
