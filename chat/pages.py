"""The HTML pages: the visitors' chat, the staff's inbox and transcripts, log-in. The front end mounts into them.

What a visitor must know stands in the page without JavaScript too: that an AI answers, that this is neither a medical
device nor an emergency service, and where help is. Nothing that people wrote is ever put into a template.
"""

from dataclasses import asdict
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LoginView, LogoutView
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

from chat import policies
from chat.embedding import refusal
from chat.greeting import shown_greeting
from chat.headers import content_policy
from chat.helplines import helpline_table, resources_by_country, resources_for
from chat.models import Conversation, User, WidgetSite
from chat.models.learning import VersionKind
from chat.models.sites import ConsentPurpose
from chat.origins import valid_origins
from chat.services.consent import CONSENT_VERSIONS
from chat.services.sites import is_demo_model, site_view
from chat.theme import shown_theme

DEMO_SLUG = "demo"


@require_safe
@xframe_options_exempt
def visitor_page(request: HttpRequest, slug: str = "") -> HttpResponse:
    """The chat of a site; without a slug that of the demo site, or of the only active one.

    In a widget `?host=` names the embedding page's origin: one that may not show the chat reads why.
    """
    site = WidgetSite.objects.filter(slug=slug, is_active=True).first() if slug else _home_site()
    refused = refusal(request, slug=slug, site=site)
    if refused is not None:
        return refused
    if site is None:
        raise Http404("No active site has this slug.")
    response = render(request, "chat/chat.html", _visitor_context(site))
    response["Content-Security-Policy"] = content_policy(frame_ancestors=site.origins)
    response["Cache-Control"] = "no-cache"
    # A host page that isolates itself (COEP) takes in only frames that do so too; all that this page loads is our own.
    response["Cross-Origin-Embedder-Policy"] = "require-corp"
    response["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


@require_safe
def widget_demo(request: HttpRequest) -> HttpResponse:
    """A small shop with the widget on it, as a host page would embed it; for newcomers and for screenshots."""
    return render(request, "chat/shop.html", {"site": _home_site()})


def _home_site() -> WidgetSite:
    active = list(WidgetSite.objects.filter(is_active=True).order_by("id")[:2])
    demo = WidgetSite.objects.filter(slug=DEMO_SLUG, is_active=True).first()
    if demo is not None:
        return demo
    if len(active) == 1:
        return active[0]
    raise Http404("Several sites or none are active; open /chat/<slug>/.")


def _visitor_context(site: WidgetSite) -> dict[str, object]:
    view = site_view(site)
    live = policies.live_version(VersionKind.POLICY)
    return {
        "site": view,
        "helplines": resources_for(site, country=site.country, locale=view.locale),
        "config": {
            "site": {"slug": view.slug, "name": view.name, "is_identity_required": view.is_identity_required},
            "locale": view.locale,
            "country": view.country,
            "helplines": resources_by_country(site),
            "helplines_checked": helpline_table().compiled_on.isoformat() if not site.helplines else "",
            "model": {"name": live.name if live else "", "is_demo": is_demo_model()},
            "consent_version": CONSENT_VERSIONS[ConsentPurpose.IMPROVEMENT],
            "theme": shown_theme(site.theme).as_json(),
            "locales": [str(locale) for locale in site.locales],
            "texts": asdict(shown_greeting(site.texts)),
            "origins": list(valid_origins(site.origins)),
        },
    }


def reviewing(user: object) -> User:
    """The reviewing member of staff; PermissionDenied for everybody else who is logged in."""
    if not isinstance(user, User) or not user.may_review:
        raise PermissionDenied
    return user


@require_safe
@login_required
@ensure_csrf_cookie
def staff_inbox(request: HttpRequest) -> HttpResponse:
    """The list of conversations and open alerts."""
    user = reviewing(request.user)
    return render(request, "chat/staff_inbox.html", {"user": user, "config": _staff_config(user)})


@require_safe
@login_required
@ensure_csrf_cookie
def staff_transcript(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """One conversation with each turn's priorities and grades."""
    user = reviewing(request.user)
    conversation = get_object_or_404(Conversation, pk=conversation_id)
    context = {"user": user, "conversation": conversation, "config": _staff_config(user)}
    return render(request, "chat/staff_transcript.html", context)


def _staff_config(user: User) -> dict[str, object]:
    return {
        "user": {"id": user.pk, "name": user.shown_name, "role": user.role, "may_reveal": user.may_reveal},
        "model": {"is_demo": is_demo_model()},
    }


class StaffLoginPage(LoginView):
    """Django's log-in on a page of ours."""

    template_name = "chat/login.html"
    redirect_authenticated_user = False


class StaffLogoutPage(LogoutView):
    """Log-out by POST; goes back to the log-in."""

    next_page = settings.LOGOUT_REDIRECT_URL
