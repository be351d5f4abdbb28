"""What is known of a judge where a page shows one: what it is, and how far it agrees with what staff labelled.

The transcript page and the admin ask here, so that no grade is shown without it. A pair counts once a member of staff
chose one of its replies and the judge graded both under one rubric.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Length

from chat.models import PolicyVersion, PreferencePair, TurnScore
from chat.models.learning import PairLabel
from chat.models.priorities import ScoreRole
from rubric import HUMAN_PAIRS_NEEDED, AgreementWithPeople, JudgedPair, agreement_with_people

NO_EVIDENCE = "no human evidence yet"
SEED = 0  # of the resampling: the same pairs always give the same interval
_Rewards = dict[UUID, dict[int, float | None]]  # reply to rubric to reward


def describe_evidence(judges: Iterable[PolicyVersion]) -> dict[int, str]:
    """By judge (primary key) the sentence that stands beside its grades; at most two queries for all of them.

    "no human evidence yet (12 of 200 labelled pairs)", later "agrees with staff on 71 % of 240 labelled pairs (95 %
    interval 65-77 %)".
    """
    return {judge: _sentence(agreement) for judge, agreement in agreement_with_staff(judges).items()}


def agreement_with_staff(judges: Iterable[PolicyVersion]) -> dict[int, AgreementWithPeople]:
    """By judge how far it agrees with what staff labelled, intervals by conversation."""
    keys = sorted({judge.pk for judge in judges})
    pairs = _labelled_pairs() if keys else []
    rewards = _rewards(keys) if pairs else {}
    return {key: _agreement(tuple(_judged(pair, rewards.get(key, {})) for pair in pairs)) for key in keys}


def _sentence(agreement: AgreementWithPeople) -> str:
    if agreement.accuracy is None or not agreement.is_evidence:
        return f"{NO_EVIDENCE} ({agreement.graded} of {HUMAN_PAIRS_NEEDED} labelled pairs)"
    interval = agreement.accuracy
    share, low, high = (round(100 * part) for part in (interval.estimate, interval.low, interval.high))
    return f"agrees with staff on {share} % of {agreement.graded} labelled pairs (95 % interval {low}-{high} %)"


@lru_cache(maxsize=8)
def _agreement(pairs: tuple[JudgedPair, ...]) -> AgreementWithPeople:
    """Thousands of resamples: once for the same pairs, not for every page."""
    return agreement_with_people(pairs, seed=SEED)


@dataclass(frozen=True, kw_only=True, slots=True)
class _LabelledPair:
    conversation: UUID
    chosen: UUID
    rejected: UUID
    chosen_chars: int
    rejected_chars: int


def _labelled_pairs() -> list[_LabelledPair]:
    """The pairs of which a member of staff chose one."""
    chosen = PreferencePair.objects.filter(annotators__isnull=False, label__in=[PairLabel.A, PairLabel.B]).distinct()
    rows = chosen.annotate(a_chars=Length("a__text"), b_chars=Length("b__text")).order_by("id")
    fields = rows.values_list("label", "context__conversation", "a", "b", "a_chars", "b_chars")
    return [
        _LabelledPair(conversation=of, chosen=a, rejected=b, chosen_chars=a_chars, rejected_chars=b_chars)
        if label == PairLabel.A
        else _LabelledPair(conversation=of, chosen=b, rejected=a, chosen_chars=b_chars, rejected_chars=a_chars)
        for label, of, a, b, a_chars, b_chars in fields
    ]


def _judged(pair: _LabelledPair, rewards: _Rewards) -> JudgedPair:
    """With the rewards under the newest rubric that both were graded by: levels of different rubrics do not compare."""
    chosen, rejected = rewards.get(pair.chosen, {}), rewards.get(pair.rejected, {})
    rubric = max(chosen.keys() & rejected.keys(), default=None)
    return JudgedPair(
        group=pair.conversation,
        chosen=None if rubric is None else chosen[rubric],
        rejected=None if rubric is None else rejected[rubric],
        chosen_chars=pair.chosen_chars,
        rejected_chars=pair.rejected_chars,
    )


def _rewards(judges: list[int]) -> dict[int, _Rewards]:
    """By judge what it gave the replies of labelled pairs."""
    is_in_pair = Q(reply__pairs_as_a__annotators__isnull=False) | Q(reply__pairs_as_b__annotators__isnull=False)
    graded = TurnScore.objects.filter(is_in_pair, judge__in=judges, role=ScoreRole.TRAINING, rubric__isnull=False)
    rewards: dict[int, _Rewards] = {}
    for judge, reply, rubric, reward in graded.distinct().values_list("judge", "reply", "rubric", "reward"):
        rewards.setdefault(judge, {}).setdefault(reply, {})[rubric] = reward
    return rewards
