"""Every row of the `chat` app, by subject. Outsiders write `from chat.models import Conversation`."""

from chat.models.audit import AuditEntry
from chat.models.conversations import Conversation, Message
from chat.models.learning import PolicyVersion, PreferencePair
from chat.models.people import User
from chat.models.priorities import TurnRubric, TurnScore
from chat.models.replies import Feedback, Generation, Rating
from chat.models.safety import Alert, SafetyVerdict
from chat.models.sites import Consent, Visitor, WidgetSite

__all__ = [
    "Alert",
    "AuditEntry",
    "Consent",
    "Conversation",
    "Feedback",
    "Generation",
    "Message",
    "PolicyVersion",
    "PreferencePair",
    "Rating",
    "SafetyVerdict",
    "TurnRubric",
    "TurnScore",
    "User",
    "Visitor",
    "WidgetSite",
]
