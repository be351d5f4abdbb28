"""The shapes of the staff's REST door; the transcript's are those of `services.transcripts`."""

from rest_framework import serializers

from chat.api.fields import StrictText
from chat.protocol import MAX_CLIENT_ID_CHARS, MAX_TEXT_CHARS


class ConversationRowSerializer(serializers.Serializer[object]):
    """A line of the inbox; no text."""

    id = serializers.UUIDField()
    site = serializers.CharField(source="site.slug")
    kind = serializers.CharField()
    state = serializers.CharField()
    control = serializers.CharField()
    card_level = serializers.CharField()
    visitor_turns = serializers.IntegerField()
    open_alerts = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    last_activity_at = serializers.DateTimeField()


class VerdictSerializer(serializers.Serializer[object]):
    direction = serializers.CharField()
    level = serializers.CharField()
    score = serializers.FloatField(allow_null=True)
    version = serializers.CharField()


class CriterionSerializer(serializers.Serializer[object]):
    id = serializers.CharField()
    text = serializers.CharField()
    dimension = serializers.CharField()
    polarity = serializers.CharField()


class TurnRubricSerializer(serializers.Serializer[object]):
    weights = serializers.DictField(child=serializers.FloatField())
    criteria = CriterionSerializer(many=True)
    generator = serializers.CharField()
    is_fallback = serializers.BooleanField()
    fallback_reason = serializers.CharField(allow_blank=True)
    repairs = serializers.IntegerField()
    latency_ms = serializers.FloatField(allow_null=True)


class JudgementSerializer(serializers.Serializer[object]):
    criterion_id = serializers.CharField()
    level = serializers.FloatField(allow_null=True)
    none_reason = serializers.CharField(allow_null=True)
    evidence = serializers.ListField(
        child=serializers.IntegerField(), allow_null=True, help_text="[start, end) in text"
    )
    quote_unfound = serializers.BooleanField(help_text="The judge quoted what the reply does not say.")


class TurnScoreSerializer(serializers.Serializer[object]):
    judge = serializers.CharField()
    implementation = serializers.CharField(allow_blank=True, help_text="What the judge is: encoder or model.")
    human_evidence = serializers.CharField(help_text="How far it agrees with what staff labelled, as a sentence.")
    reward = serializers.FloatField(allow_null=True)
    partial = serializers.BooleanField()  # type: ignore[assignment]
    by_dimension = serializers.DictField(child=serializers.FloatField(allow_null=True))
    judgements = JudgementSerializer(many=True)


class TurnReplySerializer(serializers.Serializer[object]):
    id = serializers.UUIDField()
    seq = serializers.IntegerField()
    status = serializers.CharField()
    text = serializers.CharField(allow_blank=True)
    code = serializers.CharField(allow_blank=True)
    selected = serializers.BooleanField()
    sibling_index = serializers.IntegerField()
    policy = serializers.CharField(allow_blank=True)
    first_token_ms = serializers.FloatField(allow_null=True)
    total_ms = serializers.FloatField(allow_null=True)
    tokens = serializers.IntegerField(allow_null=True)
    feedback = serializers.IntegerField(allow_null=True)
    score = TurnScoreSerializer(allow_null=True)


class TurnNoteSerializer(serializers.Serializer[object]):
    id = serializers.UUIDField()
    kind = serializers.CharField(help_text="staff, safety or note")
    text = serializers.CharField()
    author = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class TurnSerializer(serializers.Serializer[object]):
    """A visitor message with its rubric, and the replies to it with their scores."""

    id = serializers.UUIDField()
    seq = serializers.IntegerField()
    text = serializers.CharField()
    created_at = serializers.DateTimeField()
    redacted = serializers.BooleanField()
    safety = VerdictSerializer(many=True)
    rubric = TurnRubricSerializer(allow_null=True)
    replies = TurnReplySerializer(many=True)
    notes = TurnNoteSerializer(many=True)


class StaffMessageSerializer(serializers.Serializer[object]):
    client_id = StrictText(max_length=MAX_CLIENT_ID_CHARS)
    text = StrictText(max_length=MAX_TEXT_CHARS, trim_whitespace=False)


class AlertSerializer(serializers.Serializer[object]):
    id = serializers.IntegerField()
    kind = serializers.CharField()
    conversation = serializers.UUIDField(source="conversation_id")
    message = serializers.UUIDField(source="message_id", allow_null=True)
    raised_at = serializers.DateTimeField()
    notified_at = serializers.DateTimeField(allow_null=True)
    acknowledged_at = serializers.DateTimeField(allow_null=True)
    acknowledged_by = serializers.SerializerMethodField()

    def get_acknowledged_by(self, alert: object) -> str | None:
        by = getattr(alert, "acknowledged_by", None)
        return str(by.shown_name) if by else None
