"""The visitors' REST door: start, history, feedback, rating, consent, download, delete. Sending is in `messages`."""

from typing import Any
from uuid import UUID, uuid4

from asgiref.sync import async_to_sync
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.api.errors import Refused
from chat.api.origin import allow_origin, answer_preflight, check_request_origin
from chat.api.paging import MessageCursor, page_of
from chat.api.permissions import IsVisitor, VisitorToken, access_of
from chat.api.schema import CURSOR, NO_BODY, answers, page_schema
from chat.api.serializers import (
    ClosedSerializer,
    ConsentedSerializer,
    ConsentSerializer,
    DownloadSerializer,
    ErasedSerializer,
    FeedbackSerializer,
    HelplinesSerializer,
    MessageSerializer,
    RatedSerializer,
    RatingSerializer,
    StartedSerializer,
    StartSerializer,
)
from chat.forgetting import forget_live
from chat.helplines import helpline_table, resources_for
from chat.limits import Sender, take_message
from chat.models import Conversation, Message, WidgetSite
from chat.models.sites import ConsentPurpose
from chat.protocol import ErrorCode
from chat.services.consent import CONSENT_VERSIONS, ConsentVersionUnknown, has_consent, record_consent
from chat.services.download import download_conversation
from chat.services.erasure import ErasureRefused, erase_visitor
from chat.services.feedback import set_feedback
from chat.services.sites import SiteView, site_view
from chat.services.views import message_views
from chat.services.visitors import (
    IdentityRefused,
    SignedIdentity,
    Started,
    close_conversation,
    rate_conversation,
    start_conversation,
)


def client_address(request: Request) -> str:
    """The peer's address; behind a trusted proxy the server has already put the visitor's own there."""
    return str(request.META.get("REMOTE_ADDR") or "unknown")


def check_pace(sender: Sender) -> None:
    """Count one call against the limits of socket and REST together. Raises Refused (429)."""
    wait_s = async_to_sync(take_message)(sender, member=uuid4().hex)
    if wait_s > 0:
        raise Refused(ErrorCode.RATE.value, detail="Too many at once; wait a little.", retry_after_s=wait_s)


class StartView(APIView):
    """Where a visitor comes in. Open to everybody whom the site's list of origins lets in."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    def options(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        return answer_preflight(request)

    @extend_schema(
        operation_id="start",
        request=StartSerializer,
        responses=answers(StartedSerializer, 400, 403, 404, 413, 415, 429),
    )
    def post(self, request: Request) -> Response:
        """Begin a conversation, or continue the one that a valid token opens."""
        asked = StartSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wanted = asked.validated_data
        site = WidgetSite.objects.filter(slug=wanted["site"], is_active=True).first()
        if site is None:
            raise Refused(ErrorCode.NOT_FOUND.value, detail="There is no such site.")
        check_request_origin(request, site)
        address = client_address(request)
        check_pace(Sender(visitor=f"start:{uuid4().hex}", site=f"start:{site.slug}", address=f"start:{address}"))
        identity = wanted.get("identity")
        try:
            started = start_conversation(
                site,
                token=wanted.get("token", ""),
                identity=SignedIdentity(external_id=identity["id"], signature=identity["signature"])
                if identity
                else None,
                locale=wanted.get("locale", ""),
            )
        except IdentityRefused as error:
            detail = "This site needs an identity that its own server signed."
            raise Refused(error.code, detail=detail, status_code=403) from error
        return allow_origin(Response(StartedSerializer(_started(started, site)).data), request)


def _started(started: Started, site: WidgetSite) -> dict[str, UUID | str | bool | object]:
    view: SiteView = site_view(site)
    return {
        "token": started.token,
        "conversation": started.conversation.pk,
        "visitor": started.visitor.pk,
        "expires_at": started.expires_at,
        "is_continued": started.is_continued,
        "consent": has_consent(started.visitor),
        "site": view,
    }


class VisitorView(APIView):
    """What every view behind a visitor token shares."""

    authentication_classes = (VisitorToken,)
    permission_classes = (IsVisitor,)

    def own_conversation(self, request: Request, conversation_id: UUID) -> Conversation:
        """The visitor's own conversation; somebody else's is as absent as one that never was."""
        visible = Conversation.objects.visible_to(access_of(request).visitor).select_related("site", "visitor")
        found = visible.filter(pk=conversation_id).first()
        if found is None:
            raise Refused(ErrorCode.NOT_FOUND.value)
        return found

    def count(self, request: Request) -> None:
        """Count a call that writes against the visitor's limits."""
        access = access_of(request)
        sender = Sender(visitor=str(access.visitor.pk), site=access.site.slug, address=client_address(request))
        check_pace(sender)


class HistoryView(VisitorView):
    @extend_schema(
        operation_id="history",
        parameters=[CURSOR],
        responses=answers(page_schema(MessageSerializer, name="MessagePage"), 400, 401, 404),
    )
    def get(self, request: Request, conversation_id: UUID) -> Response:
        """The messages of a conversation that its visitor may see, oldest first."""
        conversation = self.own_conversation(request, conversation_id)
        shown = conversation.messages.shown_to_visitor().select_related("author")
        paginator = MessageCursor()
        rows = page_of(paginator, shown, request=request, view=self)
        return paginator.get_paginated_response(MessageSerializer(message_views(rows), many=True).data)


class FeedbackView(VisitorView):
    @extend_schema(
        operation_id="set_feedback",
        request=FeedbackSerializer,
        responses=answers(MessageSerializer, 400, 401, 404, 409, 413, 415, 429),
    )
    def post(self, request: Request, message_id: UUID) -> Response:
        """Thumb a reply up or down, or take the thumb back."""
        asked = FeedbackSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        visitor = access_of(request).visitor
        message = Message.objects.filter(pk=message_id, conversation__visitor=visitor).first()
        if message is None:
            raise Refused(ErrorCode.NOT_FOUND.value)
        self.count(request)
        view = set_feedback(
            message.conversation_id,
            message_id,
            visitor_id=visitor.pk,
            value=asked.validated_data["value"],
            reasons=tuple(asked.validated_data.get("reasons", ())),
            comment=asked.validated_data.get("comment", ""),
        )
        return Response(MessageSerializer(view).data)


class RatingView(VisitorView):
    @extend_schema(
        operation_id="rate", request=RatingSerializer, responses=answers(RatedSerializer, 400, 401, 404, 413, 415, 429)
    )
    def post(self, request: Request, conversation_id: UUID) -> Response:
        """Rate the conversation with one to five stars; the newest rating holds."""
        asked = RatingSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        conversation = self.own_conversation(request, conversation_id)
        self.count(request)
        rating = rate_conversation(
            conversation, stars=asked.validated_data["stars"], comment=asked.validated_data.get("comment", "")
        )
        return Response(RatedSerializer(rating).data)


class CloseView(VisitorView):
    @extend_schema(operation_id="close", request=NO_BODY, responses=answers(ClosedSerializer, 400, 401, 404, 413, 415))
    def post(self, request: Request, conversation_id: UUID) -> Response:
        """End the conversation; the next start begins a new one."""
        conversation = close_conversation(self.own_conversation(request, conversation_id).pk)
        return Response(ClosedSerializer({"conversation": conversation.pk, "state": conversation.state}).data)


class DownloadView(VisitorView):
    @extend_schema(operation_id="download", responses=answers(DownloadSerializer, 401, 404))
    def get(self, request: Request, conversation_id: UUID) -> Response:
        """The conversation as a JSON file, with everything that its visitor may see."""
        conversation = self.own_conversation(request, conversation_id)
        content = DownloadSerializer(download_conversation(conversation)).data
        name = f'attachment; filename="conversation-{conversation.pk}.json"'
        return Response(content, headers={"Content-Disposition": name, "Cache-Control": "no-store"})


class ConsentView(VisitorView):
    @extend_schema(
        operation_id="consent",
        request=ConsentSerializer,
        responses=answers(ConsentedSerializer, 400, 401, 413, 415, 429),
    )
    def post(self, request: Request) -> Response:
        """Grant consent for a purpose, or refuse it; every choice is kept with its text's version and time."""
        asked = ConsentSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        purpose = ConsentPurpose(asked.validated_data["purpose"])
        self.count(request)
        try:
            consent = record_consent(
                access_of(request).visitor,
                purpose=purpose,
                version=asked.validated_data.get("version", CONSENT_VERSIONS[purpose]),
                is_granted=asked.validated_data["granted"],
            )
        except ConsentVersionUnknown as error:
            raise Refused("invalid", detail=str(error)) from error
        content = {"purpose": purpose, "version": consent.version, "granted": consent.is_granted, "at": consent.at}
        return Response(ConsentedSerializer(content).data)


class MeView(VisitorView):
    @extend_schema(operation_id="erase_me", responses=answers(ErasedSerializer, 401, 409))
    def delete(self, request: Request) -> Response:
        """Delete everything that belongs to the visitor. The token is worthless afterwards."""
        try:
            report = erase_visitor(access_of(request).visitor.pk, clear_live=forget_live)
        except ErasureRefused as error:
            detail = "Your data could not be deleted safely; nothing was changed. Please write to us."
            raise Refused("erasure_refused", detail=detail, status_code=409) from error
        return Response(ErasedSerializer({"erased": report.counts}).data)


class HelplinesView(APIView):
    """Open to everybody: nobody needs a token to find help."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    @extend_schema(
        operation_id="helplines",
        parameters=[
            OpenApiParameter("country", OpenApiTypes.STR, description="ISO 3166 code."),
            OpenApiParameter("site", OpenApiTypes.STR, description="The site's slug: its own lines come instead."),
        ],
        responses=answers(HelplinesSerializer),
    )
    def get(self, request: HttpRequest) -> Response:
        """Helplines of a country or a site; international ones where the country is not known."""
        country = request.GET.get("country", "")[:2].upper()
        slug = request.GET.get("site", "").replace("\x00", "")[:50]
        site = WidgetSite.objects.filter(slug=slug, is_active=True).first() if slug else None
        lines = resources_for(site or WidgetSite(), country=country, locale="")
        content = {"country": country, "compiled_on": helpline_table().compiled_on, "resources": lines}
        return Response(HelplinesSerializer(content).data)
