"""Rows for tests, with as few words as possible; every factory takes what differs."""

import itertools
from typing import Any

from chat.models import Conversation, Generation, Message, PolicyVersion, User, Visitor, WidgetSite
from chat.models.conversations import MessageKind, MessageStatus
from chat.models.learning import VersionKind, VersionOrigin, VersionState
from chat.models.people import Role
from chat.services.texts import sha256_of

_numbers = itertools.count(1)


def make_site(**changed: Any) -> WidgetSite:
    number = next(_numbers)
    return WidgetSite.objects.create(**{"slug": f"site-{number}", "name": f"Site {number}", **changed})


def make_visitor(site: WidgetSite | None = None, **changed: Any) -> Visitor:
    return Visitor.objects.create(site=site or make_site(), **changed)


def make_conversation(visitor: Visitor | None = None, **changed: Any) -> Conversation:
    visitor = visitor or make_visitor()
    return Conversation.objects.create(site=visitor.site, visitor=visitor, **changed)


def make_message(conversation: Conversation, text: str = "I had a long day.", **changed: Any) -> Message:
    """A visitor's message unless `kind` says otherwise; takes the conversation's next seq."""
    conversation.refresh_from_db()
    seq = conversation.take_seq()
    if changed.get("kind", MessageKind.VISITOR) == MessageKind.VISITOR:
        conversation.visitor_turns += 1
    conversation.save()
    fields: dict[str, Any] = {
        "seq": seq,
        "changed_seq": seq,
        "kind": MessageKind.VISITOR,
        "text": text,
        "sha256": sha256_of(text),
        **changed,
    }
    return Message.objects.create(conversation=conversation, **fields)


def make_reply(parent: Message, text: str = "That sounds tiring.", **changed: Any) -> Message:
    """A finished reply to `parent`, with its generation."""
    generation: dict[str, Any] = changed.pop("generation", {})
    message = make_message(
        parent.conversation,
        text,
        **{"kind": MessageKind.REPLY, "parent": parent, "status": MessageStatus.COMPLETE, **changed},
    )
    Generation.objects.create(message=message, **{"context_to_seq": parent.seq, **generation})
    return message


def make_user(role: Role | str = Role.REVIEWER, **changed: Any) -> User:
    return User.objects.create_user(username=f"user-{next(_numbers)}", password="pass-word-1", role=role, **changed)


def make_version(kind: VersionKind = VersionKind.POLICY, **changed: Any) -> PolicyVersion:
    """A live version, unless another one of its kind is to stay live."""
    number = next(_numbers)
    fields: dict[str, Any] = {
        "kind": kind,
        "name": f"{kind}-{number:012x}",
        "origin": VersionOrigin.BASE,
        "state": VersionState.LIVE,
        "config": {"implementation": "model", "served_by": "policy-fake"},
        **changed,
    }
    return PolicyVersion.objects.create(**fields)
