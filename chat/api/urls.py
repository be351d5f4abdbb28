"""Where the REST door's views live. docs/rest.md lists them; a test holds the two together."""

from django.urls import path, re_path
from drf_spectacular.views import SpectacularAPIView

from chat.api import messages, staff, visitor
from chat.api.errors import not_found

urlpatterns = [
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    path("chat/start", visitor.StartView.as_view(), name="start"),
    path("chat/conversations/<uuid:conversation_id>/messages/", visitor.HistoryView.as_view(), name="history"),
    path("chat/conversations/<uuid:conversation_id>/messages", messages.send_message, name="send"),
    path("chat/conversations/<uuid:conversation_id>/rating", visitor.RatingView.as_view(), name="rating"),
    path("chat/conversations/<uuid:conversation_id>/close", visitor.CloseView.as_view(), name="close"),
    path("chat/conversations/<uuid:conversation_id>/download", visitor.DownloadView.as_view(), name="download"),
    path("chat/messages/<uuid:message_id>/feedback", visitor.FeedbackView.as_view(), name="feedback"),
    path("chat/consent", visitor.ConsentView.as_view(), name="consent"),
    path("chat/me", visitor.MeView.as_view(), name="me"),
    path("chat/helplines", visitor.HelplinesView.as_view(), name="helplines"),
    path("staff/conversations/", staff.InboxView.as_view(), name="staff-conversations"),
    path("staff/conversations/<uuid:conversation_id>/turns/", staff.TurnsView.as_view(), name="staff-turns"),
    path(
        "staff/conversations/<uuid:conversation_id>/messages/", staff.StaffMessagesView.as_view(), name="staff-messages"
    ),
    path("staff/alerts/", staff.AlertsView.as_view(), name="staff-alerts"),
    path("staff/alerts/<int:alert_id>/acknowledge/", staff.AcknowledgeView.as_view(), name="staff-acknowledge"),
]
nothing_here = re_path(r"^.*$", not_found)
