"""The sites that carry the chat, the visitors who come through them, and what they consented to."""

import secrets
import uuid

from django.core.exceptions import ValidationError
from django.db import models

from chat.greeting import GreetingInvalid, read_greeting
from chat.helplines import HelplinesInvalid, read_site_helplines
from chat.origins import OriginInvalid, check_origins
from chat.theme import ThemeInvalid, read_theme


class ReplyMode(models.TextChoices):
    """How a reply may use the rubric (design: plain is the paper's way and the default)."""

    PLAIN = "plain", "Plain"
    GUIDED = "guided", "Guided"
    BEST_OF_K = "best_of_k", "Best of k"


def make_identity_secret() -> str:
    """A fresh secret for the HMAC that a host site signs its visitors' ids with."""
    return secrets.token_hex(32)


class WidgetSite(models.Model):
    """One place where visitors chat: its origins, texts, helplines, identity rule and limits."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=120)
    is_active = models.BooleanField(default=True)
    origins = models.JSONField(default=list, help_text="Origins of host pages that may embed the chat; never *.")
    theme = models.JSONField(
        default=dict, blank=True, help_text="accent (#rrggbb), radius (pixels), scheme (light, dark, auto)."
    )
    locales = models.JSONField(
        default=list, blank=True, help_text="Languages of the site, the first one first; empty = those of the product."
    )
    texts = models.JSONField(
        default=dict,
        blank=True,
        help_text="greeting, and up to four suggestions; empty = the product's.",
    )
    country = models.CharField(max_length=2, blank=True, help_text="Country of the helplines shown first (ISO 3166).")
    helplines = models.JSONField(default=list, blank=True, help_text="Replaces the product's table where not empty.")
    identity_secret = models.CharField(max_length=64, default=make_identity_secret)
    is_identity_required = models.BooleanField(default=False)
    mode = models.CharField(max_length=16, choices=ReplyMode.choices, default=ReplyMode.PLAIN)
    system_prompt = models.TextField(blank=True)
    safety_message = models.TextField(
        blank=True, help_text="Said instead of a reply at level high; empty = the product's."
    )
    is_staffed = models.BooleanField(
        default=False, help_text="People answer alerts now. The card promises nobody otherwise."
    )
    daily_token_budget = models.PositiveIntegerField(default=2_000_000)
    retention_days = models.PositiveIntegerField(default=365)
    is_demo = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.slug

    def clean(self) -> None:
        """Origins in their normal form, helplines that somebody can reach, a look that can be read.

        ValidationError names the field.
        """
        problems = {}
        try:
            self.origins = list(check_origins(self.origins))
        except OriginInvalid as error:
            problems["origins"] = str(error)
        try:
            read_site_helplines(self.helplines)
        except HelplinesInvalid as error:
            problems["helplines"] = str(error)
        try:
            read_theme(self.theme)
        except ThemeInvalid as error:
            problems["theme"] = str(error)
        try:
            read_greeting(self.texts)
        except GreetingInvalid as error:
            problems["texts"] = str(error)
        if problems:
            raise ValidationError(problems)


class Visitor(models.Model):
    """A person who chats; anonymous unless the host site signed an id for them."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    site = models.ForeignKey(WidgetSite, on_delete=models.CASCADE, related_name="visitors")
    external_id = models.CharField(max_length=128, blank=True)
    is_verified = models.BooleanField(default=False)
    locale = models.CharField(max_length=16, blank=True)
    token_epoch = models.PositiveIntegerField(default=0, help_text="Raised to make every older token worthless.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["site", "external_id"], condition=~models.Q(external_id=""), name="one_visitor_per_identity"
            ),
        )

    def __str__(self) -> str:
        return str(self.id)


class ConsentPurpose(models.TextChoices):
    IMPROVEMENT = "improvement", "Improve the product with my conversations"


class Consent(models.Model):
    """One choice of a visitor, append-only (erasure aside); the newest row of a purpose holds."""

    visitor = models.ForeignKey(Visitor, on_delete=models.CASCADE, related_name="consents")
    purpose = models.CharField(max_length=24, choices=ConsentPurpose.choices)
    version = models.CharField(max_length=32)
    is_granted = models.BooleanField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.purpose} {self.version} {'granted' if self.is_granted else 'refused'}"
