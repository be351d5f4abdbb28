"""Where a person finds help now: the product's dated table by country, or the site's own lines instead.

The table is `chat/data/helplines.json`; every line names its source and the day it was last compared with it. An
operator's `WidgetSite.helplines` replaces the table for that site. Read once a process; no network, so that it works
offline. Called by the safety card, the pages, the REST door and the start-up checks.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Protocol

import orjson

from chat.protocol import Resource

_TABLE_FILE = Path(__file__).parent / "data" / "helplines.json"
_LOCALE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z]{4})?[-_](?P<region>[A-Za-z]{2})(?:[-_].*)?")
INTERNATIONAL = ""  # the country of a line that serves several
EMERGENCY_EVERYWHERE = "112 in the EU and much of the world, 911 in North America, 999 in the UK, 000 in Australia"


class HelplinesInvalid(ValueError):
    """A site's own helplines cannot be shown; the sentence names the line and the field."""


class HasHelplines(Protocol):
    """What is needed of a site (`chat.models.WidgetSite` has it)."""

    country: str
    helplines: list[dict[str, str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Helpline:
    """One line of the table. `checked_on` None: nobody has compared it with its source yet."""

    resource: Resource
    languages: tuple[str, ...]
    source: str
    checked_on: date | None


@dataclass(frozen=True, kw_only=True, slots=True)
class HelplineTable:
    """The whole table: lines by country (ISO 3166, upper case), emergency numbers, and lines for everywhere."""

    compiled_on: date
    by_country: dict[str, tuple[Helpline, ...]]
    emergency: dict[str, str]
    international: tuple[Helpline, ...]


@cache
def helpline_table() -> HelplineTable:
    """The product's table, read and checked once a process."""
    content = orjson.loads(_TABLE_FILE.read_bytes())
    return HelplineTable(
        compiled_on=date.fromisoformat(content["compiled_on"]),
        by_country={
            entry["country"]: tuple(_read_line(line, country=entry["country"]) for line in entry["lines"])
            for entry in content["countries"]
        },
        emergency={entry["country"]: entry["emergency"] for entry in content["countries"]},
        international=tuple(_read_line(line, country=INTERNATIONAL) for line in content["international"]),
    )


def resources_for(site: HasHelplines, *, country: str, locale: str) -> tuple[Resource, ...]:
    """The lines to show: the site's own; else those of `country`, of the site, or of the locale's region; always one.

    First comes the emergency number; where the country is unknown, the numbers of several regions and the
    international directories.
    """
    if site.helplines:
        return read_site_helplines(site.helplines)
    table = helpline_table()
    for candidate in (country, site.country, region_of(locale)):
        code = candidate.strip().upper()
        if code in table.by_country:
            emergency = _emergency(table.emergency[code], country=code)
            return (emergency, *(line.resource for line in table.by_country[code]))
    emergency = _emergency(EMERGENCY_EVERYWHERE, country=INTERNATIONAL)
    return (emergency, *(line.resource for line in table.international))


def resources_by_country(site: HasHelplines) -> dict[str, list[dict[str, str]]]:
    """Everything a page needs to show help offline, by country; the site's own lines alone where it has some."""
    if site.helplines:
        lines = read_site_helplines(site.helplines)
        return _grouped(lines)
    table = helpline_table()
    known = [_emergency(table.emergency[code], country=code) for code in table.by_country]
    lines = (
        *known,
        *(line.resource for group in table.by_country.values() for line in group),
        _emergency(EMERGENCY_EVERYWHERE, country=INTERNATIONAL),
        *(line.resource for line in table.international),
    )
    return _grouped(lines)


def _grouped(lines: Sequence[Resource]) -> dict[str, list[dict[str, str]]]:
    grouped: dict[str, list[dict[str, str]]] = {}
    for line in lines:
        grouped.setdefault(line.country, []).append(asdict(line))
    return grouped


def region_of(locale: str) -> str:
    """The country in a locale (`en-GB` gives `GB`), or an empty text; a language alone names no country."""
    found = _LOCALE.fullmatch(locale)
    return found["region"].upper() if found else ""


def read_site_helplines(lines: object) -> tuple[Resource, ...]:
    """A site's own lines: a list of objects with `name` and at least one of `phone`, `text`, `url` (http or https)."""
    if not isinstance(lines, list):
        raise HelplinesInvalid("Helplines must be a list of objects.")
    return tuple(_read_site_line(line, number=number) for number, line in enumerate(lines, start=1))


def unchecked_lines(*, now: date, max_age_days: int) -> Sequence[Helpline]:
    """Lines that nobody compared with their source within `max_age_days`."""
    table = helpline_table()
    lines = [line for group in (*table.by_country.values(), table.international) for line in group]
    return [line for line in lines if line.checked_on is None or (now - line.checked_on).days > max_age_days]


def _read_line(line: dict[str, str], *, country: str) -> Helpline:
    return Helpline(
        resource=Resource(
            name=line["name"],
            phone=line["phone"],
            text=line["text"],
            url=line["url"],
            hours=line["hours"],
            country=country,
        ),
        languages=tuple(line["languages"]),
        source=line["source"],
        checked_on=date.fromisoformat(line["checked_on"]) if line["checked_on"] else None,
    )


def _read_site_line(line: object, *, number: int) -> Resource:
    if not isinstance(line, dict):
        raise HelplinesInvalid(f"Helpline {number} must be an object.")
    values = {}
    for field in ("name", "phone", "text", "url", "hours", "country"):
        value = line.get(field, "")
        if not isinstance(value, str) or len(value) > 200:
            raise HelplinesInvalid(f"Helpline {number}: {field} must be a text of at most 200 characters.")
        values[field] = value
    if not values["name"] or not (values["phone"] or values["text"] or values["url"]):
        raise HelplinesInvalid(f"Helpline {number} needs a name and at least one of phone, text and url.")
    if values["url"] and not re.match(r"https?://", values["url"]):
        raise HelplinesInvalid(f"Helpline {number}: url must begin with https:// or http://.")
    return Resource(**values)


def _emergency(number: str, *, country: str) -> Resource:
    dialled = number if number.isdigit() else ""
    name = "Emergency number" if dialled else f"Emergency number of your country ({number})"
    return Resource(name=name, phone=dialled, text="", url="", hours="24/7", country=country)
