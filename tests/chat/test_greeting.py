"""What a site may say before the first message."""

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from chat.greeting import Greeting, GreetingInvalid, read_greeting, shown_greeting
from chat.models import WidgetSite
from tests.factories import make_site


def test_texts_are_read_and_trimmed() -> None:
    assert read_greeting({}) == Greeting()
    texts = {"greeting": " Hello. ", "suggestions": ["I had a hard day "]}
    assert read_greeting(texts) == Greeting(greeting="Hello.", suggestions=("I had a hard day",))


@pytest.mark.parametrize(
    "texts",
    [
        [],
        {"consent": "yes"},
        {"greeting": 1},
        {"greeting": "x" * 201},
        {"suggestions": "one"},
        {"suggestions": ["a"] * 5},
        {"suggestions": [" "]},
        {"suggestions": ["x" * 81]},
        {"suggestions": [None]},
    ],
)
def test_texts_that_do_not_fit_are_refused_and_never_shown(texts: object) -> None:
    with pytest.raises(GreetingInvalid):
        read_greeting(texts)
    assert shown_greeting(texts) == Greeting()


@pytest.mark.django_db
def test_admin_refuses_texts_that_do_not_fit() -> None:
    site = WidgetSite(slug="harbour", name="Harbour", texts={"suggestions": ["x" * 81]})
    with pytest.raises(ValidationError) as refused:
        site.full_clean()
    assert "80 characters" in refused.value.message_dict["texts"][0]


@pytest.mark.django_db
def test_page_tells_the_sites_texts_languages_and_look(client: Client) -> None:
    make_site(
        slug="harbour",
        locales=["ar", "en"],
        theme={"accent": "#17696a", "radius": 4},
        texts={"greeting": "Ahoy.", "suggestions": ["I lost my anchor"]},
    )
    page = client.get("/chat/harbour/").content.decode()
    for told in ('"Ahoy."', '"I lost my anchor"', '"locales": ["ar", "en"]', '"accent": "#17696a"', '"radius": 4'):
        assert told in page
