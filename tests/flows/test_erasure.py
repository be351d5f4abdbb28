"""Erase me, with the product running: one visitor's rows go, another's stay as they are (field report A12)."""

import pytest
from django.forms.models import model_to_dict

from chat.models import Message
from chat.models.conversations import MessageKind
from chat.services.erasure import erased_tables
from tests.flows.engine_watch import look_at
from tests.flows.guest import Guest
from tests.flows.product import RunningProduct, wait_for

pytestmark = [pytest.mark.flow, pytest.mark.engine, pytest.mark.database, pytest.mark.usefixtures("without_grading")]


def rows_of(product: RunningProduct, guest: Guest) -> dict[str, list[dict[str, object]]]:
    """Every row of a visitor, field by field, by table."""

    def read() -> dict[str, list[dict[str, object]]]:
        found = {}
        for table in erased_tables():
            rows = table.model._default_manager.filter(**{table.to_visitor: guest.id}).order_by("pk")
            found[table.model._meta.label] = [{"pk": row.pk, **model_to_dict(row)} for row in rows]
        return found

    return product.rows(read)


def test_erasing_one_visitor_leaves_the_other_as_it_was(product: RunningProduct, stories: str) -> None:
    leaving, staying = Guest(product, site=stories), Guest(product)
    with staying.page(web=1) as stays, leaving.page() as leaves:
        reply = stays.taste("Which flowers bloom in spring?")["message"]
        stays.send(type="feedback.set", message_id=reply["id"], value=1, reasons=["clear"], comment="")
        stays.until("message.changed")
        staying.call("POST", f"/api/chat/conversations/{staying.conversation}/rating", body={"stars": 4})
        leaving.call("POST", "/api/chat/consent", body={"purpose": "improvement", "granted": True})
        before = rows_of(product, staying)
        assert {label for label, rows in before.items() if rows} >= {
            *("chat.Visitor", "chat.Conversation", "chat.Message", "chat.Generation", "chat.Feedback"),
            *("chat.Rating", "chat.SafetyVerdict"),
        }

        leaves.begin_story(characters=40)  # a reply that still runs goes too
        others = Message.objects.exclude(conversation=leaving.conversation)
        messages_of_others = product.rows(others.count)
        erased = leaving.call("DELETE", "/api/chat/me")["erased"]
        assert erased["chat.Message"] >= 2
        assert all(rows == [] for rows in rows_of(product, leaving).values())
        assert rows_of(product, staying) == before
        assert product.rows(others.count) == messages_of_others

        wait_for(lambda: look_at(product.endpoint()).busy_slots == 0, timeout_s=5, what="the engine let go of it")
        assert product.call("GET", "/api/chat/helplines", token=leaving.token).status == 200
        assert product.call("DELETE", "/api/chat/me", token=leaving.token).status == 401
        assert stays.taste("And in summer?")["message"]["text"]
        kinds = product.rows(
            lambda: list(
                Message.objects.filter(conversation=staying.conversation).order_by("seq").values_list("kind", flat=True)
            )
        )
        assert kinds == [MessageKind.VISITOR, MessageKind.REPLY] * 2
