"""Every HTTP path of the product. Sockets are in `chat.routing`."""

from django.contrib import admin
from django.urls import include, path

from chat import embedding, health, pages
from chat.api import urls as api
from deploy.celery import app as celery_app

admin.site.site_header = "Rapport"
admin.site.site_title = "Rapport"
admin.site.index_title = "Rows"

urlpatterns = [
    path("", pages.visitor_page, name="home"),
    path("chat/<slug:slug>/", pages.visitor_page, name="chat"),
    path("widget.js", embedding.widget_script, {"name": "widget.js"}, name="widget-script"),
    path("widget-panel.js", embedding.widget_script, {"name": "widget-panel.js"}, name="widget-panel-script"),
    path("widget/demo/", pages.widget_demo, name="widget-demo"),
    path("staff/login/", pages.StaffLoginPage.as_view(), name="login"),
    path("staff/logout/", pages.StaffLogoutPage.as_view(), name="logout"),
    path("staff/", pages.staff_inbox, name="staff-inbox"),
    path("staff/conversations/<uuid:conversation_id>/", pages.staff_transcript, name="staff-transcript"),
    path("admin/", admin.site.urls),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("api/", include([*api.urlpatterns, api.nothing_here])),
]
__all__ = ["celery_app", "urlpatterns"]
