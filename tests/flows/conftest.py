"""What the flow tests share: a product that is well, a site whose replies are long, and a worker that rests."""

from collections.abc import Iterator

import pytest
from django.utils import timezone

from chat.models import Message
from chat.models.conversations import MessageKind
from tests.flows.guest import STORYTELLER
from tests.flows.product import RunningProduct


@pytest.fixture(autouse=True)
def _is_well(product: RunningProduct) -> None:
    """No test begins on what the one before has broken."""
    product.until_well(timeout_s=120)


@pytest.fixture
def stories(product: RunningProduct) -> str:
    """The slug of a site on which replies are long enough to be interrupted."""
    return product.make_site("stories", system_prompt=STORYTELLER)


@pytest.fixture
def without_grading(product: RunningProduct, _is_well: None) -> Iterator[None]:
    """The engine works for the visitors of this test alone; nobody grades what was said here afterwards."""
    began = timezone.now()
    with product.frozen("worker"):
        product.until_engine_rests()  # what the worker had asked for is finished first
        yield
        replies = Message.objects.filter(kind=MessageKind.REPLY, created_at__gte=began)
        product.rows(lambda: replies.update(is_excluded=True))
