"""What pages may know of a site."""

from dataclasses import dataclass

from django.conf import settings

from chat.models import WidgetSite

DEFAULT_LOCALE = "en"


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteView:
    """A site as its visitors' page sees it: no secret, no list of origins."""

    slug: str
    name: str
    locale: str
    country: str
    is_demo_model: bool
    is_identity_required: bool


def site_view(site: WidgetSite) -> SiteView:
    """The public part of a site."""
    return SiteView(
        slug=site.slug,
        name=site.name,
        locale=str(site.locales[0]) if site.locales else DEFAULT_LOCALE,
        country=site.country.upper(),
        is_demo_model=is_demo_model(),
        is_identity_required=site.is_identity_required,
    )


def is_demo_model() -> bool:
    """Whether the product's own small model answers: nobody named another model or another server."""
    return not settings.RAPPORT_MODEL and settings.RAPPORT_ENGINE != "remote"
