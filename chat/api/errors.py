"""Every error of the REST door as `{"code", "detail", "trace"}`; the trace is in the log beside ids, never texts."""

import logging
import secrets
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import status
from rest_framework.exceptions import APIException, NotFound, ValidationError
from rest_framework.exceptions import PermissionDenied as DrfPermissionDenied
from rest_framework.response import Response
from rest_framework.views import set_rollback

from chat.metrics import ERRORS
from chat.protocol import ErrorCode, ProtocolError
from chat.services.errors import VerbRefused

logger = logging.getLogger(__name__)
MAX_DETAIL_CHARS = 500
_STATUS = {
    ErrorCode.NOT_FOUND: status.HTTP_404_NOT_FOUND,
    ErrorCode.CLOSED: status.HTTP_409_CONFLICT,
    ErrorCode.BUSY: status.HTTP_409_CONFLICT,
    ErrorCode.NOT_RUNNING: status.HTTP_409_CONFLICT,
    ErrorCode.RATE: status.HTTP_429_TOO_MANY_REQUESTS,
    ErrorCode.BUDGET: status.HTTP_429_TOO_MANY_REQUESTS,
    ErrorCode.TOO_LARGE: status.HTTP_413_REQUEST_ENTITY_TOO_LARGE,
    ErrorCode.TOKEN: status.HTTP_401_UNAUTHORIZED,
    ErrorCode.UNAVAILABLE: status.HTTP_503_SERVICE_UNAVAILABLE,
}
_SENTENCE = {
    ErrorCode.NOT_FOUND: "There is nothing here under this id.",
    ErrorCode.CLOSED: "The conversation is closed.",
    ErrorCode.BUSY: "A reply is running; try again when it has ended.",
    ErrorCode.NOT_RUNNING: "The reply has already ended.",
    ErrorCode.EMPTY_TEXT: "The text is empty.",
    ErrorCode.TEXT_TOO_LONG: "The text is too long.",
    ErrorCode.TEXT_INVALID: "The text contains characters that cannot be kept.",
    ErrorCode.UNAVAILABLE: "The service cannot answer now; try again shortly.",
}


class Refused(APIException):
    """A refusal of ours, with a code of the wire (or one of its own) and the status that goes with it."""

    def __init__(
        self, code: str, *, detail: str = "", status_code: int | None = None, retry_after_s: float = 0
    ) -> None:
        known = next((one for one in ErrorCode if one.value == code), None)
        super().__init__(detail or (_SENTENCE.get(known, code) if known else code), code=code)
        self.status_code = status_code or (_STATUS.get(known, 400) if known else 400)
        self.wait = retry_after_s or None


def answer_error(error: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's exception hook: every error becomes a JSON answer, and an unexpected one a 500 without a traceback."""
    set_rollback()
    content, status_code, headers = _describe(error)
    return Response(content, status=status_code, headers=headers)


def error_json(error: Exception) -> JsonResponse:
    """The same answer for a view that is not DRF's (the asynchronous ones)."""
    content, status_code, headers = _describe(error)
    return JsonResponse(content, status=status_code, headers=headers)


def _describe(error: Exception) -> tuple[dict[str, str], int, dict[str, str]]:
    """Content, status and headers of the answer; counts the error, and logs it where nobody expected it."""
    trace = secrets.token_hex(8)
    refusal = _as_api_exception(error)
    if refusal is None:
        _log_unexpected(error, trace=trace)
        refusal = APIException("Something went wrong on our side.", code="internal")
    code = _code_of(refusal)
    ERRORS.labels(code=code if code in _KNOWN_CODES else "other").inc()
    headers = {}
    wait = getattr(refusal, "wait", None)
    if wait:
        headers["Retry-After"] = str(int(wait) + 1)
    challenge = getattr(refusal, "auth_header", None)
    if challenge:
        headers["WWW-Authenticate"] = challenge
    return (
        {"code": code, "detail": _detail_of(refusal)[:MAX_DETAIL_CHARS], "trace": trace},
        refusal.status_code,
        headers,
    )


def not_found(_request: HttpRequest) -> JsonResponse:
    """The answer to every path below /api/ that nothing lives at."""
    content = {"code": ErrorCode.NOT_FOUND.value, "detail": "There is no such path.", "trace": secrets.token_hex(8)}
    return JsonResponse(content, status=404)


def _as_api_exception(error: Exception) -> APIException | None:
    if isinstance(error, APIException):
        return error
    if isinstance(error, Http404):
        return NotFound(_SENTENCE[ErrorCode.NOT_FOUND], code=ErrorCode.NOT_FOUND.value)
    if isinstance(error, PermissionDenied):
        return DrfPermissionDenied()
    if isinstance(error, ProtocolError | VerbRefused):
        return Refused(error.code.value)
    if isinstance(error, OperationalError | InterfaceError):
        logger.warning("database did not answer error=%s", type(error).__name__)
        return Refused(ErrorCode.UNAVAILABLE.value)
    return None


def _code_of(error: APIException) -> str:
    if isinstance(error, ValidationError):
        return "invalid"
    return str(getattr(error.detail, "code", error.default_code))


def _detail_of(error: APIException) -> str:
    return " ".join(_sentences(error.detail, path=""))


def _sentences(detail: Any, *, path: str) -> Iterator[str]:
    """DRF's nested details as sentences that name their field."""
    if isinstance(detail, Mapping):
        for key, inner in detail.items():
            yield from _sentences(inner, path=f"{path}.{key}" if path else str(key))
    elif isinstance(detail, list | tuple):
        for inner in detail:
            yield from _sentences(inner, path=path)
    else:
        yield f"{path}: {detail}" if path and path != "non_field_errors" else str(detail)


def _log_unexpected(error: Exception, *, trace: str) -> None:
    """Where it happened and of which kind; the error's own sentence may hold what somebody wrote, so it stays out."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f"{last[0].filename}:{last[0].lineno}" if last else "?"
    logger.error("request failed trace=%s error=%s at=%s", trace, type(error).__name__, where)


_KNOWN_CODES = frozenset(
    {*(code.value for code in ErrorCode), "invalid", "internal", "not_authenticated", "permission_denied"}
    | {"token_missing", "token_invalid", "token_expired", "identity_required", "identity_invalid", "origin_forbidden"}
    | {"method_not_allowed", "not_acceptable", "unsupported_media_type", "client_id_taken", "throttled"}
)
