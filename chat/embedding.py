"""What other people's pages get: the widget's scripts, and the page that a frame shows where it may not show the chat.

`deploy.urls` routes to the scripts and the demonstration; `chat.pages` asks `refusal` before it answers with a chat.
"""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.contrib.staticfiles import finders
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import condition, require_safe

from chat.headers import content_policy
from chat.helplines import resources_for
from chat.models import WidgetSite
from chat.origins import is_origin_allowed

# A new build reaches every host page within minutes; a server that is away for a while breaks none.
CACHE_CONTROL = "public, max-age=300, stale-while-revalidate=86400"


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """A built script as it is served."""

    plain: bytes
    gzipped: bytes
    etag: str


@cache
def _read(path: Path, _changed_ns: int) -> Script:
    plain = path.read_bytes()
    etag = f'W/"{hashlib.sha256(plain).hexdigest()[:16]}"'
    return Script(plain=plain, gzipped=gzip.compress(plain, 9, mtime=0), etag=etag)


def _script(name: str) -> Script:
    found = finders.find(f"front/{name}")
    if not found:
        raise Http404(f"{name} is not built; run `make install`.")
    path = Path(found)
    return _read(path, path.stat().st_mtime_ns)


def _etag(_: HttpRequest, name: str) -> str:
    return _script(name).etag


@require_safe
@condition(etag_func=_etag)
def widget_script(request: HttpRequest, name: str) -> HttpResponse:
    """`widget.js` or `widget-panel.js`, for pages of any origin; they carry nothing secret and read no cookie."""
    script = _script(name)
    takes_gzip = "gzip" in request.headers.get("Accept-Encoding", "")
    response = HttpResponse(script.gzipped if takes_gzip else script.plain, content_type="text/javascript")
    if takes_gzip:
        response["Content-Encoding"] = "gzip"
    patch_vary_headers(response, ["Accept-Encoding"])
    response["Cache-Control"] = CACHE_CONTROL
    response["Access-Control-Allow-Origin"] = "*"
    response["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


def refusal(request: HttpRequest, *, slug: str, site: WidgetSite | None) -> HttpResponse | None:
    """None where the page that `?host=` names may show the chat of the site; else the page that says why not.

    Only that page may frame the answer. The visitor reads that the fault is not theirs, and where help is; whoever
    embeds the widget reads in the console what to do.
    """
    host = request.GET.get("host", "")
    if not host or (site is not None and is_origin_allowed(host, site.origins)):
        return None
    if site is None:
        code, status = "unknown_site", 404
        sentence = f"No active site has the slug {slug}: look in the admin under Widget sites."
    else:
        code, status = "origin_not_allowed", 403
        sentence = f"{host[:80]} is not among the origins of the site {slug}: add it in the admin under Widget sites."
    return _refused(request, host=host, status=status, site=site, reason={"code": code, "sentence": sentence})


@xframe_options_exempt
def _refused(
    request: HttpRequest, *, host: str, status: int, site: WidgetSite | None, reason: dict[str, str]
) -> HttpResponse:
    lines = resources_for(site or WidgetSite(), country="", locale="")
    context = {"host": host, "helplines": lines, **reason}
    response = render(request, "chat/refused.html", context, status=status)
    response["Content-Security-Policy"] = content_policy(frame_ancestors=[host])
    response["Cache-Control"] = "no-store"
    return response
