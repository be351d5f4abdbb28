"""What other people's pages get: the scripts with their headers, and the refusal that says what to do."""

import gzip
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from chat.models import WidgetSite
from tests.factories import make_site

pytestmark = pytest.mark.django_db
HOST = "https://shop.example"


@pytest.fixture
def site(db: None) -> WidgetSite:
    return make_site(slug="shop", origins=[HOST])


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder as the front end's build leaves it; these tests run without one."""
    for name in ("widget.js", "widget-panel.js"):
        (tmp_path / name).write_text(f"// {name}\n" * 50)
    monkeypatch.setattr(finders, "find", lambda path: str(tmp_path / path.removeprefix("front/")))
    return tmp_path


def frame(slug: str, host: str) -> Any:
    return Client().get(f"/chat/{slug}/", {"host": host})


def told(response: Any) -> dict[str, str]:
    """What the refusal hands to the embedding page."""
    body = re.search(r"<body ([^>]*)>", response.content.decode())
    assert body is not None
    return {name: unescape(value) for name, value in re.findall(r'data-(\w+)="([^"]*)"', body[1])}


@pytest.mark.parametrize("name", ["widget.js", "widget-panel.js"])
def test_scripts_may_be_loaded_by_any_page_and_are_fresh_within_minutes(built: Path, name: str) -> None:
    response = Client().get(f"/{name}")
    assert response.status_code == 200
    assert response["Content-Type"] == "text/javascript"
    assert response["Access-Control-Allow-Origin"] == "*"
    assert response["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert response["Cache-Control"] == "public, max-age=300, stale-while-revalidate=86400"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert not response.cookies
    again = Client().get(f"/{name}", headers={"If-None-Match": response["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_script_is_sent_compressed_to_whoever_takes_it(built: Path) -> None:
    plain = Client().get("/widget.js")
    small = Client().get("/widget.js", headers={"Accept-Encoding": "gzip, br"})
    assert small["Content-Encoding"] == "gzip"
    assert gzip.decompress(small.content) == plain.content
    assert "Accept-Encoding" in plain["Vary"]
    assert "Accept-Encoding" in small["Vary"]


def test_a_new_build_is_served_without_a_restart(built: Path) -> None:
    old = Client().get("/widget.js")
    (built / "widget.js").write_text("// a new build")
    new = Client().get("/widget.js", headers={"If-None-Match": old["ETag"]})
    assert (new.status_code, new.content) == (200, b"// a new build")


def test_chat_opens_in_a_widget_of_a_listed_page(site: WidgetSite) -> None:
    response = frame("shop", HOST)
    assert response.status_code == 200
    assert f"frame-ancestors {HOST};" in response["Content-Security-Policy"]
    assert f'"origins": ["{HOST}"]' in response.content.decode()
    assert not response.cookies


def test_page_of_the_chat_may_stand_in_an_isolated_host_page(site: WidgetSite) -> None:
    response = frame("shop", HOST)
    assert response["Cross-Origin-Embedder-Policy"] == "require-corp"
    assert response["Cross-Origin-Resource-Policy"] == "cross-origin"


def test_unlisted_page_reads_which_origin_to_add_where(site: WidgetSite) -> None:
    response = frame("shop", "https://other.example")
    assert response.status_code == 403
    reason = told(response)
    assert (reason["code"], reason["host"]) == ("origin_not_allowed", "https://other.example")
    assert "https://other.example is not among the origins of the site shop" in reason["sentence"]
    assert "rapport-chat" not in response.content.decode()
    assert response["Cache-Control"] == "no-store"


@pytest.mark.parametrize("is_there", [True, False])
def test_unknown_and_closed_sites_are_told_apart_from_unlisted_pages(is_there: bool) -> None:
    if is_there:
        make_site(slug="gone", origins=[HOST], is_active=False)
    response = frame("gone", HOST)
    assert response.status_code == 404
    assert told(response)["code"] == "unknown_site"


def test_refusal_says_to_the_visitor_where_help_is(site: WidgetSite) -> None:
    site.helplines = [{"name": "Our nurse", "phone": "123 45"}]
    site.save()
    assert 'href="tel:12345"' in frame("shop", "https://other.example").content.decode()
    assert "Emergency number" in frame("nothing", HOST).content.decode()


def test_refusal_may_be_framed_by_the_page_it_refuses_and_by_no_other(site: WidgetSite) -> None:
    refused = frame("shop", "https://other.example")
    assert "frame-ancestors https://other.example;" in refused["Content-Security-Policy"]
    assert "X-Frame-Options" not in refused
    broken = frame("shop", "https://a.example; script-src *")
    assert "frame-ancestors 'none'" in broken["Content-Security-Policy"]
    assert "script-src" not in broken["Content-Security-Policy"]


@pytest.mark.parametrize(
    "host", ["null", "*", "javascript:alert(1)", '"><script>alert(1)</script>', "https://shop.example.evil.example"]
)
def test_no_other_text_counts_as_a_listed_page(site: WidgetSite, host: str) -> None:
    response = frame("shop", host)
    assert response.status_code == 403
    assert "<script>alert" not in response.content.decode()


def test_demonstration_shows_the_snippet_with_this_servers_address() -> None:
    make_site(slug="demo")
    html = Client().get("/widget/demo/").content.decode()
    assert '<script async src="/widget.js" data-site="demo"' in html
    assert "http://testserver/widget.js" in html
    assert "style=" not in html
