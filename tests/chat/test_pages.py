"""The pages: what must stand there without JavaScript, who may frame them, and what a template must never carry."""

import json
import re
from typing import Any

import pytest
from django.test import Client

from chat.helplines import helpline_table
from tests.chat.api.conftest import staff_client
from tests.factories import make_conversation, make_message, make_site, make_user, make_version

pytestmark = pytest.mark.django_db


def config_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script id="rapport-config" type="application/json">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


def without_scripts(html: str) -> str:
    return re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)


@pytest.fixture
def demo(db: None) -> Any:
    return make_site(slug="demo", name="Corner <b>", origins=["https://host.example"], country="GB", locales=["en-GB"])


def test_visitor_page_says_without_javascript_what_it_is_and_where_help_is(demo: Any) -> None:
    html = without_scripts(Client().get("/chat/demo/").content.decode())
    assert "You are talking to an AI" in html
    assert "Not a medical device, not an emergency service" in html
    assert "demonstration model" in html
    noscript = html[html.index("<noscript>") : html.index("</noscript>")]
    assert "Samaritans" in noscript
    assert 'href="tel:116123"' in noscript
    assert 'href="tel:999"' in noscript


def test_visitor_page_mounts_the_front_end_with_its_configuration(demo: Any) -> None:
    policy = make_version()
    html = Client().get("/").content.decode()
    mount = 'data-site="demo" data-start="/api/chat/start" data-socket="/ws/chat/" data-api="/api/chat/"'
    assert f'<div id="rapport-chat" {mount}>' in html
    assert '<script type="module" src="/static/front/chat.js">' in html
    config = config_of(html)
    assert config["site"] == {"slug": "demo", "name": "Corner <b>", "is_identity_required": False}
    assert config["model"] == {"name": policy.name, "is_demo": True}
    assert config["helplines"]["GB"][0]["phone"] == "999"
    assert config["helplines_checked"] == helpline_table().compiled_on.isoformat()
    assert (config["locale"], config["country"], config["consent_version"]) == ("en-GB", "GB", "improvement-1")


def test_own_helplines_reach_page_and_configuration(demo: Any) -> None:
    demo.helplines = [{"name": "Our nurse", "phone": "123 45"}]
    demo.save()
    html = Client().get("/").content.decode()
    assert "Our nurse" in without_scripts(html)
    assert "Samaritans" not in html
    assert config_of(html)["helplines"] == {
        "": [{"name": "Our nurse", "phone": "123 45", "text": "", "url": "", "hours": "", "country": ""}]
    }


def test_without_a_demo_site_the_only_site_is_home_and_two_are_not_found() -> None:
    assert Client().get("/").status_code == 404
    site = make_site()
    assert f'data-site="{site.slug}"' in Client().get("/").content.decode()
    make_site()
    assert Client().get("/").status_code == 404
    assert Client().get(f"/chat/{site.slug}/").status_code == 200
    assert Client().get(f"/chat/{make_site(is_active=False).slug}/").status_code == 404


def policy_of(response: Any) -> dict[str, str]:
    return dict(part.strip().split(" ", 1) for part in response["Content-Security-Policy"].split(";"))


def test_only_the_sites_origins_may_frame_its_chat(demo: Any) -> None:
    response = Client().get("/chat/demo/")
    policy = policy_of(response)
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == "https://host.example"
    assert policy["base-uri"] == "'none'"
    assert "unsafe" not in response["Content-Security-Policy"]
    assert "X-Frame-Options" not in response


def test_a_malformed_origin_never_reaches_the_policy(demo: Any) -> None:
    type(demo).objects.update(origins=["*", "https://a.example; script-src *", "https://ok.example"])
    assert policy_of(Client().get("/"))["frame-ancestors"] == "https://ok.example"


@pytest.mark.parametrize(
    "path", ["/staff/login/", "/staff/", "/admin/login/", "/api/chat/helplines", "/healthz", "/nothing"]
)
def test_nothing_else_may_be_framed(path: str) -> None:
    response = staff_client("admin").get(path)
    assert policy_of(response)["frame-ancestors"] == "'none'"
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"


def test_pages_carry_no_inline_script_and_no_inline_style(demo: Any) -> None:
    conversation = make_conversation()
    client = staff_client("admin")
    for path in ("/", "/staff/", f"/staff/conversations/{conversation.pk}/"):
        html = client.get(path).content.decode()
        for opening in re.findall(r"<script[^>]*>", html):
            assert "src=" in opening or 'type="application/json"' in opening
        assert not re.search(r"\son\w+=", html)
        assert "style=" not in html
    login = Client().get("/staff/login/").content.decode()
    assert "<script" not in login


def test_staff_pages_mount_their_view() -> None:
    conversation = make_conversation()
    make_message(conversation, "WORDS of a visitor")
    client = Client()
    client.force_login(make_user("lead", display_name="Robin"))
    assert 'id="rapport-staff" data-view="inbox"' in client.get("/staff/").content.decode()
    html = client.get(f"/staff/conversations/{conversation.pk}/").content.decode()
    assert f'data-view="transcript" data-conversation="{conversation.pk}" data-socket="/ws/staff/"' in html
    assert "WORDS" not in html
    assert config_of(html)["user"]["may_reveal"] is True
    assert client.get("/staff/conversations/5f6b2f0e-7d0e-4b6e-9a55-0d2f6f0a1b2c/").status_code == 404


def test_log_in_and_out() -> None:
    user = make_user()
    client = Client()
    wrong = client.post("/staff/login/", {"username": user.username, "password": "no"})
    assert "do not match" in wrong.content.decode()
    right = client.post(
        "/staff/login/?next=/staff/", {"username": user.username, "password": "pass-word-1", "next": "/staff/"}
    )
    assert (right.status_code, right["Location"]) == (302, "/staff/")
    assert client.get("/staff/").status_code == 200
    assert client.get("/staff/logout/").status_code == 405
    assert client.post("/staff/logout/")["Location"] == "/staff/login/"
    assert client.get("/staff/").status_code == 302


def test_log_in_goes_nowhere_foreign() -> None:
    user = make_user()
    content = {"username": user.username, "password": "pass-word-1", "next": "https://evil.example/"}
    assert Client().post("/staff/login/", content)["Location"] == "/staff/"
