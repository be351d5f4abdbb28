"""The table of helplines: whole, sourced, and the right lines for who asks."""

import re
from dataclasses import dataclass, field
from datetime import date

import pytest

from chat.helplines import (
    HelplinesInvalid,
    helpline_table,
    read_site_helplines,
    region_of,
    resources_by_country,
    resources_for,
    unchecked_lines,
)


@dataclass
class Site:
    country: str = ""
    helplines: list[dict[str, str]] = field(default_factory=list)


def names(site: Site, *, country: str = "", locale: str = "") -> list[str]:
    return [line.name for line in resources_for(site, country=country, locale=locale)]


def test_table_covers_at_least_twenty_countries_with_a_source_for_every_line() -> None:
    table = helpline_table()
    assert len(table.by_country) >= 20
    for code, lines in table.by_country.items():
        assert re.fullmatch(r"[A-Z]{2}", code)
        assert lines
        assert table.emergency[code].isdigit()
        for line in lines:
            assert line.source.startswith("https://")
            assert line.resource.phone or line.resource.text
            assert line.resource.hours
            assert line.languages
            assert line.resource.country == code


def test_lines_that_nobody_compared_with_their_source_are_counted() -> None:
    everything = sum(len(lines) for lines in helpline_table().by_country.values()) + len(helpline_table().international)
    assert 0 < len(unchecked_lines(now=date(2026, 12, 1), max_age_days=180)) <= everything
    assert len(unchecked_lines(now=date(2036, 12, 1), max_age_days=180)) == everything


def test_asked_country_comes_before_the_sites_and_the_locales() -> None:
    assert "Samaritans" in names(Site(country="DE"), country="gb", locale="fr-FR")
    assert "TelefonSeelsorge" in names(Site(country="DE"), locale="fr-FR")
    assert any("3114" in name for name in names(Site(), locale="fr-FR"))


def test_emergency_number_comes_first() -> None:
    first = resources_for(Site(), country="AU", locale="")[0]
    assert (first.name, first.phone) == ("Emergency number", "000")


@pytest.mark.parametrize("locale", ["", "en", "zz-ZZ", "x"])
def test_unknown_country_gives_the_international_directory_and_emergency_wording(locale: str) -> None:
    lines = resources_for(Site(), country="ZZ", locale=locale)
    assert "112" in lines[0].name
    assert "911" in lines[0].name
    assert any(line.url == "https://findahelpline.com" for line in lines)


def test_sites_own_lines_replace_the_table() -> None:
    own = [{"name": "Our nurse", "phone": "+44 20 7946 0958"}]
    assert names(Site(country="GB", helplines=own), country="GB") == ["Our nurse"]
    assert list(resources_by_country(Site(helplines=own))) == [""]


def test_page_gets_every_country_for_offline_use() -> None:
    grouped = resources_by_country(Site())
    assert set(helpline_table().by_country) < set(grouped)
    assert grouped["US"][0]["phone"] == "911"
    assert "" in grouped


@pytest.mark.parametrize(
    "lines",
    [
        "not a list",
        [5],
        [{"name": "", "phone": "1"}],
        [{"name": "A"}],
        [{"name": "A", "url": "javascript:alert(1)"}],
        [{"name": "A", "phone": 5}],
        [{"name": "A" * 201, "phone": "1"}],
    ],
)
def test_lines_nobody_could_use_are_refused(lines: object) -> None:
    with pytest.raises(HelplinesInvalid):
        read_site_helplines(lines)


@pytest.mark.parametrize(
    ("locale", "region"), [("en-GB", "GB"), ("pt_BR", "BR"), ("zh-Hant-HK", "HK"), ("en", ""), ("de-DE-1996", "DE")]
)
def test_region_is_read_from_the_locale(locale: str, region: str) -> None:
    assert region_of(locale) == region
