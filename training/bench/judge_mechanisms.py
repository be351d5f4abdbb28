"""Mechanism levels on EPITOME: by weights trained there in folds (`mechanisms`), and by what ships (`transfer`).

The folds come from the recipes and stay where they were trained. What ships has read neither EPITOME nor ESConv, so
its rows say how far it carries; on ESConv a conversation's mean is set beside what the seeker said at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from rubric import GENERIC_CRITERIA, Role, Transcript, fallback_rubric
from training.bench.judge_asking import Instruments, Question, faults_of, levels_of_reading, reward_of_levels
from training.bench.judge_predictions import EpitomePrediction, Who, missing_note, read_epitome_folds
from training.bench.judge_rows import Row, not_measured, row
from training.bench.judge_statistics import Floats, Whole, auc, interval_over_rows, macro_f1, rank_correlation
from training.data.epitome import EPITOME
from training.data.esconv import ESCONV, SupportConversation
from training.data.reading import load_file
from training.data.sources import source_named
from training.data.support_rows import transcript_of

MECHANISMS: Final = ("emotional_reaction", "interpretation", "exploration")  # in the order of EPITOME's files
LEVELS: Final = 3
ESCONV_PARTS: Final = ("valid", "test")
NO_PUBLIC_DATA: Final = "the public data are not beside this checkout (RAPPORT_PUBLIC_DATA names their folder)"


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledReply:
    """A pair of EPITOME with its level, 0-2, per mechanism."""

    id: str
    group: str
    post: str
    reply: str
    levels: tuple[int, ...]


def read_epitome(folder: Path) -> tuple[LabelledReply, ...]:
    """The three files as one. Raises DataFileInvalid."""
    files = [load_file(path, EPITOME) for path in source_named("epitome").paths(folder)]
    by_id = [{one.id: one.level for one in rows} for rows in files]
    return tuple(
        LabelledReply(
            id=one.id,
            group=one.group,
            post=one.post,
            reply=one.reply,
            levels=tuple(levels[one.id] for levels in by_id),
        )
        for one in files[0]
    )


async def measure_mechanisms(tools: Instruments) -> list[Row]:
    """Macro-F1 per mechanism, for judge and examiner, over the recipes' folds."""
    labelled = read_epitome(tools.public_data) if tools.public_data else ()
    rows: list[Row] = []
    for who in ("judge", "examiner"):
        keys = [f"mechanisms.{who}_{name}" for name in MECHANISMS]
        folds = read_epitome_folds(tools.predictions, who)
        if not labelled or folds is None:
            why = missing_note(who) if labelled else NO_PUBLIC_DATA
            rows += [not_measured(key, why) for key in keys]
        else:
            rows += [_f1_row(key, labelled, folds, at=at, seed=tools.seed) for at, key in enumerate(keys)]
    return rows


async def measure_transfer(tools: Instruments) -> list[Row]:
    """AUC per mechanism on EPITOME and the correlation on ESConv, for what ships."""
    if tools.public_data is None:
        names = (*MECHANISMS, "esconv")
        return [
            not_measured(f"transfer.{who}_{name}", NO_PUBLIC_DATA) for who in ("judge", "examiner") for name in names
        ]
    labelled = read_epitome(tools.public_data)
    conversations = read_surveyed(tools.public_data)
    return [
        *await _judge_transfer(labelled, conversations, tools),
        *await _examiner_transfer(labelled, conversations, tools),
    ]


def read_surveyed(folder: Path) -> tuple[SupportConversation, ...]:
    """ESConv's conversations whose seeker rated empathy at the end. Raises DataFileInvalid."""
    paths = [folder / "esconv" / f"esconv_{part}.jsonl.gz" for part in ESCONV_PARTS]
    return tuple(one for path in paths for one in load_file(path, ESCONV) if one.survey.empathy is not None)


def replies_of(conversation: SupportConversation) -> Iterator[tuple[Transcript, str]]:
    """Each reply of the supporter with all that was said before it; the supporter's opening answers nobody."""
    said = transcript_of(conversation.utterances).utterances
    for at, utterance in enumerate(said):
        if at and utterance.role is Role.ASSISTANT:
            yield Transcript(said[:at]), utterance.text


def _f1_row(
    key: str, labelled: Sequence[LabelledReply], folds: Mapping[str, EpitomePrediction], *, at: int, seed: int
) -> Row:
    known = [(one, folds[one.id]) for one in labelled if one.id in folds]
    labels: Whole = np.array([one.levels[at] for one, _ in known], dtype=np.int64)
    predicted: Whole = np.array([int(np.argmax(found.mechanisms[at])) for _, found in known], dtype=np.int64)
    found = interval_over_rows(
        lambda rows: macro_f1(labels[rows], predicted[rows], classes=LEVELS),
        groups=[one.group for one, _ in known],
        seed=seed,
    )
    missing = len(labelled) - len(known)
    return row(key, found, n=len(known), note=f"{missing} pairs are in no fold" if missing else "")


async def _judge_transfer(
    labelled: Sequence[LabelledReply], conversations: Sequence[SupportConversation], tools: Instruments
) -> list[Row]:
    rubric = fallback_rubric("bench")
    one_criterion = (GENERIC_CRITERIA[0].text,)  # the mechanisms are read whatever is asked
    readings = await tools.judge(
        [Question(context=_post(one), reply=one.reply, criteria=one_criterion) for one in labelled]
    )
    replies = [(number, *reply) for number, one in enumerate(conversations) for reply in replies_of(one)]
    graded = await tools.judge([Question.under(rubric, context=context, reply=reply) for _, context, reply in replies])
    values = [reward_of_levels(levels_of_reading(reading, faults_of(rubric)), rubric) for reading in graded]
    return [
        *_auc_rows("judge", labelled, [reading.mechanisms for reading in readings], seed=tools.seed),
        _survey_row("judge", conversations, [number for number, *_ in replies], values, seed=tools.seed),
    ]


async def _examiner_transfer(
    labelled: Sequence[LabelledReply], conversations: Sequence[SupportConversation], tools: Instruments
) -> list[Row]:
    examined = await tools.examine([(_post(one), one.reply) for one in labelled])
    replies = [(number, *reply) for number, one in enumerate(conversations) for reply in replies_of(one)]
    graded = await tools.examine([(context, reply) for _, context, reply in replies])
    return [
        *_auc_rows("examiner", labelled, [one.mechanisms for one in examined], seed=tools.seed),
        _survey_row(
            "examiner",
            conversations,
            [number for number, *_ in replies],
            [one.quality for one in graded],
            seed=tools.seed,
        ),
    ]


def _post(one: LabelledReply) -> Transcript:
    return Transcript.of((Role.USER, one.post))


def _auc_rows(
    who: Who, labelled: Sequence[LabelledReply], mechanisms: Sequence[tuple[tuple[float, ...], ...]], *, seed: int
) -> list[Row]:
    """`mechanisms` holds () where nothing could be read."""
    known = [(one, shares) for one, shares in zip(labelled, mechanisms, strict=True) if shares]
    groups = [one.group for one, _ in known]
    rows = []
    for at, name in enumerate(MECHANISMS):
        is_shown: Whole = np.array([one.levels[at] > 0 for one, _ in known], dtype=np.int64)
        scores: Floats = np.array([1 - shares[at][0] for _, shares in known], dtype=np.float64)
        rows.append(_auc_row(f"transfer.{who}_{name}", is_shown, scores, groups=groups, seed=seed))
    return rows


def _auc_row(key: str, is_shown: Whole, scores: Floats, *, groups: Sequence[str], seed: int) -> Row:
    found = interval_over_rows(lambda rows: auc(is_shown[rows], scores[rows]), groups=groups, seed=seed)
    return row(key, found, n=len(groups))


def _survey_row(
    who: Who,
    conversations: Sequence[SupportConversation],
    numbers: Sequence[int],
    values: Sequence[float | None],
    *,
    seed: int,
) -> Row:
    """`numbers` says to which conversation each value belongs."""
    of_each: dict[int, list[float]] = {}
    for number, value in zip(numbers, values, strict=True):
        if value is not None:
            of_each.setdefault(number, []).append(value)
    means: Floats = np.array([np.mean(of_one) for of_one in of_each.values()], dtype=np.float64)
    said: Floats = np.array([conversations[number].survey.empathy for number in of_each], dtype=np.float64)
    found = interval_over_rows(lambda rows: rank_correlation(means[rows], said[rows]), groups=list(of_each), seed=seed)
    return row(f"transfer.{who}_esconv", found, n=len(of_each))
