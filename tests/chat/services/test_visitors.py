"""Who comes in, what a token opens, and that a signed identity is the only way into an identity (B27)."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from chat.models import Conversation, Rating, Visitor
from chat.models.conversations import ConversationKind, ConversationState
from chat.services.visitors import (
    IdentityRefused,
    SignedIdentity,
    close_conversation,
    end_tokens,
    rate_conversation,
    resolve_token,
    split_bucket_of,
    start_conversation,
    token_for,
)
from chat.tokens import TokenExpired, TokenInvalid, sign_identity
from tests.factories import make_conversation, make_site

pytestmark = pytest.mark.django_db


def signed(site: object, external_id: str = "user-17") -> SignedIdentity:
    secret = site.identity_secret  # type: ignore[attr-defined]
    return SignedIdentity(external_id=external_id, signature=sign_identity(external_id, secret=secret))


def test_first_start_makes_an_anonymous_visitor_with_a_conversation() -> None:
    site = make_site(mode="guided")
    started = start_conversation(site, locale="en-GB")
    access = resolve_token(started.token)
    assert access.visitor == started.visitor
    assert access.conversation_id == started.conversation.pk
    assert not started.is_continued
    assert (started.visitor.external_id, started.visitor.is_verified, started.visitor.locale) == ("", False, "en-GB")
    assert started.conversation.mode == "guided"
    assert started.conversation.split_bucket == split_bucket_of(started.visitor.pk)


def test_valid_token_continues_its_conversation() -> None:
    site = make_site()
    first = start_conversation(site)
    second = start_conversation(site, token=first.token)
    assert second.is_continued
    assert second.conversation == first.conversation
    assert Visitor.objects.count() == 1


def test_after_closing_the_same_visitor_begins_anew_in_the_same_split() -> None:
    site = make_site()
    first = start_conversation(site)
    close_conversation(first.conversation.pk)
    second = start_conversation(site, token=first.token)
    assert second.visitor == first.visitor
    assert second.conversation != first.conversation
    assert second.conversation.split_bucket == first.conversation.split_bucket


@pytest.mark.parametrize("token", ["", "nonsense", "r1.e30.AAAA"])
def test_a_token_that_opens_nothing_counts_as_none(token: str) -> None:
    site = make_site()
    start_conversation(site)
    assert not start_conversation(site, token=token).is_continued
    assert Visitor.objects.count() == 2


def test_a_token_of_another_site_opens_nothing_here() -> None:
    first = start_conversation(make_site())
    second = start_conversation(make_site(), token=first.token)
    assert second.visitor != first.visitor


def test_demo_sites_make_demo_conversations() -> None:
    assert start_conversation(make_site(is_demo=True)).conversation.kind == ConversationKind.DEMO


def test_expired_token_opens_nothing() -> None:
    conversation = make_conversation()
    token = token_for(conversation, visitor=conversation.visitor, expires_at=timezone.now() - timedelta(seconds=2))
    with pytest.raises(TokenExpired):
        resolve_token(token)


def test_raised_epoch_closed_site_and_erased_visitor_make_tokens_worthless() -> None:
    for spoil in ("epoch", "site", "visitor", "identity"):
        started = start_conversation(make_site())
        if spoil == "epoch":
            end_tokens(started.visitor.pk)
        elif spoil == "site":
            type(started.visitor.site).objects.update(is_active=False)
        elif spoil == "identity":
            type(started.visitor.site).objects.update(is_active=True, is_identity_required=True)
        else:
            started.visitor.delete()
        with pytest.raises(TokenInvalid, match=spoil):
            resolve_token(started.token)
        type(started.visitor.site).objects.update(is_active=True, is_identity_required=False)


def test_signed_identity_is_one_visitor_on_every_device() -> None:
    site = make_site()
    phone = start_conversation(site, identity=signed(site))
    laptop = start_conversation(site, identity=signed(site))
    assert phone.visitor == laptop.visitor
    assert laptop.conversation == phone.conversation
    assert phone.visitor.is_verified


@pytest.mark.parametrize("signature", ["", "0" * 64, "wrong"])
def test_unsigned_identity_is_refused_and_makes_no_row(signature: str) -> None:
    site = make_site()
    with pytest.raises(IdentityRefused, match="identity_invalid"):
        start_conversation(site, identity=SignedIdentity(external_id="victim@example.org", signature=signature))
    assert Visitor.objects.count() == 0


def test_signature_of_one_site_opens_no_identity_on_another() -> None:
    here, there = make_site(), make_site()
    with pytest.raises(IdentityRefused):
        start_conversation(there, identity=signed(here))


def test_mandatory_mode_refuses_the_anonymous_and_an_old_token() -> None:
    site = make_site()
    anonymous = start_conversation(site)
    site.is_identity_required = True
    site.save()
    for token in ("", anonymous.token):
        with pytest.raises(IdentityRefused, match="identity_required"):
            start_conversation(site, token=token)
    assert Visitor.objects.count() == 1
    assert start_conversation(site, identity=signed(site)).visitor != anonymous.visitor


def test_nothing_moves_from_an_anonymous_visitor_to_an_identity() -> None:
    site = make_site()
    anonymous = start_conversation(site)
    identified = start_conversation(site, token=anonymous.token, identity=signed(site))
    assert identified.conversation != anonymous.conversation
    assert Conversation.objects.get(pk=anonymous.conversation.pk).visitor == anonymous.visitor


def test_an_anonymous_visitor_never_gets_another_open_conversation_by_chance() -> None:
    site = make_site()
    first = start_conversation(site)
    make_conversation(first.visitor)
    close_conversation(first.conversation.pk)
    assert not start_conversation(site, token=first.token).is_continued


def test_rating_appends_and_knows_its_range() -> None:
    conversation = make_conversation()
    rate_conversation(conversation, stars=2)
    rate_conversation(conversation, stars=5, comment="better")
    assert list(Rating.objects.values_list("stars", flat=True)) == [2, 5]
    for stars in (0, 6):
        with pytest.raises(ValueError, match="1 to 5"):
            rate_conversation(conversation, stars=stars)


def test_closing_twice_keeps_the_first_time() -> None:
    conversation = make_conversation()
    first = close_conversation(conversation.pk)
    again = close_conversation(conversation.pk)
    assert again.state == ConversationState.CLOSED
    assert again.closed_at == first.closed_at


def test_split_buckets_are_spread_and_constant() -> None:
    buckets = [split_bucket_of(uuid4()) for _ in range(5_000)]
    assert set(buckets) == set(range(100))
    visitor_id = uuid4()
    assert split_bucket_of(visitor_id) == split_bucket_of(visitor_id)
