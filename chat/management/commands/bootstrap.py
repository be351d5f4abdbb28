"""`manage.py bootstrap`: what a fresh installation begins with; running it again changes nothing.

The demo site, one account per role and the base versions. Passwords of accounts made in this run are printed once; they
are stored as hashes only, so nobody can print them again (`manage.py changepassword` sets a new one).
"""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from chat.checks import refuse_unsafe_origins
from chat.models import WidgetSite
from chat.policies import JudgeUnknown, ensure_base_versions
from chat.services.accounts import ensure_demo_accounts

DEMO_SLUG = "demo"


class Command(BaseCommand):
    help = "Make the demo site, one account per role (passwords are printed once) and the base versions."

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_unsafe_origins()
        site, is_new_site = WidgetSite.objects.get_or_create(
            slug=DEMO_SLUG,
            defaults={"name": "Rapport demo", "origins": list(settings.RAPPORT_ORIGINS), "is_demo": True},
        )
        if is_new_site:
            self.stdout.write(f"site      {site.slug}, shown at / and /chat/{site.slug}/")
        try:
            versions = ensure_base_versions()
        except JudgeUnknown as error:
            raise CommandError(str(error)) from error
        for version in versions:
            self.stdout.write(f"live      {version.kind} {version.name}")
        accounts = ensure_demo_accounts()
        for account in accounts:
            self.stdout.write(f"account   {account.username}  password {account.password}")
        if accounts:
            self.stdout.write("These passwords are shown this once. Log in at /staff/login/.")
