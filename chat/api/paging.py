"""Cursor paging: pages stay right while rows are added, and a cursor that makes no sense is a 400, not a traceback."""

from typing import Any

from django.core.exceptions import ValidationError as DjangoValidationError
from django.db.models import Model, QuerySet
from django.utils.datastructures import MultiValueDictKeyError
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.views import APIView

from chat.api.errors import Refused


class SafeCursor(CursorPagination):
    """`?cursor=`; answers `{"next", "previous", "results"}` where next and previous are addresses or null."""

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> list[Any] | None:
        try:
            return super().paginate_queryset(queryset, request, view)
        except (NotFound, ValueError, TypeError, OverflowError, DjangoValidationError, MultiValueDictKeyError) as error:
            raise Refused("malformed", detail="The cursor is not one of ours.") from error


class MessageCursor(SafeCursor):
    """Messages and turns in the order of the conversation."""

    ordering = "seq"
    page_size = 50


class TurnCursor(MessageCursor):
    page_size = 20


class ConversationCursor(SafeCursor):
    """Conversations, the most recently active first."""

    ordering = ("-last_activity_at", "id")
    page_size = 30


class AlertCursor(SafeCursor):
    """Alerts, the newest first."""

    ordering = ("-raised_at", "-id")
    page_size = 30


def page_of(paginator: SafeCursor, queryset: QuerySet[Model], *, request: Request, view: APIView) -> list[Any]:
    """The rows of the page that the request asks for."""
    return paginator.paginate_queryset(queryset, request, view) or []
