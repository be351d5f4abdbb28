"""The three knobs of a site's look: what can be used, what is refused with what to write instead."""

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given
from hypothesis import strategies as st

from chat.checks import check_site_themes
from chat.models import WidgetSite
from chat.theme import GROUNDS, MIN_CONTRAST, Theme, ThemeInvalid, contrast, read_theme, readable, shown_theme
from tests.factories import make_site

COLORS = st.integers(0, 0xFFFFFF).map(lambda value: f"#{value:06x}")


def test_contrast_is_what_wcag_says() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert contrast("#ffffff", "#767676") == pytest.approx(4.54, abs=0.005)


@given(COLORS)
def test_readable_accent_reaches_the_contrast_on_every_ground(color: str) -> None:
    found = readable(color)
    assert all(contrast(found, ground) >= MIN_CONTRAST for ground in GROUNDS)
    assert read_theme({"accent": found}).accent == found


def test_theme_that_can_be_used_is_read() -> None:
    assert read_theme({}) == Theme()
    theme = {"accent": "#17696A", "radius": 0, "scheme": "dark"}
    assert read_theme(theme) == Theme(accent="#17696a", radius=0, scheme="dark")


@pytest.mark.parametrize(
    ("theme", "said"),
    [
        ({"accent": "#ffd400"}, "contrast is 1."),
        ({"accent": "#777777"}, "4.5:1 is needed"),
        ({"accent": "teal"}, "six hexadecimal digits"),
        ({"accent": 7}, "six hexadecimal digits"),
        ({"radius": 33}, "from 0 to 32"),
        ({"radius": True}, "from 0 to 32"),
        ({"radius": "4"}, "from 0 to 32"),
        ({"scheme": "sepia"}, "light, dark, auto"),
        ({"font": "Comic"}, "no knob 'font'"),
        (["#17696a"], "object of knobs"),
    ],
)
def test_knob_that_cannot_be_used_is_refused_with_what_to_write(theme: object, said: str) -> None:
    with pytest.raises(ThemeInvalid, match=said.replace(".", r"\.")):
        read_theme(theme)
    assert shown_theme(theme) == Theme()


@pytest.mark.django_db
def test_admin_refuses_an_accent_that_cannot_be_read_and_names_one_that_can() -> None:
    site = WidgetSite(slug="harbour", name="Harbour", theme={"accent": "#ffd400"})
    with pytest.raises(ValidationError) as refused:
        site.full_clean()
    assert readable("#ffd400") in refused.value.message_dict["theme"][0]


@pytest.mark.django_db
def test_start_says_which_sites_look_cannot_be_used() -> None:
    make_site(slug="well", theme={"accent": "#17696a"})
    make_site(slug="faint", theme={"accent": "#ffd400"})
    messages = check_site_themes(None)
    assert [message.id for message in messages] == ["chat.W004"]
    assert "'faint'" in messages[0].msg
    assert readable("#ffd400") in messages[0].msg
