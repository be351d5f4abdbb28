"""A version that is published or whose pointer moves is news for the engine's keeper, after the commit."""

import pytest
from django.db import transaction
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from chat import store
from chat.models import PolicyVersion
from chat.models.learning import VersionKind, VersionOrigin, VersionState
from chat.store import KEEPER_WAKE_KEY, WAKE_TTL_S, redis_sync
from tests.fakes.engine import closed_port

pytestmark = [pytest.mark.redis, pytest.mark.django_db]


def make_version() -> PolicyVersion:
    return PolicyVersion.objects.create(
        kind=VersionKind.POLICY, name="policy-1", origin=VersionOrigin.TRAINED, state=VersionState.CANARY
    )


def words() -> int:
    return int(redis_sync().llen(KEEPER_WAKE_KEY))


def test_publishing_and_moving_the_pointer_leave_one_word_that_does_not_stay(
    clean_redis: None, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        make_version()
        assert words() == 0  # the keeper must not look before the row is there
    assert words() == 1
    redis_sync().delete(KEEPER_WAKE_KEY)
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        PolicyVersion.objects.filter(name="policy-1").update(state=VersionState.LIVE)
        PolicyVersion.objects.filter(name="policy-1").update(state=VersionState.RETIRED)
    assert words() == 1
    assert 0 < redis_sync().ttl(KEEPER_WAKE_KEY) <= WAKE_TTL_S


def test_without_redis_a_version_is_published_all_the_same(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks, settings: Settings
) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{closed_port()}/0"
    store.redis_sync.cache_clear()
    try:
        with django_capture_on_commit_callbacks(execute=True):
            make_version()
    finally:
        store.redis_sync.cache_clear()
    assert PolicyVersion.objects.filter(name="policy-1").exists()
