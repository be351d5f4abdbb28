"""Origins: what one is, and that only those in the list get in (field report A7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.origins import OriginInvalid, check_origin, check_origins, is_origin_allowed

ALLOWED = ["https://example.org", "http://localhost:8000"]


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "https://*.example.org",
        "example.org",
        "https://example.org/",
        "https://example.org/chat",
        "null",
        "",
        5,
        None,
        "ftp://example.org",
        "https://",
        "https://exa mple.org",
        "https://a@example.org",
        "https://example.org:99999",
        "https://example.org:",
        "https://example.org;",
        "https://example.org 'self'",
        "javascript:alert(1)",
        "https://a..b",
    ],
)
def test_what_is_no_origin_is_refused(origin: object) -> None:
    with pytest.raises(OriginInvalid):
        check_origin(origin)


@pytest.mark.parametrize(
    ("origin", "normal"),
    [
        ("https://Example.ORG", "https://example.org"),
        ("https://example.org:443", "https://example.org"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_an_origin_has_one_normal_form(origin: str, normal: str) -> None:
    assert check_origin(origin) == normal


def test_a_list_is_refused_for_its_first_bad_origin() -> None:
    with pytest.raises(OriginInvalid, match="star"):
        check_origins(["https://example.org", "*"])
    with pytest.raises(OriginInvalid):
        check_origins("https://example.org")


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "null",
        "https://evil.example",
        "https://example.org.evil.example",
        "https://sub.example.org",
        "http://example.org",
        "https://example.org:8443",
        "http://localhost",
        "http://localhost:8001",
        "*",
    ],
)
def test_foreign_origins_stay_out(origin: str | None) -> None:
    assert not is_origin_allowed(origin, ALLOWED)


def test_own_origins_come_in_whatever_their_spelling() -> None:
    assert is_origin_allowed("https://EXAMPLE.org:443", ALLOWED)
    assert is_origin_allowed("http://localhost:8000", ALLOWED)


def test_a_star_in_the_list_lets_nobody_in() -> None:
    assert not is_origin_allowed("https://evil.example", ["*"])


@given(st.text(max_size=60))
def test_checking_is_a_verdict_and_never_another_error(text: str) -> None:
    try:
        normal = check_origin(text)
    except OriginInvalid:
        return
    assert check_origin(normal) == normal
