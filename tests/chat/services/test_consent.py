"""Consent: append-only, the newest holds, never asked means no."""

import pytest

from chat.models import Consent
from chat.models.sites import ConsentPurpose
from chat.services.consent import CONSENT_VERSIONS, ConsentVersionUnknown, has_consent, record_consent
from tests.factories import make_visitor

pytestmark = pytest.mark.django_db
PURPOSE = ConsentPurpose.IMPROVEMENT
VERSION = CONSENT_VERSIONS[PURPOSE]


def test_newest_choice_holds_and_earlier_ones_stay() -> None:
    visitor, other = make_visitor(), make_visitor()
    assert not has_consent(visitor)
    record_consent(visitor, purpose=PURPOSE, version=VERSION, is_granted=True)
    assert has_consent(visitor)
    record_consent(visitor, purpose=PURPOSE, version=VERSION, is_granted=False)
    assert not has_consent(visitor)
    assert not has_consent(other)
    assert list(Consent.objects.values_list("is_granted", flat=True)) == [True, False]


def test_choice_about_a_text_that_we_do_not_know_is_no_choice() -> None:
    visitor = make_visitor()
    with pytest.raises(ConsentVersionUnknown):
        record_consent(visitor, purpose=PURPOSE, version="improvement-0", is_granted=True)
    assert Consent.objects.count() == 0
