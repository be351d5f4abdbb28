"""The staff's REST door: inbox, transcripts, messages to visitors, alerts. Behind a log-in with a reviewing role."""

from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.api.errors import Refused
from chat.api.paging import AlertCursor, ConversationCursor, TurnCursor, page_of
from chat.api.permissions import IsReviewer, StaffLogin, staff_of
from chat.api.schema import CURSOR, NO_BODY, answers, page_schema
from chat.api.serializers import MessageSerializer
from chat.api.staff_serializers import (
    AlertSerializer,
    ConversationRowSerializer,
    StaffMessageSerializer,
    TurnNoteSerializer,
    TurnSerializer,
)
from chat.models import Alert, Conversation
from chat.models.conversations import MessageKind
from chat.protocol import ErrorCode
from chat.services.staff import ClientIdTaken, acknowledge_alert, post_staff_message, record_reveal
from chat.services.transcripts import notes_without_turn, turns_of
from chat.services.views import message_view


class StaffView(APIView):
    """What every view of the staff shares."""

    authentication_classes = (StaffLogin,)
    permission_classes = (IsReviewer,)

    def conversation(self, conversation_id: UUID) -> Conversation:
        found = Conversation.objects.filter(pk=conversation_id).first()
        if found is None:
            raise Refused(ErrorCode.NOT_FOUND.value)
        return found


class InboxView(StaffView):
    @extend_schema(
        operation_id="staff_conversations",
        parameters=[CURSOR],
        responses=answers(page_schema(ConversationRowSerializer, name="ConversationPage"), 400, 401, 403),
    )
    def get(self, request: Request) -> Response:
        """Conversations, the most recently active first; no texts."""
        paginator = ConversationCursor()
        rows = page_of(paginator, _inbox(), request=request, view=self)
        return paginator.get_paginated_response(ConversationRowSerializer(rows, many=True).data)


def _inbox() -> QuerySet[Any]:
    open_alerts = Count("alerts", filter=Q(alerts__acknowledged_at=None))
    return Conversation.objects.select_related("site").annotate(open_alerts=open_alerts)


class TurnsView(StaffView):
    @extend_schema(
        operation_id="staff_turns",
        parameters=[
            CURSOR,
            OpenApiParameter(
                "reveal", OpenApiTypes.STR, enum=["1"], description="Unredacted; leads and admins, audited."
            ),
        ],
        responses=answers(
            page_schema(TurnSerializer, name="TurnPage", notes=TurnNoteSerializer(many=True)), 400, 401, 403, 404
        ),
    )
    def get(self, request: Request, conversation_id: UUID) -> Response:
        """The turns of a conversation, oldest first, each with its priorities and grades."""
        conversation = self.conversation(conversation_id)
        is_revealed = self._is_revealed(request, conversation_id)
        turns = conversation.messages.filter(kind=MessageKind.VISITOR)
        paginator = TurnCursor()
        rows = page_of(paginator, turns, request=request, view=self)
        views = turns_of(conversation, rows, is_revealed=is_revealed)
        response = paginator.get_paginated_response(TurnSerializer(views, many=True).data)
        notes = [] if rows else notes_without_turn(conversation, is_revealed=is_revealed)
        response.data["notes"] = TurnNoteSerializer(notes, many=True).data
        response["Cache-Control"] = "no-store"
        return response

    def _is_revealed(self, request: Request, conversation_id: UUID) -> bool:
        asked = request.query_params.get("reveal", "")
        if asked not in {"", "1"}:
            raise Refused(ErrorCode.MALFORMED.value, detail="reveal may be 1 or left out.")
        if not asked:
            return False
        user = staff_of(request)
        if not user.may_reveal:
            raise Refused("permission_denied", detail="Only leads and admins may see unredacted text.", status_code=403)
        record_reveal(conversation_id, user=user)
        return True


class StaffMessagesView(StaffView):
    @extend_schema(
        operation_id="post_staff_message",
        request=StaffMessageSerializer,
        responses=answers(MessageSerializer, 400, 401, 403, 404, 409, 413, 415),
    )
    def post(self, request: Request, conversation_id: UUID) -> Response:
        """Say something to the visitor. The same `client_id` is the same message, however often it is sent."""
        asked = StaffMessageSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        conversation = self.conversation(conversation_id)
        try:
            message = post_staff_message(
                conversation.pk,
                user=staff_of(request),
                client_id=asked.validated_data["client_id"],
                text=asked.validated_data["text"],
            )
        except ClientIdTaken as error:
            raise Refused(
                "client_id_taken", detail="This client_id belongs to another message.", status_code=409
            ) from error
        return Response(MessageSerializer(message_view(message)).data)


class AlertsView(StaffView):
    @extend_schema(
        operation_id="staff_alerts",
        parameters=[CURSOR, OpenApiParameter("open", OpenApiTypes.STR, enum=["1"], description="Only unacknowledged.")],
        responses=answers(page_schema(AlertSerializer, name="AlertPage"), 400, 401, 403),
    )
    def get(self, request: Request) -> Response:
        """Alerts, the newest first; ids only, no texts."""
        asked = request.query_params.get("open", "")
        if asked not in {"", "1"}:
            raise Refused(ErrorCode.MALFORMED.value, detail="open may be 1 or left out.")
        alerts = Alert.objects.select_related("acknowledged_by")
        if asked:
            alerts = alerts.filter(acknowledged_at=None)
        paginator = AlertCursor()
        rows = page_of(paginator, alerts, request=request, view=self)
        return paginator.get_paginated_response(AlertSerializer(rows, many=True).data)


class AcknowledgeView(StaffView):
    @extend_schema(
        operation_id="acknowledge_alert",
        request=NO_BODY,
        responses=answers(AlertSerializer, 400, 401, 403, 404, 413, 415),
    )
    def post(self, request: Request, alert_id: int) -> Response:
        """Say that you look after this alert; the first one stays."""
        try:
            alert = acknowledge_alert(alert_id, user=staff_of(request))
        except (Alert.DoesNotExist, OverflowError) as error:
            raise Refused(ErrorCode.NOT_FOUND.value) from error
        return Response(AlertSerializer(alert).data)
