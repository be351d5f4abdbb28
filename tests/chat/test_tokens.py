"""Visitor tokens and signed identities: only ours, only in time, only as issued."""

import base64
import hmac
import inspect
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat import tokens
from chat.tokens import (
    TokenExpired,
    TokenInvalid,
    VisitorClaims,
    is_identity_genuine,
    issue_token,
    read_token,
    sign_identity,
)

SECRET = "a secret of the tests"
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def claims(**changed: object) -> VisitorClaims:
    fields = {
        "site": 7,
        "visitor": uuid4(),
        "conversation": uuid4(),
        "epoch": 3,
        "expires_at": NOW + timedelta(days=1),
        **changed,
    }
    return VisitorClaims(**fields)  # type: ignore[arg-type]


def test_token_gives_back_its_claims() -> None:
    issued = claims()
    assert read_token(issue_token(issued, secret=SECRET), now=NOW, secret=SECRET) == issued


def test_token_of_another_secret_is_refused() -> None:
    with pytest.raises(TokenInvalid):
        read_token(issue_token(claims(), secret="another"), now=NOW, secret=SECRET)


def test_token_ends_at_its_second() -> None:
    token = issue_token(claims(expires_at=NOW), secret=SECRET)
    assert read_token(token, now=NOW - timedelta(seconds=1), secret=SECRET)
    with pytest.raises(TokenExpired):
        read_token(token, now=NOW, secret=SECRET)


def test_every_changed_character_is_noticed() -> None:
    token = issue_token(claims(), secret=SECRET)
    for position, character in enumerate(token):
        changed = token[:position] + ("A" if character != "A" else "B") + token[position + 1 :]
        with pytest.raises(TokenInvalid):
            read_token(changed, now=NOW, secret=SECRET)


def test_claims_of_another_token_do_not_fit_its_signature() -> None:
    one, other = (issue_token(claims(), secret=SECRET).split(".") for _ in range(2))
    with pytest.raises(TokenInvalid):
        read_token(".".join([one[0], other[1], one[2]]), now=NOW, secret=SECRET)


@given(st.text(alphabet=st.characters(codec=None), max_size=300))
def test_any_text_is_a_token_or_token_invalid(text: str) -> None:
    with pytest.raises(TokenInvalid):
        read_token(text, now=NOW, secret=SECRET)


@given(st.binary(max_size=120))
def test_signed_rubbish_is_refused_too(payload: bytes) -> None:
    """Even with our own signature, claims must be claims."""
    encoded = base64.urlsafe_b64encode(payload).decode().rstrip("=")
    signature = base64.urlsafe_b64encode(tokens._sign(encoded, secret=SECRET)).decode().rstrip("=")
    with pytest.raises(TokenInvalid):
        read_token(f"r1.{encoded}.{signature}", now=NOW, secret=SECRET)


def test_identity_is_genuine_only_with_the_sites_own_signature() -> None:
    signature = sign_identity("user-17", secret="site secret")
    assert is_identity_genuine("user-17", signature, secret="site secret")
    assert signature == hmac.new(b"site secret", b"user-17", "sha256").hexdigest()
    assert not is_identity_genuine("user-18", signature, secret="site secret")
    assert not is_identity_genuine("user-17", signature, secret="another")
    assert not is_identity_genuine("user-17", "", secret="site secret")
    assert not is_identity_genuine("", sign_identity("", secret="site secret"), secret="site secret")
    assert not is_identity_genuine("user-17", sign_identity("user-17", secret=""), secret="")


@pytest.mark.parametrize("signature", ["\ud83d", "é" * 64, "0" * 64, "x" * 10_000])
def test_strange_signatures_are_refused_without_an_error(signature: str) -> None:
    assert not is_identity_genuine("user-17", signature, secret="site secret")


def test_signatures_are_compared_in_constant_time() -> None:
    """Field report B27: `==` tells an attacker how far they got."""
    for function in (is_identity_genuine, read_token):
        source = inspect.getsource(function)
        assert "hmac.compare_digest" in source
        assert "signature ==" not in source
        assert "== signature" not in source
