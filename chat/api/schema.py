"""Pieces of the OpenAPI annotations that the views share."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, inline_serializer
from rest_framework import serializers

from chat.api.permissions import StaffLogin, VisitorToken
from chat.api.serializers import ErrorSerializer

CURSOR = OpenApiParameter("cursor", OpenApiTypes.STR, description="From `next` or `previous` of another page.")
NO_BODY = OpenApiTypes.NONE


def answers(success: Any, *error_codes: int, status: int = 200) -> Mapping[int, Any]:
    """Responses of an operation: the success, and our one error shape under each of the codes."""
    return {status: success, **dict.fromkeys(error_codes, ErrorSerializer)}


def page_schema(
    row: type[serializers.Serializer[Any]], *, name: str, **beside: serializers.Field[Any, Any, Any, Any]
) -> serializers.Serializer[Any]:
    """A page of rows, and what else stands `beside` them: `next` and `previous` are addresses or null."""
    return inline_serializer(
        name=name,
        fields={
            "next": serializers.URLField(allow_null=True),
            "previous": serializers.URLField(allow_null=True),
            "results": row(many=True),
            **beside,
        },
    )


class _VisitorTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = VisitorToken
    name = "visitorToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "From POST /api/chat/start."}


class _StaffLoginScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = StaffLogin
    name = "staffLogin"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "Django's log-in at /staff/login/.",
        }
