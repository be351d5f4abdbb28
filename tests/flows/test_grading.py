"""A worker that dies in the middle of grading: the grade comes after all, and once (field reports B14, B15)."""

import contextlib
import os
import signal

import pytest

from chat.models import TurnRubric, TurnScore
from deploy.local.guard import descendants
from tests.flows.guest import Guest
from tests.flows.product import RunningProduct, wait_for

pytestmark = [pytest.mark.flow, pytest.mark.engine, pytest.mark.database]
LOCK = "rapport:engine:grading"


@pytest.mark.timeout(420)
def test_grade_of_a_killed_worker_child_comes_after_all_and_once(product: RunningProduct) -> None:
    with Guest(product).page() as page:
        reply_id = page.taste("What can I cook with rice and tomatoes?")["message"]["id"]
    with contextlib.closing(product.redis) as client:
        wait_for(lambda: client.get(LOCK) == reply_id, timeout_s=120, what="the reply is being graded")
        (worker,) = product.itself.pids("worker")
        for child in descendants(worker):
            os.kill(child, signal.SIGKILL)
        scores = TurnScore.objects.filter(reply=reply_id)
        assert product.rows(scores.count) == 0
        product.rows.until(scores.exists, timeout_s=240, what="the reply has a grade")
        assert int(client.get(f"rapport:grade-attempts:{reply_id}") or 0) == 2
    assert product.rows(scores.count) == 1
    assert product.rows(TurnRubric.objects.filter(message__answers=reply_id).count) == 1
