"""What staff may follow on their socket: `conversation:<id>` and `inbox`; apps above register theirs at start-up.

A topic is `<prefix>` or `<prefix>:<key>`; its channel-layer group is `<prefix>` or `<prefix>.<key without dashes>`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from chat.models import Conversation, User

_TOPIC = re.compile(r"(?P<prefix>[a-z]{1,20})(?::(?P<key>[0-9A-Za-z-]{1,64}))?")
MaySubscribe = Callable[[User, str], bool]
_registry: dict[str, MaySubscribe] = {}


class TopicUnknown(Exception):
    """There is no such topic, or nothing under this key that this person may follow."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """A topic that somebody asked for; `key` is empty for one that has none."""

    prefix: str
    key: str

    @property
    def name(self) -> str:
        return f"{self.prefix}:{self.key}" if self.key else self.prefix

    @property
    def group(self) -> str:
        return f"{self.prefix}.{self.key.replace('-', '')}" if self.key else self.prefix


def register_topic(prefix: str, may_subscribe: MaySubscribe) -> None:
    """Make a topic known; `may_subscribe(user, key)` runs in the database thread and decides for each wish."""
    _registry[prefix] = may_subscribe


def open_topic(name: str, user: User) -> Topic:
    """The topic if this person may follow it. Raises TopicUnknown: what is forbidden looks like what is not there."""
    found = _TOPIC.fullmatch(name)
    if found is None or found["prefix"] not in _registry:
        raise TopicUnknown
    key = found["key"] or ""
    if not _registry[found["prefix"]](user, key):
        raise TopicUnknown
    return Topic(prefix=found["prefix"], key=key.lower())


def _may_follow_conversation(user: User, key: str) -> bool:
    try:
        conversation_id = UUID(key)
    except ValueError:
        return False
    return user.may_review and Conversation.objects.filter(pk=conversation_id).exists()


def _may_follow_inbox(user: User, key: str) -> bool:
    return user.may_review and not key


register_topic("conversation", _may_follow_conversation)
register_topic("inbox", _may_follow_inbox)
