"""The shapes of the visitors' REST door: what comes in is checked here, what goes out is described here."""

from rest_framework import serializers

from chat.api.fields import StrictFlag, StrictInteger, StrictText
from chat.models.sites import ConsentPurpose
from chat.protocol import MAX_COMMENT_CHARS, MAX_REASONS, MAX_TOKEN_CHARS
from chat.tokens import MAX_IDENTITY_CHARS

LOCALE_PATTERN = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}$"


class ErrorSerializer(serializers.Serializer[object]):
    """Every error of this door."""

    code = serializers.CharField(help_text="A word for programs.")
    detail = serializers.CharField(help_text="A sentence for people.")
    trace = serializers.CharField(help_text="Names this error in the server's log.")


class IdentitySerializer(serializers.Serializer[object]):
    """An id of the host site, signed on its server: hex HMAC-SHA256 of the id under the site's secret."""

    id = StrictText(max_length=MAX_IDENTITY_CHARS, trim_whitespace=False)
    signature = StrictText(max_length=128)


class StartSerializer(serializers.Serializer[object]):
    site = StrictText(max_length=50, help_text="The site's slug.")
    token = StrictText(max_length=MAX_TOKEN_CHARS, required=False, allow_blank=True)
    identity = IdentitySerializer(required=False, allow_null=True)
    locale = serializers.RegexField(LOCALE_PATTERN, max_length=16, required=False, allow_blank=True)


class SiteSerializer(serializers.Serializer[object]):
    slug = serializers.CharField()
    name = serializers.CharField()
    locale = serializers.CharField()
    country = serializers.CharField(help_text="ISO 3166 code, or empty where it is not known.")
    is_demo_model = serializers.BooleanField(help_text="A small demonstration model answers.")
    is_identity_required = serializers.BooleanField()


class StartedSerializer(serializers.Serializer[object]):
    token = serializers.CharField()
    conversation = serializers.UUIDField()
    visitor = serializers.UUIDField()
    expires_at = serializers.DateTimeField()
    is_continued = serializers.BooleanField(help_text="An open conversation goes on; false: a new one begins.")
    consent = serializers.BooleanField(help_text="Whether consent to be used for improvement holds.")
    site = SiteSerializer()


class MessageSerializer(serializers.Serializer[object]):
    """A message as the visitor's page sees it; the same shape travels on the socket."""

    id = serializers.UUIDField()
    seq = serializers.IntegerField()
    changed_seq = serializers.IntegerField()
    kind = serializers.CharField(help_text="visitor, reply, staff or safety")
    status = serializers.CharField(help_text="queued, running, complete, stopped, failed, interrupted or blocked")
    text = serializers.CharField(allow_blank=True)
    parent = serializers.UUIDField(allow_null=True)  # type: ignore[assignment]
    sibling_index = serializers.IntegerField()
    sibling_count = serializers.IntegerField()
    selected = serializers.BooleanField()
    created_at = serializers.CharField()
    client_id = serializers.CharField(allow_null=True)
    code = serializers.CharField(allow_null=True)
    retryable = serializers.BooleanField()
    feedback = serializers.IntegerField()
    author = serializers.CharField(allow_null=True)


class FeedbackSerializer(serializers.Serializer[object]):
    value = StrictInteger(min_value=-1, max_value=1, help_text="1 up, -1 down, 0 taken back.")
    reasons = serializers.ListField(child=StrictText(max_length=40), max_length=MAX_REASONS, required=False)
    comment = StrictText(max_length=MAX_COMMENT_CHARS, required=False, allow_blank=True)


class RatingSerializer(serializers.Serializer[object]):
    stars = StrictInteger(min_value=1, max_value=5)
    comment = StrictText(max_length=MAX_COMMENT_CHARS, required=False, allow_blank=True)


class RatedSerializer(serializers.Serializer[object]):
    stars = serializers.IntegerField()
    at = serializers.DateTimeField()


class ClosedSerializer(serializers.Serializer[object]):
    conversation = serializers.UUIDField()
    state = serializers.CharField()


class ConsentSerializer(serializers.Serializer[object]):
    purpose = serializers.ChoiceField(choices=ConsentPurpose.choices)
    version = StrictText(
        max_length=32, required=False, help_text="Of the text that was shown; left out: the current one."
    )
    granted = StrictFlag()


class ConsentedSerializer(serializers.Serializer[object]):
    purpose = serializers.CharField()
    version = serializers.CharField()
    granted = serializers.BooleanField()
    at = serializers.DateTimeField()


class ErasedSerializer(serializers.Serializer[object]):
    """How many rows went, by table."""

    erased = serializers.DictField(child=serializers.IntegerField())


class HelplineSerializer(serializers.Serializer[object]):
    name = serializers.CharField()
    phone = serializers.CharField(allow_blank=True)
    text = serializers.CharField(allow_blank=True)
    url = serializers.CharField(allow_blank=True)
    hours = serializers.CharField(allow_blank=True)
    country = serializers.CharField(allow_blank=True, help_text="Empty: serves several countries.")


class HelplinesSerializer(serializers.Serializer[object]):
    country = serializers.CharField(allow_blank=True)
    compiled_on = serializers.DateField(help_text="When the product's table was put together.")
    resources = HelplineSerializer(many=True)


class DownloadedMessageSerializer(serializers.Serializer[object]):
    id = serializers.UUIDField()
    seq = serializers.IntegerField()
    kind = serializers.CharField()
    status = serializers.CharField()
    text = serializers.CharField(allow_blank=True)
    created_at = serializers.CharField()
    answers = serializers.UUIDField(allow_null=True)
    selected = serializers.BooleanField()
    feedback = serializers.IntegerField()
    author = serializers.CharField(allow_null=True)


class DownloadedRatingSerializer(serializers.Serializer[object]):
    stars = serializers.IntegerField()
    comment = serializers.CharField(allow_blank=True)
    at = serializers.CharField()


class DownloadedChoiceSerializer(serializers.Serializer[object]):
    purpose = serializers.CharField()
    version = serializers.CharField()
    granted = serializers.BooleanField()
    at = serializers.CharField()


class DownloadSerializer(serializers.Serializer[object]):
    """The file of one conversation: everything its visitor may see."""

    format = serializers.CharField()
    downloaded_at = serializers.CharField()
    conversation = serializers.UUIDField()
    site = serializers.CharField()
    state = serializers.CharField()
    created_at = serializers.CharField()
    visitor = serializers.UUIDField()
    identity = serializers.CharField(allow_blank=True)
    locale = serializers.CharField(allow_blank=True)
    messages = DownloadedMessageSerializer(many=True)
    ratings = DownloadedRatingSerializer(many=True)
    consents = DownloadedChoiceSerializer(many=True)
