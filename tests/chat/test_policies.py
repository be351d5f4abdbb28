"""Which version answers: pinned until idle, one live at a time, served as long as somebody needs it."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from pytest_django import Settings

from chat import policies
from chat.models import PolicyVersion
from chat.models.conversations import ConversationState
from chat.models.learning import VersionKind, VersionOrigin, VersionState
from chat.policies import (
    EndpointDirectory,
    JudgeUnknown,
    VersionToServe,
    ensure_base_versions,
    live_version,
    name_of,
    served_judge,
    served_versions,
    settle_version,
    token_counter,
)
from chat.prompting import estimate_tokens
from chat.store import ENDPOINTS_KEY, close_redis_here, redis_here
from rubric import Endpoint, EngineUnreachable
from tests.factories import make_conversation, make_version
from tests.fakes.encoder import FakeEncoder
from tests.fakes.engine import closed_port

NOW = timezone.now()


# --- which version a conversation has -------------------------------------------------------------------------------


@pytest.mark.django_db
def test_new_conversation_begins_on_the_live_version_without_a_notice() -> None:
    live = make_version()
    conversation = make_conversation()
    assert settle_version(conversation, now=NOW) == ""
    assert (conversation.policy, conversation.policy_since, conversation.assignment_probability) == (live, NOW, 1.0)


@pytest.mark.django_db
@pytest.mark.parametrize(("idle_min", "moves"), [(0, False), (29, False), (30, True), (600, True)])
def test_conversation_keeps_its_version_until_it_was_idle_for_half_an_hour(idle_min: int, moves: bool) -> None:
    pinned = make_version(state=VersionState.RETIRED)
    live = make_version()
    conversation = make_conversation(policy=pinned, policy_since=NOW - timedelta(days=1))
    conversation.last_activity_at = NOW - timedelta(minutes=idle_min)
    assert settle_version(conversation, now=NOW) == (live.name if moves else "")
    assert conversation.policy == (live if moves else pinned)
    assert (conversation.policy_since == NOW) is moves


@pytest.mark.django_db
def test_version_marked_unsafe_is_left_at_the_next_turn() -> None:
    unsafe = make_version(state=VersionState.UNSAFE)
    live = make_version()
    conversation = make_conversation(policy=unsafe)
    conversation.last_activity_at = NOW
    assert settle_version(conversation, now=NOW) == live.name


@pytest.mark.django_db
def test_idle_conversation_on_the_live_version_gets_no_notice() -> None:
    live = make_version()
    conversation = make_conversation(policy=live, policy_since=NOW - timedelta(days=2))
    conversation.last_activity_at = NOW - timedelta(days=1)
    assert settle_version(conversation, now=NOW) == ""
    assert conversation.policy_since == NOW - timedelta(days=2)


@pytest.mark.django_db
def test_without_a_live_version_everybody_stays_where_they_are() -> None:
    retired = make_version(state=VersionState.RETIRED)
    conversation = make_conversation(policy=retired)
    conversation.last_activity_at = NOW - timedelta(days=1)
    assert settle_version(conversation, now=NOW) == ""
    assert conversation.policy == retired
    assert settle_version(fresh := make_conversation(), now=NOW) == ""
    assert fresh.policy is None


@pytest.mark.django_db
def test_live_generator_never_answers_a_conversation() -> None:
    make_version(VersionKind.GENERATOR)
    conversation = make_conversation()
    settle_version(conversation, now=NOW)
    assert conversation.policy is None


# --- what must be served --------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_live_canary_and_pinned_versions_are_served_and_no_others() -> None:
    live = make_version(folder="/models/base")
    canary = make_version(state=VersionState.CANARY, origin=VersionOrigin.TRAINED, folder="/versions/canary")
    pinned = make_version(state=VersionState.RETIRED, origin=VersionOrigin.TRAINED, folder="/versions/old")
    make_version(state=VersionState.RETIRED)
    make_version(state=VersionState.CANDIDATE)
    make_version(VersionKind.JUDGE)
    unsafe = make_version(state=VersionState.UNSAFE)
    closed = make_version(state=VersionState.RETIRED)
    for version in (pinned, pinned, unsafe):
        make_conversation(policy=version)
    make_conversation(policy=closed, state=ConversationState.CLOSED)
    assert served_versions() == [
        VersionToServe(name=live.name, folder="/models/base", kind="base"),
        VersionToServe(name=canary.name, folder="/versions/canary", kind="adapter"),
        VersionToServe(name=pinned.name, folder="/versions/old", kind="adapter"),
    ]


@pytest.mark.django_db
def test_engines_own_model_has_no_folder() -> None:
    own = make_version(origin=VersionOrigin.OPERATOR, folder="/somewhere")
    assert served_versions() == [VersionToServe(name=own.name, folder="", kind="operator")]


# --- the directory --------------------------------------------------------------------------------------------------


def endpoint(url: str = "http://127.0.0.1:1") -> Endpoint:
    return Endpoint(base_url=url, model="m", driver="tests")


@pytest.fixture
async def directory(clean_redis: None) -> AsyncIterator[EndpointDirectory]:
    yield EndpointDirectory()
    await close_redis_here()


@pytest.mark.redis
async def test_version_is_found_where_the_keeper_wrote_it(directory: EndpointDirectory) -> None:
    await redis_here().hset(ENDPOINTS_KEY, "policy-1", endpoint().to_json())
    assert await directory.find("policy-1") == endpoint()


@pytest.mark.redis
@pytest.mark.parametrize("name", ["policy-2", ""])
async def test_version_that_is_not_served_is_unreachable(directory: EndpointDirectory, name: str) -> None:
    await redis_here().hset(ENDPOINTS_KEY, "policy-1", endpoint().to_json())
    with pytest.raises(EngineUnreachable):
        await directory.find(name)


@pytest.mark.redis
async def test_version_that_appears_is_found_at_once_and_one_that_moved_within_a_second(
    directory: EndpointDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await redis_here().hset(ENDPOINTS_KEY, "policy-1", endpoint().to_json())
    await directory.find("policy-1")
    await redis_here().hset(ENDPOINTS_KEY, "policy-2", endpoint().to_json())
    assert await directory.find("policy-2") == endpoint()
    moved = endpoint("http://127.0.0.1:2")
    await redis_here().hset(ENDPOINTS_KEY, "policy-1", moved.to_json())
    later = time.monotonic() + policies.DIRECTORY_AGE_S + 0.1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert await directory.find("policy-1") == moved


@pytest.mark.redis
async def test_last_answer_stands_while_redis_is_away(directory: EndpointDirectory, settings: Settings) -> None:
    await redis_here().hset(ENDPOINTS_KEY, "policy-1", endpoint().to_json())
    await directory.find("policy-1")
    await close_redis_here()
    settings.REDIS_URL = f"redis://127.0.0.1:{closed_port()}/0"
    directory._read_at_s = float("-inf")
    assert await directory.find("policy-1") == endpoint()
    with pytest.raises(EngineUnreachable):
        await directory.find("policy-2")


@pytest.mark.redis
async def test_last_answer_stands_until_a_restarted_redis_knows_again(directory: EndpointDirectory) -> None:
    await redis_here().hset(ENDPOINTS_KEY, "policy-1", endpoint().to_json())
    await directory.find("policy-1")
    await redis_here().delete(ENDPOINTS_KEY)
    directory._read_at_s = float("-inf")
    assert await directory.find("policy-1") == endpoint()
    await redis_here().hset(ENDPOINTS_KEY, "policy-2", endpoint().to_json())  # the keeper's next round
    assert await directory.find("policy-2") == endpoint()
    with pytest.raises(EngineUnreachable):
        await directory.find("policy-1")


# --- the first versions ---------------------------------------------------------------------------------------------


@pytest.fixture
def model_folder(tmp_path: Path, settings: Settings) -> Path:
    settings.RAPPORT_MODEL_FOLDER = str(tmp_path)
    settings.RAPPORT_JUDGE = "model"
    (tmp_path / "manifest.json").write_text(json.dumps({"base_sha256": "a" * 64, "size": 1, "parts": ["x"]}))
    return tmp_path


@pytest.mark.django_db
def test_first_start_makes_a_policy_a_generator_and_a_judge_live(model_folder: Path) -> None:
    versions = {version.kind: version for version in ensure_base_versions()}
    assert set(versions) == {VersionKind.POLICY, VersionKind.GENERATOR, VersionKind.JUDGE}
    policy = versions[VersionKind.POLICY]
    assert (policy.origin, policy.folder, policy.base_sha256) == (VersionOrigin.BASE, str(model_folder), "a" * 64)
    assert policy.name.startswith("policy-")
    for kind in (VersionKind.GENERATOR, VersionKind.JUDGE):
        assert versions[kind].config["served_by"] == policy.name
        assert versions[kind].config["implementation"] == "model"


@pytest.mark.django_db
def test_starting_again_changes_nothing(model_folder: Path) -> None:
    before = [(version.pk, version.name) for version in ensure_base_versions()]
    for _ in range(3):
        assert [(version.pk, version.name) for version in ensure_base_versions()] == before
    assert PolicyVersion.objects.count() == 3


@pytest.mark.django_db
def test_changed_model_is_a_new_version_and_the_earlier_one_retires(model_folder: Path) -> None:
    before = {version.kind: version.name for version in ensure_base_versions()}
    (model_folder / "manifest.json").write_text(json.dumps({"base_sha256": "b" * 64}))
    after = {version.kind: version.name for version in ensure_base_versions()}
    assert not set(before.values()) & set(after.values())
    states = dict(PolicyVersion.objects.values_list("name", "state"))
    assert all(states[name] == VersionState.RETIRED for name in before.values())
    assert all(states[name] == VersionState.LIVE for name in after.values())
    (model_folder / "manifest.json").write_text(json.dumps({"base_sha256": "a" * 64, "size": 1}))
    assert {version.kind: version.name for version in ensure_base_versions()} == before
    assert PolicyVersion.objects.count() == 6


@pytest.mark.django_db
def test_trained_version_that_is_live_stays_live(model_folder: Path) -> None:
    trained = make_version(origin=VersionOrigin.TRAINED)
    versions = {version.kind: version for version in ensure_base_versions()}
    assert versions[VersionKind.POLICY] == trained
    assert versions[VersionKind.GENERATOR].origin == VersionOrigin.BASE


@pytest.mark.django_db
def test_engines_own_model_is_named_by_its_address(settings: Settings) -> None:
    settings.RAPPORT_MODEL_FOLDER = ""
    settings.RAPPORT_ENGINE, settings.RAPPORT_ENGINE_URL = "remote", "http://models.example/v1"
    first = live_name()
    settings.RAPPORT_ENGINE_URL = "http://other.example/v1"
    assert live_name() != first
    live = live_version(VersionKind.POLICY)
    assert live is not None
    assert live.origin == VersionOrigin.OPERATOR


@pytest.mark.django_db
def test_encoder_judges_unless_a_setting_says_otherwise(settings: Settings) -> None:
    judge = live_judge()
    assert (judge.name, judge.config) == ("judge-00000000fade", {"implementation": "encoder"})
    assert live_judge() == judge
    settings.RAPPORT_JUDGE = "model"
    by_model = live_judge()
    assert by_model.config["implementation"] == "model"
    judge.refresh_from_db()
    assert judge.state == VersionState.RETIRED
    settings.RAPPORT_JUDGE = "encoder"
    assert live_judge() == judge
    assert PolicyVersion.objects.filter(kind=VersionKind.JUDGE).count() == 2


@pytest.mark.django_db
def test_new_weights_in_the_encoders_folder_are_a_new_judge(settings: Settings, tmp_path: Path) -> None:
    earlier = live_judge()
    settings.RAPPORT_ENCODER_FOLDER = str(tmp_path)
    (tmp_path / "manifest.json").write_text('{"judge_version": "judge-00000000beef", "files": {}}')
    assert live_judge().name == "judge-00000000beef"
    earlier.refresh_from_db()
    assert earlier.state == VersionState.RETIRED


def live_judge() -> PolicyVersion:
    return next(version for version in ensure_base_versions() if version.kind == VersionKind.JUDGE)


@pytest.mark.django_db(transaction=True)
async def test_encoder_elsewhere_is_asked_which_judge_it_serves(settings: Settings) -> None:
    settings.RAPPORT_ENCODER_FOLDER = ""
    async with FakeEncoder() as encoder:
        settings.RAPPORT_ENCODER_URL = encoder.url
        encoder.judge_version = "judge-00000000beef"
        assert await asyncio.to_thread(served_judge) == "judge-00000000beef"


@pytest.mark.django_db
def test_encoder_that_names_no_judge_stops_a_first_start_and_leaves_a_live_judge_alone(settings: Settings) -> None:
    settings.RAPPORT_ENCODER_FOLDER = ""  # and nobody listens at its address
    with pytest.raises(JudgeUnknown, match="RAPPORT_JUDGE=model"):
        ensure_base_versions()
    assert not PolicyVersion.objects.exists()
    make_version(VersionKind.JUDGE, name="judge-00000000beef", config={"implementation": "encoder"})
    assert live_judge().name == "judge-00000000beef"


def live_name() -> str:
    return next(version.name for version in ensure_base_versions() if version.kind == VersionKind.POLICY)


def test_name_is_a_hash_of_the_facts_whatever_their_order() -> None:
    assert name_of("policy", {"a": "1", "b": "2"}) == name_of("policy", {"b": "2", "a": "1"})
    assert name_of("policy", {"a": "1"}) != name_of("policy", {"a": "2"})
    assert len(name_of("policy", {})) == len("policy-") + 12


# --- one live version, whatever happens at once (A25) ---------------------------------------------------------------


@pytest.mark.django_db
def test_database_refuses_a_second_live_version_of_a_kind() -> None:
    make_version()
    make_version(VersionKind.JUDGE)
    with pytest.raises(DatabaseError), transaction.atomic():
        make_version()


@pytest.mark.django_db(transaction=True)
def test_readers_see_exactly_one_live_version_while_promotions_race() -> None:
    rows = [make_version(state=VersionState.LIVE if n == 0 else VersionState.RETIRED) for n in range(4)]
    seen: list[int] = []
    moved: list[int] = []
    failed: list[str] = []
    is_over = threading.Event()

    def promote(target: int) -> None:
        try:
            for _ in range(10):
                try:
                    with transaction.atomic():
                        PolicyVersion.objects.filter(kind=VersionKind.POLICY, state=VersionState.LIVE).update(
                            state=VersionState.RETIRED
                        )
                        PolicyVersion.objects.filter(pk=target).update(state=VersionState.LIVE)
                    moved.append(target)
                except DatabaseError as error:  # another one was faster: nothing of this one is left
                    failed.append(type(error).__name__)
        finally:
            connection.close()

    def read() -> None:
        try:
            while not is_over.is_set():
                seen.append(PolicyVersion.objects.filter(kind=VersionKind.POLICY, state=VersionState.LIVE).count())
        finally:
            connection.close()

    reader = threading.Thread(target=read)
    reader.start()
    writers = [threading.Thread(target=promote, args=(row.pk,)) for row in rows]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=20)
    is_over.set()
    reader.join(timeout=10)
    assert len(moved) + len(failed) == 40
    assert moved
    assert set(seen) == {1}


@pytest.mark.django_db(transaction=True)
def test_two_first_starts_at_once_leave_one_live_version_of_each_kind(model_folder: Path) -> None:
    barrier = threading.Barrier(3)

    def start() -> None:
        try:
            barrier.wait(5)
            ensure_base_versions()
        except DatabaseError:
            pass  # the other start was faster; this one is tried again by whoever started it
        finally:
            connection.close()

    threads = [threading.Thread(target=start) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert len(ensure_base_versions()) == 3
    assert PolicyVersion.objects.filter(state=VersionState.LIVE).count() == 3
    assert PolicyVersion.objects.count() == 3


# --- counting tokens ------------------------------------------------------------------------------------------------


def test_tokens_are_estimated_where_there_is_no_tokenizer(settings: Settings, tmp_path: Path) -> None:
    token_counter.cache_clear()
    settings.RAPPORT_MODEL_FOLDER = str(tmp_path)
    try:
        assert token_counter() is estimate_tokens
    finally:
        token_counter.cache_clear()


@pytest.mark.parametrize("place", ["tokenizer.json", "hf/tokenizer.json"])
def test_tokens_are_counted_by_the_models_own_tokenizer(settings: Settings, tmp_path: Path, place: str) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"so": 0, "sad": 1, "?": 2}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    (tmp_path / "hf").mkdir()
    tokenizer.save(str(tmp_path / place))
    token_counter.cache_clear()
    settings.RAPPORT_MODEL_FOLDER = str(tmp_path)
    try:
        assert token_counter()("so so sad") == 3
    finally:
        token_counter.cache_clear()


def test_base_version_that_was_judged_unsafe_is_not_brought_back_by_a_new_start(db: None) -> None:
    first = {version.kind: version for version in policies.ensure_base_versions()}
    policy = first[VersionKind.POLICY]
    policy.state = VersionState.UNSAFE
    policy.save()
    policies.ensure_base_versions()
    policy.refresh_from_db()
    assert policy.state == VersionState.UNSAFE


def test_base_version_follows_its_content_to_another_folder(db: None, settings: Settings, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(json.dumps({"base_sha256": "a" * 64}))
    settings.RAPPORT_MODEL_FOLDER = str(tmp_path / "one")
    first = {version.kind: version for version in policies.ensure_base_versions()}[VersionKind.POLICY]
    settings.RAPPORT_MODEL_FOLDER = str(tmp_path / "two")
    again = {version.kind: version for version in policies.ensure_base_versions()}[VersionKind.POLICY]
    assert again.name == first.name
    assert again.folder == str(tmp_path / "two")
    assert policies.served_versions()[0].folder == str(tmp_path / "two")
