"""Sending a message over REST: the same verb, limits and screen as `message.send` on the socket.

An asynchronous view beside DRF's: the reply runs in this process's event loop and is read by polling the history or on
a socket. Answers 201 with the message, or 200 where this `client_id` was there already.
"""

from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils import timezone
from rest_framework.exceptions import AuthenticationFailed

from chat import talk as talking
from chat.api.errors import Refused, error_json
from chat.api.parsers import parse_strict_json
from chat.live import hub_here
from chat.protocol import ErrorCode, SendMessage, encode, parse_send
from chat.services.database import run_db
from chat.services.messages import Posted
from chat.services.visitors import VisitorAccess, resolve_token
from chat.tokens import TokenInvalid

BEARER = "Bearer "


async def send_message(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """POST {client_id, text}. Errors are those of the wire, as a status."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    try:
        posted = await _send(request, conversation_id)
    except Exception as error:
        return error_json(error)
    return HttpResponse(encode(posted.view), status=201 if posted.is_new else 200, content_type="application/json")


async def _send(request: HttpRequest, conversation_id: UUID) -> Posted:
    access = await _access(request)
    event = _event(request)
    address = str(request.META.get("REMOTE_ADDR") or "unknown")
    opened = await run_db(talking.open_talk, conversation_id, access.visitor, last_seq=0, address=address)
    if opened is None:
        raise Refused(ErrorCode.NOT_FOUND.value)
    try:
        return await talking.send_message(opened.talk, event, hub=await hub_here())
    except talking.TooMany as error:
        raise Refused(ErrorCode.RATE.value, retry_after_s=error.retry_after_s) from error


async def _access(request: HttpRequest) -> VisitorAccess:
    header = request.headers.get("Authorization", "")
    if not header.startswith(BEARER):
        raise AuthenticationFailed(code="token_missing")
    try:
        return await run_db(resolve_token, header.removeprefix(BEARER), now=timezone.now())
    except TokenInvalid as error:
        raise AuthenticationFailed(code="token_invalid") from error


def _event(request: HttpRequest) -> SendMessage:
    """The body through the wire's own parser, so that both doors refuse the same texts with the same codes."""
    if len(request.body) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise Refused(ErrorCode.TOO_LARGE.value)
    return parse_send(parse_strict_json(request.body))
