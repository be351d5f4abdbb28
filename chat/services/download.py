"""Everything of a conversation that its visitor may see, as one value that becomes a JSON file."""

from dataclasses import dataclass
from uuid import UUID

from django.utils import timezone

from chat.models import Conversation
from chat.services.views import message_views

FORMAT = "rapport-conversation/1"


@dataclass(frozen=True, kw_only=True, slots=True)
class DownloadedMessage:
    """One message; `feedback` is the visitor's own thumb on a reply."""

    id: UUID
    seq: int
    kind: str
    status: str
    text: str
    created_at: str
    answers: UUID | None
    selected: bool
    feedback: int
    author: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class DownloadedChoice:
    """One choice of consent."""

    purpose: str
    version: str
    granted: bool
    at: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DownloadedRating:
    """One rating of the conversation."""

    stars: int
    comment: str
    at: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversationDownload:
    """The whole file. Notes of staff and hidden candidates are not in it."""

    format: str
    downloaded_at: str
    conversation: UUID
    site: str
    state: str
    created_at: str
    visitor: UUID
    identity: str
    locale: str
    messages: tuple[DownloadedMessage, ...]
    ratings: tuple[DownloadedRating, ...]
    consents: tuple[DownloadedChoice, ...]


def download_conversation(conversation: Conversation) -> ConversationDownload:
    """The file of one conversation; a handful of queries, however long it is."""
    visitor = conversation.visitor
    rows = list(conversation.messages.shown_to_visitor().select_related("author").order_by("seq"))
    return ConversationDownload(
        format=FORMAT,
        downloaded_at=timezone.now().isoformat(),
        conversation=conversation.pk,
        site=conversation.site.name,
        state=conversation.state,
        created_at=conversation.created_at.isoformat(),
        visitor=visitor.pk,
        identity=visitor.external_id,
        locale=visitor.locale,
        messages=tuple(
            DownloadedMessage(
                id=view.id,
                seq=view.seq,
                kind=view.kind,
                status=view.status,
                text=view.text,
                created_at=view.created_at,
                answers=view.parent,
                selected=view.selected,
                feedback=view.feedback,
                author=view.author,
            )
            for view in message_views(rows)
        ),
        ratings=tuple(
            DownloadedRating(stars=row.stars, comment=row.comment, at=row.at.isoformat())
            for row in conversation.ratings.all()
        ),
        consents=tuple(
            DownloadedChoice(purpose=row.purpose, version=row.version, granted=row.is_granted, at=row.at.isoformat())
            for row in visitor.consents.all()
        ),
    )
