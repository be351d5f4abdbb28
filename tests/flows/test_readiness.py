"""/readyz names what is down while it is down; /metrics sums what all processes count."""

from collections.abc import Mapping

import pytest

from tests.flows.guest import Guest
from tests.flows.product import RunningProduct, wait_for

pytestmark = [pytest.mark.flow, pytest.mark.engine]


@pytest.mark.parametrize(
    ("process", "part"), [("encoder", "encoder"), ("worker", "worker"), ("engine", "engine"), ("redis", "redis")]
)
def test_part_that_hangs_is_named_until_it_answers_again(product: RunningProduct, process: str, part: str) -> None:
    def wrong() -> list[Mapping[str, str]]:
        return [product.parts(web=web) for web in range(2)]

    with product.frozen(process):
        wait_for(lambda: all(part in parts for parts in wrong()), timeout_s=20, what=f"/readyz names {part}")
        assert product.call("GET", "/healthz").status == 200
    wait_for(lambda: not any(wrong()), timeout_s=30, what="/readyz is content again")


@pytest.mark.usefixtures("without_grading")
def test_both_web_processes_serve_what_either_counts(product: RunningProduct, stories: str) -> None:
    """The worker's counts are among them too: see the grades of the main flow."""
    name = 'rapport_replies_total{ending="stopped"}'
    before = product.metric(name)
    for web in range(2):
        with Guest(product, site=stories).page(web=web) as page:
            assert page.stop(page.begin_story(characters=20))["message"]["status"] == "stopped"
    assert [product.metric(name, web=web) for web in range(2)] == [before + 2] * 2
