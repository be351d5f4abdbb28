"""What a visitor can do in a conversation, for socket and REST alike: limits, screen, commit, run.

Asynchronous verbs on top of `services` (database) and `live` (running replies). Doors turn `VerbRefused` and
`TooMany` into an error event or a status.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from chat import limits, policies
from chat.background import start_task
from chat.helplines import resources_for
from chat.live import Hub
from chat.metrics import ALERTS, SAFETY
from chat.models import Conversation, Visitor
from chat.protocol import MAX_CHANGES, LiveReply, MessageView, Resource, SafetyCard, SendMessage, SetFeedback, Welcome
from chat.safety_text import safety_text
from chat.screening import screen_visitor
from chat.services import endings, feedback, messages, replies
from chat.services.database import run_db
from chat.services.messages import Posted
from chat.services.views import changes_after, conversation_view


class TooMany(Exception):
    """A limit was reached; `retry_after_s` says when there is room again."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"Too many messages; again in {retry_after_s:.1f} s.")
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, kw_only=True, slots=True)
class Talk:
    """Who talks where: made once per socket or request from a valid token."""

    conversation_id: UUID
    visitor_id: UUID
    site_slug: str
    address: str
    resources: tuple[Resource, ...]
    is_staffed: bool
    safety_text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """A conversation as found on `hello`."""

    talk: Talk
    welcome: Welcome
    running_id: UUID | None


def open_talk(conversation_id: UUID, visitor: Visitor, *, last_seq: int, address: str) -> Opened | None:
    """Read a visitor's own conversation with everything that changed after `last_seq`; None where it is not theirs."""
    conversation = (
        Conversation.objects.visible_to(visitor)
        .select_related("site", "visitor", "policy")
        .filter(pk=conversation_id)
        .first()
    )
    if conversation is None:
        return None
    known_seq = last_seq if last_seq <= conversation.last_seq else 0
    changes = changes_after(conversation, last_seq=known_seq, limit=MAX_CHANGES)
    running = conversation.messages.unfinished().values_list("pk", flat=True).first()
    site = conversation.site
    talk = Talk(
        conversation_id=conversation.pk,
        visitor_id=visitor.pk,
        site_slug=site.slug,
        address=address,
        resources=resources_for(site, country=site.country, locale=visitor.locale),
        is_staffed=site.is_staffed,
        safety_text=site.safety_message or safety_text(),
    )
    welcome = Welcome(conversation=conversation_view(conversation), changes=changes)
    return Opened(talk=talk, welcome=welcome, running_id=running)


async def with_live(opened: Opened, *, hub: Hub) -> Welcome:
    """The welcome with the text so far of a reply that is running now, wherever it runs."""
    live: LiveReply | None = await hub.live_reply(opened.talk.conversation_id, opened.running_id)
    return Welcome(conversation=opened.welcome.conversation, changes=opened.welcome.changes, live=live)


async def send_message(
    talk: Talk, event: SendMessage, *, hub: Hub, on_stored: Callable[[Posted], None] | None = None
) -> Posted:
    """Store a message with its verdict, show the card, run the reply. Raises VerbRefused, TooMany.

    `on_stored` is called for a new message after the commit, before the card and the reply. The work is shielded: a
    socket that closes in the middle does not take the message with it.
    """
    wait_s = await limits.take_message(
        limits.Sender(visitor=str(talk.visitor_id), site=talk.site_slug, address=talk.address),
        member=f"{talk.conversation_id}:{event.client_id}",
    )
    if wait_s > 0:
        raise TooMany(wait_s)
    return await asyncio.shield(start_task(_store_and_run(talk, event, hub=hub, on_stored=on_stored)))


async def _store_and_run(
    talk: Talk, event: SendMessage, *, hub: Hub, on_stored: Callable[[Posted], None] | None
) -> Posted:
    before = await run_db(messages.recent_visitor_texts, talk.conversation_id)
    reading = await screen_visitor(event.text, before=before)
    posted = await run_db(
        messages.post_message,
        talk.conversation_id,
        event,
        reading=reading,
        owner=hub.owner,
        safety_text=talk.safety_text,
    )
    if posted.is_new:
        if on_stored is not None:
            on_stored(posted)
        SAFETY.labels(direction="visitor", level=posted.level).inc()
        if posted.alert_kind:
            ALERTS.labels(kind=posted.alert_kind).inc()
        if posted.card != "none":  # before the reply is launched: the card reaches the page before any reply text
            card = SafetyCard(level=posted.card, resources=talk.resources, staffed=talk.is_staffed)
            hub.publish_event(talk.conversation_id, card)
        hub.launch(posted.claim)
    return posted


async def regenerate(talk: Talk, message_id: UUID, *, hub: Hub) -> None:
    """Run a sibling of a reply. Raises VerbRefused, TooMany."""
    wait_s = await limits.take_message(
        limits.Sender(visitor=str(talk.visitor_id), site=talk.site_slug, address=talk.address),
        member=f"{talk.conversation_id}:regenerate:{message_id}:{asyncio.get_running_loop().time()}",
    )
    if wait_s > 0:
        raise TooMany(wait_s)
    hub.launch(await run_db(replies.regenerate, talk.conversation_id, message_id, owner=hub.owner))


async def stop_reply(talk: Talk, message_id: UUID, *, hub: Hub) -> bool:
    """Stop a reply of this conversation; False where it is not running (any more)."""
    owner_conversation = await run_db(endings.conversation_of, message_id)
    return owner_conversation == talk.conversation_id and await hub.stop_reply(message_id)


async def select_reply(talk: Talk, message_id: UUID) -> MessageView:
    """Choose a sibling. Raises VerbRefused."""
    return await run_db(replies.select_reply, talk.conversation_id, message_id)


async def set_feedback(talk: Talk, event: SetFeedback) -> MessageView:
    """Store a thumb. Raises VerbRefused."""
    give = partial(
        feedback.set_feedback,
        talk.conversation_id,
        event.message_id,
        visitor_id=talk.visitor_id,
        value=event.value,
        reasons=event.reasons,
        comment=event.comment,
    )
    return await run_db(give)


async def acknowledge_card(talk: Talk) -> str:
    """The visitor says the card was a misunderstanding: lowered, not cleared. Returns the level that stands now."""
    return await run_db(messages.acknowledge_card, talk.conversation_id)


async def close_loop() -> None:
    """Close what this loop opened towards the engine and the encoder."""
    await policies.close_client_here()
