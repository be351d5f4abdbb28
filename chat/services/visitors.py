"""How a visitor comes in and what their token opens: start, resolve, rate, close.

Doors call these; `chat.tokens` holds the form of tokens, this file asks the database whether the claims still hold.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from chat.models import Conversation, Rating, Visitor, WidgetSite
from chat.models.conversations import ConversationKind, ConversationState
from chat.tokens import TokenInvalid, VisitorClaims, is_identity_genuine, issue_token, read_token

SPLIT_BUCKETS = 100
_SPLIT_SALT = b"rapport split 1"  # constant for ever: a changed salt would move visitors between splits (rule 8)


class IdentityRefused(Exception):
    """The site demands a signed identity, or the one that came was not signed by the site (B27)."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code  # identity_required | identity_invalid


@dataclass(frozen=True, kw_only=True, slots=True)
class SignedIdentity:
    """An id of the host site with the site's HMAC of it."""

    external_id: str
    signature: str


@dataclass(frozen=True, kw_only=True, slots=True)
class VisitorAccess:
    """What a valid token opens: this visitor, on this site; `conversation_id` is the one it was issued for."""

    visitor: Visitor
    site: WidgetSite
    conversation_id: UUID
    expires_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """A conversation to talk in, with the token that opens it."""

    token: str
    conversation: Conversation
    visitor: Visitor
    expires_at: datetime
    is_continued: bool


def split_bucket_of(visitor_id: UUID) -> int:
    """Which of the 100 split buckets a visitor falls into; the same in every conversation (rule 8)."""
    digest = hashlib.sha256(_SPLIT_SALT + visitor_id.bytes).digest()
    return int.from_bytes(digest[:8]) % SPLIT_BUCKETS


def resolve_token(token: str, *, now: datetime | None = None) -> VisitorAccess:
    """What a token opens now. Raises TokenExpired or TokenInvalid: also for an older epoch, an erased visitor, a closed
    site, and an anonymous visitor on a site that demands signed identities."""
    claims = read_token(token, now=now or timezone.now(), secret=settings.SECRET_KEY)
    visitor = Visitor.objects.select_related("site").filter(pk=claims.visitor, site_id=claims.site).first()
    if visitor is None:
        raise TokenInvalid("visitor")
    if visitor.token_epoch != claims.epoch:
        raise TokenInvalid("epoch")
    if not visitor.site.is_active:
        raise TokenInvalid("site")
    if visitor.site.is_identity_required and not visitor.is_verified:
        raise TokenInvalid("identity")
    return VisitorAccess(
        visitor=visitor, site=visitor.site, conversation_id=claims.conversation, expires_at=claims.expires_at
    )


def start_conversation(
    site: WidgetSite,
    *,
    token: str = "",
    identity: SignedIdentity | None = None,
    locale: str = "",
    now: datetime | None = None,
) -> Started:
    """Continue the visitor's open conversation or begin one. Raises IdentityRefused.

    A valid token of this site continues its conversation; any other token counts as none: whoever holds it comes in as
    somebody new. A signed identity wins over a token, and nothing moves from an anonymous visitor to an identified one.
    """
    now = now or timezone.now()
    _check_identity(site, identity)
    access = _access_of(site, token, now=now)
    with transaction.atomic():
        visitor = _visitor_for(site, access=access, identity=identity)
        if locale and visitor.locale != locale:
            visitor.locale = locale
            visitor.save(update_fields=["locale"])
        preferred = access.conversation_id if access else None
        conversation = _open_conversation(visitor, preferred=preferred)
        is_continued = conversation is not None
        if conversation is None:
            conversation = _new_conversation(site, visitor)
    expires_at = (now + settings.RAPPORT_VISITOR_TOKEN_AGE).replace(microsecond=0)
    return Started(
        token=token_for(conversation, visitor=visitor, expires_at=expires_at),
        conversation=conversation,
        visitor=visitor,
        expires_at=expires_at,
        is_continued=is_continued,
    )


def token_for(conversation: Conversation, *, visitor: Visitor, expires_at: datetime) -> str:
    """A fresh token for the conversation."""
    claims = VisitorClaims(
        site=conversation.site_id,
        visitor=visitor.pk,
        conversation=conversation.pk,
        epoch=visitor.token_epoch,
        expires_at=expires_at,
    )
    return issue_token(claims, secret=settings.SECRET_KEY)


def end_tokens(visitor_id: UUID) -> None:
    """Make every token that the visitor holds worthless, on every device."""
    Visitor.objects.filter(pk=visitor_id).update(token_epoch=F("token_epoch") + 1)


def rate_conversation(conversation: Conversation, *, stars: int, comment: str = "") -> Rating:
    """Append the visitor's one to five stars; the newest holds. A closed conversation may be rated too."""
    if not 1 <= stars <= 5:
        raise ValueError(f"A rating has 1 to 5 stars, not {stars}.")
    return Rating.objects.create(conversation=conversation, stars=stars, comment=comment)


def close_conversation(conversation_id: UUID) -> Conversation:
    """End the conversation; closing twice changes nothing. A running reply ends and is kept; none follows it."""
    with transaction.atomic():
        conversation = Conversation.objects.select_for_update().get(pk=conversation_id)
        if conversation.state == ConversationState.CLOSED:
            return conversation
        conversation.state = ConversationState.CLOSED
        conversation.closed_at = timezone.now()
        conversation.save(update_fields=["state", "closed_at"])
    return conversation


def _check_identity(site: WidgetSite, identity: SignedIdentity | None) -> None:
    if identity is None:
        if site.is_identity_required:
            raise IdentityRefused("identity_required")
        return
    if not is_identity_genuine(identity.external_id, identity.signature, secret=site.identity_secret):
        raise IdentityRefused("identity_invalid")


def _access_of(site: WidgetSite, token: str, *, now: datetime) -> VisitorAccess | None:
    if not token:
        return None
    try:
        access = resolve_token(token, now=now)
    except TokenInvalid:
        return None
    return access if access.site.pk == site.pk else None


def _visitor_for(site: WidgetSite, *, access: VisitorAccess | None, identity: SignedIdentity | None) -> Visitor:
    if identity is not None:
        visitor, _ = Visitor.objects.get_or_create(
            site=site, external_id=identity.external_id, defaults={"is_verified": True}
        )
        return visitor
    return access.visitor if access else Visitor.objects.create(site=site)


def _open_conversation(visitor: Visitor, *, preferred: UUID | None) -> Conversation | None:
    """The open conversation of the token, else the newest open one (an identified visitor on a new device)."""
    open_ones = Conversation.objects.visible_to(visitor).filter(state=ConversationState.OPEN)
    named = open_ones.filter(pk=preferred).first() if preferred else None
    return named or (open_ones.order_by("-last_activity_at").first() if visitor.is_verified else None)


def _new_conversation(site: WidgetSite, visitor: Visitor) -> Conversation:
    return Conversation.objects.create(
        site=site,
        visitor=visitor,
        kind=ConversationKind.DEMO if site.is_demo else ConversationKind.VISITOR,
        split_bucket=split_bucket_of(visitor.pk),
        mode=site.mode,
    )
