"""Who may call what: nobody by default, visitors by their token, staff by their role. Denials change nothing (A13).

A missing, foreign or expired visitor token is 401; somebody else's id is 404, as if it did not exist; a member of staff
without the right role is 403, and without a log-in 401.
"""

from typing import TYPE_CHECKING

from django.contrib.auth.models import AnonymousUser
from rest_framework.authentication import BaseAuthentication, SessionAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from chat.models import User
from chat.services.visitors import VisitorAccess, resolve_token
from chat.tokens import TokenExpired, TokenInvalid

if TYPE_CHECKING:  # DRF's views read this module while they are being loaded
    from rest_framework.views import APIView


class DenyAll(BasePermission):
    """The default: a view that names no permission is closed."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return False


class VisitorToken(BaseAuthentication):
    """`Authorization: Bearer <token>`; the access is `request.auth`. Cookies are never looked at, so no CSRF arises."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, VisitorAccess]:
        parts = get_authorization_header(request).split()
        if len(parts) != 2 or parts[0].lower() != b"bearer":
            raise AuthenticationFailed("Send the visitor token as a bearer token.", code="token_missing")
        try:
            access = resolve_token(parts[1].decode("latin-1"))
        except TokenExpired as error:
            raise AuthenticationFailed("The visitor token has expired.", code="token_expired") from error
        except TokenInvalid as error:
            raise AuthenticationFailed("The visitor token is not valid.", code="token_invalid") from error
        return AnonymousUser(), access

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="rapport"'


class StaffLogin(SessionAuthentication):
    """Django's log-in, with CSRF checked on every change; 401 where nobody is logged in."""

    def authenticate_header(self, request: Request) -> str:
        return 'Session realm="rapport"'


class IsVisitor(BasePermission):
    """Holds a valid visitor token."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return isinstance(request.auth, VisitorAccess)


class IsReviewer(BasePermission):
    """Reviewer, lead or admin."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return isinstance(request.user, User) and request.user.may_review


def access_of(request: Request) -> VisitorAccess:
    """The visitor's access; only behind `VisitorToken`."""
    if not isinstance(request.auth, VisitorAccess):
        raise AuthenticationFailed(code="token_missing")
    return request.auth


def staff_of(request: Request) -> User:
    """The member of staff; only behind `IsReviewer`."""
    if not isinstance(request.user, User):
        raise AuthenticationFailed
    return request.user
