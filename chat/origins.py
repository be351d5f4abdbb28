"""What an origin is, which ones a site may name, and whether a request's origin is among them. Pure.

The site's own list governs `frame-ancestors`, the widget's messages and the CORS answer of the start call; our own
origins (RAPPORT_ORIGINS) govern sockets. `*` is never an origin: it would let any page act for a visitor (field report
A7).
"""

import re
from collections.abc import Iterable

_ORIGIN = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)(?::(?P<port>\d{1,5}))?"
)
_DEFAULT_PORTS = {"http": "80", "https": "443"}


class OriginInvalid(ValueError):
    """The text is no origin a site may name; the sentence says which one and why."""

    def __init__(self, origin: object, reason: str) -> None:
        super().__init__(f"{origin!r} cannot be an origin: {reason}.")
        self.reason = reason


def check_origin(origin: object) -> str:
    """The origin in its normal form (`https://example.org`, no default port, no slash). Raises OriginInvalid."""
    if not isinstance(origin, str):
        raise OriginInvalid(origin, "it is not a text")
    if "*" in origin:
        raise OriginInvalid(origin, "a star would let every page in; name each origin")
    found = _ORIGIN.fullmatch(origin.lower())
    if found is None:
        raise OriginInvalid(origin, "write scheme, host and, where needed, port, and nothing more: https://example.org")
    port = found["port"]
    if port is not None and not 0 < int(port) < 65536:
        raise OriginInvalid(origin, "the port is out of range")
    if ".." in found["host"]:
        raise OriginInvalid(origin, "the host is malformed")
    shown_port = "" if port is None or port == _DEFAULT_PORTS[found["scheme"]] else f":{int(port)}"
    return f"{found['scheme']}://{found['host']}{shown_port}"


def check_origins(origins: object) -> tuple[str, ...]:
    """A site's whole list in normal form. Raises OriginInvalid for the first that may not be there."""
    if not isinstance(origins, list | tuple):
        raise OriginInvalid(origins, "a list of origins is needed")
    return tuple(check_origin(origin) for origin in origins)


def valid_origins(origins: Iterable[str]) -> tuple[str, ...]:
    """Those that are origins, in normal form; malformed ones are left out."""
    return tuple(known for known in map(_normal_or_none, origins) if known)


def is_origin_allowed(origin: str | None, allowed: Iterable[str]) -> bool:
    """Whether a request's Origin header names one of `allowed`, exactly; a missing one and `null` never do."""
    if not origin or origin == "null":
        return False
    try:
        normal = check_origin(origin)
    except OriginInvalid:
        return False
    return normal in valid_origins(allowed)


def _normal_or_none(origin: str) -> str | None:
    try:
        return check_origin(origin)
    except OriginInvalid:
        return None
