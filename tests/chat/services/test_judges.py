"""A judge is shown with what is known of it: nothing until staff labelled 200 pairs, then how far it agrees."""

from typing import Any

import pytest

from chat.models import Conversation, Message, PolicyVersion, PreferencePair, TurnRubric, TurnScore, User
from chat.models.learning import PairLabel, VersionKind, VersionState
from chat.services.judges import agreement_with_staff, describe_evidence
from chat.services.transcripts import turns_of
from tests.chat.api.conftest import staff_client
from tests.factories import make_conversation, make_message, make_reply, make_user, make_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def judge() -> PolicyVersion:
    return make_version(VersionKind.JUDGE, config={"implementation": "encoder"})


@pytest.fixture
def generator() -> PolicyVersion:
    return make_version(VersionKind.GENERATOR)


def make_pair(
    judge: PolicyVersion,
    generator: PolicyVersion,
    *,
    by: User | None,
    rewards: tuple[float | None, float | None] = (0.8, 0.3),
    label: PairLabel = PairLabel.A,
    conversation: Conversation | None = None,
) -> PreferencePair:
    """A labelled pair whose replies a and b the judge gave `rewards`."""
    said = make_message(conversation or make_conversation())
    replies: list[Message] = [make_reply(said, text, sibling_index=at) for at, text in enumerate(("Oh.", "Oh dear."))]
    rubric = TurnRubric.objects.create(message=said, generator=generator, weights={}, criteria=[], context_sha256="0")
    for reply, reward in zip(replies, rewards, strict=True):
        TurnScore.objects.create(reply=reply, rubric=rubric, judge=judge, reward=reward, is_partial=reward is None)
    pair = PreferencePair.objects.create(
        context=said, a=replies[0], b=replies[1], label=label, source="staff", group_key="g"
    )
    if by is not None:
        pair.annotators.add(by)
    return pair


def sentence(judge: PolicyVersion) -> str:
    return describe_evidence([judge])[judge.pk]


def test_without_a_label_there_is_no_evidence(judge: PolicyVersion) -> None:
    assert sentence(judge) == "no human evidence yet (0 of 200 labelled pairs)"


def test_only_pairs_count_that_staff_decided_and_the_judge_graded(
    judge: PolicyVersion, generator: PolicyVersion
) -> None:
    person = make_user()
    make_pair(judge, generator, by=person)
    make_pair(judge, generator, by=None)  # nobody of the staff stands behind it
    make_pair(judge, generator, by=person, label=PairLabel.TIE)
    make_pair(judge, generator, by=person, label=PairLabel.BOTH_BAD)
    make_pair(judge, generator, by=person, rewards=(0.5, None))
    other = make_version(VersionKind.JUDGE, state=VersionState.RETIRED)
    make_pair(other, generator, by=person)
    assert sentence(judge) == "no human evidence yet (1 of 200 labelled pairs)"
    assert agreement_with_staff([judge])[judge.pk].ungraded == 2


def test_two_people_behind_one_pair_are_one_pair(judge: PolicyVersion, generator: PolicyVersion) -> None:
    make_pair(judge, generator, by=make_user()).annotators.add(make_user())
    assert sentence(judge) == "no human evidence yet (1 of 200 labelled pairs)"


def test_grades_under_different_rubrics_are_not_compared(judge: PolicyVersion, generator: PolicyVersion) -> None:
    pair = make_pair(judge, generator, by=make_user())
    other = TurnRubric.objects.create(
        message=pair.context, generator=generator, seed=1, weights={}, criteria=[], context_sha256="0"
    )
    TurnScore.objects.filter(reply=pair.b).update(rubric=other)
    assert sentence(judge) == "no human evidence yet (0 of 200 labelled pairs)"


def test_from_two_hundred_pairs_on_the_agreement_is_shown_with_its_interval(
    judge: PolicyVersion, generator: PolicyVersion
) -> None:
    person, conversations = make_user(), [make_conversation() for _ in range(20)]
    for at in range(199):
        label = PairLabel.B if at % 4 == 0 else PairLabel.A  # the judge prefers a everywhere
        make_pair(judge, generator, by=person, label=label, conversation=conversations[at % 20])
    assert sentence(judge) == "no human evidence yet (199 of 200 labelled pairs)"
    make_pair(judge, generator, by=person)
    said = sentence(judge)
    assert said.startswith("agrees with staff on 75 % of 200 labelled pairs (95 % interval ")
    agreement = agreement_with_staff([judge])[judge.pk]
    assert agreement.accuracy is not None
    assert agreement.accuracy.low < agreement.accuracy.estimate < agreement.accuracy.high


def test_many_judges_take_two_queries(generator: PolicyVersion, django_assert_num_queries: Any) -> None:
    judges = [make_version(VersionKind.JUDGE, state=VersionState.RETIRED) for _ in range(3)]
    for one in judges:
        make_pair(one, generator, by=make_user())
    with django_assert_num_queries(2):
        assert len(describe_evidence(judges)) == 3


def test_a_turn_says_which_judge_graded_it_and_what_is_known_of_it(
    judge: PolicyVersion, generator: PolicyVersion
) -> None:
    pair = make_pair(judge, generator, by=make_user())
    (turn,) = turns_of(pair.context.conversation, [pair.context], is_revealed=True)
    score = turn.replies[0].score
    assert score is not None
    assert (score.judge, score.implementation) == (judge.name, "encoder")
    assert score.human_evidence == "no human evidence yet (1 of 200 labelled pairs)"


@pytest.mark.parametrize("page", ["turnscore", "policyversion"])
def test_the_admins_lists_and_pages_of_a_judge_say_what_is_known_of_it(
    judge: PolicyVersion, generator: PolicyVersion, page: str
) -> None:
    pair = make_pair(judge, generator, by=make_user())
    client = staff_client("admin")
    row = judge.pk if page == "policyversion" else TurnScore.objects.get(reply=pair.a).pk
    for address in (f"/admin/chat/{page}/", f"/admin/chat/{page}/{row}/change/"):
        assert "no human evidence yet (1 of 200 labelled pairs)" in client.get(address).content.decode()


def test_the_admins_list_of_scores_asks_once_per_judge(
    judge: PolicyVersion, generator: PolicyVersion, django_assert_max_num_queries: Any
) -> None:
    for _ in range(15):
        make_pair(judge, generator, by=make_user())
    client = staff_client("admin")
    with django_assert_max_num_queries(12):
        client.get("/admin/chat/turnscore/")
