"""docs/rest.md names every route and every metric that there is, and no other."""

import re
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.urls import URLResolver, get_resolver
from prometheus_client.metrics import MetricWrapperBase

from chat import metrics

PAGE = (settings.BASE_DIR / "docs" / "rest.md").read_text()


def routes(resolver: Any, prefix: str = "") -> Iterator[str]:
    for entry in resolver.url_patterns:
        path = f"{prefix}{entry.pattern}"
        if path.startswith("admin/"):
            yield "admin/"
        elif isinstance(entry, URLResolver):
            yield from routes(entry, path)
        elif "^" not in path:
            yield re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", path)


def documented() -> set[str]:
    return {path.lstrip("/") for path in re.findall(r"`(?:(?:GET|POST|DELETE) )?(/[^\s`?]*)`", PAGE)}


def test_every_route_is_named_on_the_page() -> None:
    assert set(routes(get_resolver())) <= documented()


def test_the_page_names_no_route_that_is_not_there() -> None:
    """`POST .../messages` is served beside Django's resolver where it is not in it."""
    assert documented() - set(routes(get_resolver())) <= {"api/chat/conversations/{conversation_id}/messages"}


def test_every_metric_is_named_on_the_page() -> None:
    defined = {
        metric._name + ("_total" if metric._type == "counter" else "")
        for metric in vars(metrics).values()
        if isinstance(metric, MetricWrapperBase)
    }
    named = {name.partition("{")[0] for name in re.findall(r"`(rapport_[^`]+)`", PAGE)}
    assert named == defined
