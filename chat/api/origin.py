"""CORS of the start call: the one call that a host page itself may make, answered only to origins in a site's list.

Everything else is called by our own pages and needs no CORS. A request that names a foreign origin is refused before
it changes anything; one without an Origin header does not come from a foreign page.
"""

from collections.abc import Iterable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.errors import Refused
from chat.models import WidgetSite
from chat.origins import is_origin_allowed

PREFLIGHT_AGE_S = 600


def check_request_origin(request: Request, site: WidgetSite) -> None:
    """Raises Refused (403) where the request names an origin that is neither the site's nor ours."""
    origin = request.headers.get("Origin")
    if origin is not None and not is_origin_allowed(origin, [*site.origins, *settings.RAPPORT_ORIGINS]):
        raise Refused("origin_forbidden", detail="This page may not start a chat here.", status_code=403)


def allow_origin(response: Response, request: Request) -> Response:
    """Let the page of the request's (checked) origin read the answer. No cookies: none are ever looked at."""
    _grant(response, request.headers.get("Origin"))
    return response


def answer_preflight(request: HttpRequest) -> HttpResponse:
    """The answer to OPTIONS: granted where any active site lists the origin; which site it is about comes later."""
    origin = request.headers.get("Origin")
    response = HttpResponse(status=204)
    response["Vary"] = "Origin"
    if is_origin_allowed(origin, _all_origins()):
        _grant(response, origin)
        response["Access-Control-Allow-Methods"] = "POST"
        response["Access-Control-Allow-Headers"] = "content-type"
        response["Access-Control-Max-Age"] = str(PREFLIGHT_AGE_S)
    return response


def _all_origins() -> Iterable[str]:
    yield from settings.RAPPORT_ORIGINS
    for origins in WidgetSite.objects.filter(is_active=True).values_list("origins", flat=True):
        yield from origins


def _grant(response: HttpResponse, origin: str | None) -> None:
    response["Vary"] = "Origin"
    if origin is not None:
        response["Access-Control-Allow-Origin"] = origin
