"""Visitor tokens and signed identities: issue, read, verify. Pure: the secret and the clock are handed in.

A token is `r1.<claims>.<signature>`, both parts URL-safe base64 without padding: JSON claims and the HMAC-SHA256
of them under a key derived from the secret. It is not encrypted: it holds ids, an epoch and a time. Called by
`services.visitors`, which also asks the database whether the claims still hold (epoch, site, visitor).
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import orjson

from chat.protocol import MAX_TOKEN_CHARS

_MARK = "r1"
_TOKEN_PURPOSE = b"rapport visitor token 1"
MAX_IDENTITY_CHARS = 128


class TokenInvalid(Exception):
    """The text is no token of ours: wrong form, wrong signature or claims that no longer hold."""

    def __init__(self, reason: str = "form") -> None:
        super().__init__(f"Visitor token refused: {reason}.")
        self.reason = reason


class TokenExpired(TokenInvalid):
    """The token was ours, and its time is over."""

    def __init__(self, expired_at: datetime) -> None:
        super().__init__("expired")
        self.expired_at = expired_at


@dataclass(frozen=True, kw_only=True, slots=True)
class VisitorClaims:
    """Who may do what until when. `epoch` is compared with the visitor's row: raising that ends every older token."""

    site: int
    visitor: UUID
    conversation: UUID
    epoch: int
    expires_at: datetime


def issue_token(claims: VisitorClaims, *, secret: str) -> str:
    """The claims as a signed token; `expires_at` is kept in whole seconds."""
    content = {
        "c": claims.conversation.hex,
        "e": claims.epoch,
        "s": claims.site,
        "v": claims.visitor.hex,
        "x": int(claims.expires_at.timestamp()),
    }
    payload = _to_base64(orjson.dumps(content))
    return f"{_MARK}.{payload}.{_to_base64(_sign(payload, secret=secret))}"


def read_token(token: str, *, now: datetime, secret: str) -> VisitorClaims:
    """The claims of a token of ours that has not expired. Raises TokenInvalid or TokenExpired, whatever arrives."""
    parts = token.split(".") if len(token) <= MAX_TOKEN_CHARS and token.isascii() else []
    if len(parts) != 3 or parts[0] != _MARK:
        raise TokenInvalid
    _, payload, signature = parts
    if not hmac.compare_digest(_to_base64(_sign(payload, secret=secret)).encode(), signature.encode()):
        raise TokenInvalid("signature")
    claims = _read_claims(payload)
    if claims.expires_at <= now:
        raise TokenExpired(claims.expires_at)
    return claims


def sign_identity(external_id: str, *, secret: str) -> str:
    """What a host site computes on its own server: hex HMAC-SHA256 of the visitor's id under the site's secret."""
    return hmac.new(secret.encode(), external_id.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def is_identity_genuine(external_id: str, signature: str, *, secret: str) -> bool:
    """Whether the host site signed this id; compared in constant time (field report B27)."""
    if not external_id or not secret or len(external_id) > MAX_IDENTITY_CHARS:
        return False
    expected = sign_identity(external_id, secret=secret)
    return hmac.compare_digest(expected.encode(), signature.encode("utf-8", "surrogatepass"))


def _sign(payload: str, *, secret: str) -> bytes:
    key = hmac.new(secret.encode(), _TOKEN_PURPOSE, hashlib.sha256).digest()  # one secret, one key per purpose
    return hmac.new(key, payload.encode(), hashlib.sha256).digest()


def _read_claims(payload: str) -> VisitorClaims:
    try:
        content = orjson.loads(_from_base64(payload))
        return VisitorClaims(
            site=int(content["s"]),
            visitor=UUID(content["v"]),
            conversation=UUID(content["c"]),
            epoch=int(content["e"]),
            expires_at=datetime.fromtimestamp(int(content["x"]), tz=UTC),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, OSError) as error:
        raise TokenInvalid("claims") from error


def _to_base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _from_base64(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise TokenInvalid("claims") from error
