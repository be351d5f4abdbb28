"""The Content-Security-Policy of every answer. Pages that may be framed set their own; everything else may not be.

`default-src 'self'`: no inline script, no foreign one, whatever a text smuggles into a page (field report A14).
"""

from collections.abc import Callable, Iterable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from chat.origins import valid_origins

HEADER = "Content-Security-Policy"


def content_policy(*, frame_ancestors: Iterable[str] = ()) -> str:
    """The policy; `frame_ancestors` are origins that may frame the page, malformed ones are left out."""
    ancestors = " ".join(valid_origins(frame_ancestors)) or "'none'"
    return (
        "default-src 'self'; img-src 'self' data:; connect-src 'self' ws: wss:; object-src 'none'; "
        f"frame-ancestors {ancestors}; base-uri 'none'; form-action 'self'"
    )


class ContentPolicy:
    """Middleware: an answer without a policy of its own gets the strict one. Asynchronous views stay so."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self._get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self):
            return self._answer(request)
        return _with_policy(self._get_response(request))

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        return _with_policy(await self._get_response(request))


def _with_policy(response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault(HEADER, content_policy())
    return response
