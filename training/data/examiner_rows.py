"""What the examiner learns from: author D's pairs and levels, pairs and real replies of other voices, and no replies.

Text that is none is made of other kinds than the families that `training/bench/judge_probes` measures with: words
shuffled or drawn, replies cut short, run together or given to another talk, visitors' messages, strangers' comments,
criteria, remarks about replies, and lines of our prompts. All is author D's, of the project, or of a source that may
train what ships (GoEmotions, CC BY 4.0; CounselChat, MIT: the questions of its part "train" and sentences that begin
answers to them, no votes).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rubric.bank import load_bank
from rubric.corpus.examiner_pairs import ExaminerPair, read_examiner_pairs
from rubric.corpus.no_replies import EXAMINER_NO_REPLIES, read_no_replies
from rubric.corpus.pairs import CorpusPair, kept_pairs, read_relabels
from rubric.corpus.records import Conversation, Mechanisms
from rubric.corpus.rubrics import Side
from rubric.dialogue import Role
from rubric.examiner_text import words
from rubric.prompts import load_prompt
from training.data.counsel_chat import COUNSEL_CHAT
from training.data.public_texts import counsel_sentences, goemotions, news_reactions
from training.data.reactions import GOEMOTIONS, LabelledComment
from training.data.reading import load_file

AUTHOR: Final = "D"
PROMPTS: Final = ("judge", "rubric_generator", "rubric_repair")
# Comments that somebody in trouble might be glad of are no examples of text that is no reply.
_KIND: Final = frozenset(
    (
        *("caring", "sadness", "remorse", "curiosity", "confusion", "grief", "optimism", "fear", "nervousness"),
        *("disappointment", "realization", "relief", "surprise"),
    )
)
_ADMIRING: Final = frozenset({"admiration", "love", "approval", "excitement", "gratitude"})
_COMFORTING: Final = frozenset({"caring", "sadness", "remorse", "optimism"})
_YOU: Final = frozenset({"you", "your", "you're"})
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
_MASK: Final = re.compile(r"\[(NAME|RELIGION)\]")
_KNOWN_IN: Final = 3  # public texts that a word stands in, to be an everyday one
_OUTSIDE: Final = ""  # conversation of rows that belong to none


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A text in a reply's place. `kind` says where it comes from; it is a reply where that is one of REPLIES."""

    kind: str
    text: str
    message: str
    earlier: str
    conversation: str  # "" for public text, which every fold trains on


@dataclass(frozen=True, kw_only=True, slots=True)
class GradedReply:
    """A reply of author D with its levels (emotional reaction, interpretation, exploration)."""

    sample: Sample
    turn: int  # from 1
    side: Side
    levels: Mechanisms


@dataclass(frozen=True, kw_only=True, slots=True)
class PairOfReplies:
    """The better and the worse reply of a kept pair."""

    better: Sample
    worse: Sample


@dataclass(frozen=True, kw_only=True, slots=True)
class ExaminerRows:
    """Everything that trains the examiner."""

    pairs: tuple[PairOfReplies, ...]
    graded: tuple[GradedReply, ...]
    others: tuple[Sample, ...]  # real replies of other voices, and text that is none
    known: frozenset[str]

    @property
    def conversations(self) -> list[str]:
        """Ids, sorted."""
        return sorted({one.sample.conversation for one in self.graded})

    def within(self, conversations: frozenset[str]) -> ExaminerRows:
        """The rows of these conversations, and those of none."""
        here = conversations | {_OUTSIDE}
        return ExaminerRows(
            pairs=tuple(pair for pair in self.pairs if pair.better.conversation in here),
            graded=tuple(one for one in self.graded if one.sample.conversation in here),
            others=tuple(one for one in self.others if one.conversation in here),
            known=self.known,
        )


REPLIES: Final = frozenset({"own", "voice", "counsel", "comfort"})


def load_rows(
    conversations: Iterable[Conversation], *, public: Path, groups: Sequence[frozenset[str]], seed: int
) -> ExaminerRows:
    """All rows. Text of one conversation is given to another only within one of `groups`, so that folds stay apart."""
    mine = [one for one in conversations if one.author == AUTHOR]
    pairs = kept_pairs(mine, relabels=read_relabels())
    dice = random.Random(seed)
    graded = tuple(_graded(mine))
    comments = load_file(public / "goemotions" / "train.tsv.gz", GOEMOTIONS)
    voices = [_voice(pair) for pair in read_examiner_pairs()]
    others = [
        *(side for pair in voices for side in (pair.better, pair.worse)),
        *_voices(public, comments, dice),
        *_from_pairs(pairs, groups, comments, dice),
    ]
    return ExaminerRows(
        pairs=(*(_pair(pair) for pair in pairs), *voices),
        graded=graded,
        others=tuple(others),
        known=_known_words(graded, public),
    )


def _sample(pair: CorpusPair, text: str, *, kind: str) -> Sample:
    said = [one.text for one in pair.context]
    return Sample(
        kind=kind,
        text=text,
        message=pair.turn.visitor,
        earlier=" ".join(said[:-1]),
        conversation=pair.conversation.id,
    )


def _pair(pair: CorpusPair) -> PairOfReplies:
    return PairOfReplies(
        better=_sample(pair, pair.turn.reply, kind="own"), worse=_sample(pair, pair.worse.text, kind="own")
    )


def _voice(pair: ExaminerPair) -> PairOfReplies:
    """Of an author whose pairs lie outside the conversations, so that every fold trains on them."""
    *earlier, message = pair.context
    better, worse = (
        Sample(kind="voice", text=text, message=message, earlier=" ".join(earlier), conversation=_OUTSIDE)
        for text in (pair.better, pair.worse)
    )
    return PairOfReplies(better=better, worse=worse)


def _graded(conversations: Iterable[Conversation]) -> Iterator[GradedReply]:
    for conversation in conversations:
        for index, turn in enumerate(conversation.turns):
            said = [one.text for one in conversation.context_of(index) if one.role is not Role.SYSTEM]
            sides: list[tuple[Side, str, Mechanisms]] = [("reply", turn.reply, turn.levels)]
            if turn.worse is not None:
                sides.append(("worse", turn.worse.text, turn.worse.levels))
            for side, text, levels in sides:
                sample = Sample(
                    kind="own",
                    text=text,
                    message=turn.visitor,
                    earlier=" ".join(said[:-1]),
                    conversation=conversation.id,
                )
                yield GradedReply(sample=sample, turn=index + 1, side=side, levels=levels)


def _voices(public: Path, comments: Sequence[LabelledComment], dice: random.Random) -> Iterator[Sample]:
    """Real replies by others than D: how counsellors' answers begin, and comments that comfort somebody."""
    answers = [
        one for one in load_file(public / "counsel_chat" / "counsel_chat.csv.gz", COUNSEL_CHAT) if one.split == "train"
    ]
    for answer in dice.sample(answers, min(450, len(answers))):
        text = " ".join(_SENTENCE_END.split(" ".join(answer.answer.split()))[: dice.choice((1, 2, 2, 3, 3, 4))])
        if 4 <= len(words(text)) <= 110:
            question = " ".join(f"{answer.title} {answer.question}".split())[:800]
            yield Sample(kind="counsel", text=text, message=question, earlier="", conversation=_OUTSIDE)
    comforting = [
        one
        for one in comments
        if set(one.labels) <= _COMFORTING and 6 <= len(words(one.text)) <= 40 and _addresses(one)
    ]
    for comment in dice.sample(comforting, min(400, len(comforting))):
        yield Sample(kind="comfort", text=_unmasked(comment), message="", earlier="", conversation=_OUTSIDE)


def _from_pairs(
    pairs: Sequence[CorpusPair],
    groups: Sequence[frozenset[str]],
    comments: Sequence[LabelledComment],
    dice: random.Random,
) -> Iterator[Sample]:
    """Text that is no reply, in the place of each pair's replies."""
    unkind = [one for one in comments if not set(one.labels) & _KIND]
    admiring = [_unmasked(one) for one in unkind if set(one.labels) & _ADMIRING and _addresses(one)]
    plain = [_unmasked(one) for one in unkind]
    criteria = [one.text for one in load_bank().criteria if "{" not in one.text]
    lines = prompt_lines()
    written = [one.text for one in read_no_replies(EXAMINER_NO_REPLIES)]
    for pair in pairs:
        group = next(group for group in groups if pair.conversation.id in group)
        others = [one for one in pairs if one.conversation.id in group and one.conversation.id != pair.conversation.id]
        texts = [
            *_spoilt(dice.choice((pair.turn.reply, pair.worse.text)), others, dice),
            *_of_others(others, dice),
            ("criteria", " ".join(dice.sample(criteria, dice.choice((1, 1, 2, 3))))),
            ("written", dice.choice(written)),
            ("remark", dice.choice(others).worse.reason),
            ("note", dice.choice(others).conversation.profile.note),
            ("prompt", " ".join(dice.sample(lines, dice.choice((1, 1, 2))))),
            *(("comment", dice.choice(plain)) for _ in range(2)),
            *(("admiring", dice.choice(admiring)) for _ in range(2)),
        ]
        for kind, text in texts:
            if text.strip():
                yield _sample(pair, text, kind=kind)


def _spoilt(reply: str, others: Sequence[CorpusPair], dice: random.Random) -> Iterator[tuple[str, str]]:
    said = reply.split()
    yield "shuffled", " ".join(dice.sample(said, len(said)))
    yield "cut", " ".join(said[: dice.randint(1, max(2, len(said) // 2))]).rstrip(".,?!")
    yield "letters", "".join(dice.sample(reply, len(reply)))
    bag = [word for other in dice.sample(others, min(12, len(others))) for word in other.turn.reply.split()]
    yield "drawn", " ".join(dice.choice(bag) for _ in range(dice.randint(3, 60)))


def _of_others(others: Sequence[CorpusPair], dice: random.Random) -> Iterator[tuple[str, str]]:
    yield "elsewhere", dice.choice(others).turn.reply
    yield "visitor", dice.choice(others).turn.visitor
    run = (dice.choice(others) for _ in range(dice.choice((4, 6, 10, 20))))
    yield "run_together", " ".join(dice.choice((one.turn.reply, one.worse.text)) for one in run)


def prompt_lines() -> list[str]:
    """The sentences of our prompts that have more than three words."""
    parts = [part.text for name in PROMPTS for part in load_prompt(name).parts]
    sentences = [line for part in parts for line in _SENTENCE_END.split(part.replace("\n", " "))]
    return [line for line in sentences if len(line.split()) > 3]


def _known_words(graded: Sequence[GradedReply], public: Path) -> frozenset[str]:
    """Words of author D's conversations, and those of at least three public texts that may train what ships."""
    counts: Counter[str] = Counter()
    texts = (*goemotions(public, "train"), *news_reactions(public).values(), *counsel_sentences(public).values())
    for text in texts:
        counts.update(set(words(text)))
    own = {word for one in graded for word in (*words(one.sample.text), *words(one.sample.message))}
    return frozenset(word for word, count in counts.items() if count >= _KNOWN_IN) | own


def _addresses(comment: LabelledComment) -> bool:
    return bool(_YOU & set(words(comment.text)))


def _unmasked(comment: LabelledComment) -> str:
    return _MASK.sub("Sam", comment.text)
