"""What visitors agreed to: append-only rows, the newest of a purpose holds (rule 10)."""

from chat.models import Consent, Visitor
from chat.models.sites import ConsentPurpose

# The text that the visitor saw beside the box; a changed text gets a new version, and old choices keep theirs.
CONSENT_VERSIONS: dict[ConsentPurpose, str] = {ConsentPurpose.IMPROVEMENT: "improvement-1"}


class ConsentVersionUnknown(ValueError):
    """The page showed a text that this server does not know: reload it."""

    def __init__(self, version: str) -> None:
        super().__init__(f"No consent text of this version ({len(version)} characters); reload the page.")


def record_consent(visitor: Visitor, *, purpose: ConsentPurpose, version: str, is_granted: bool) -> Consent:
    """Append the visitor's choice. A refusal is a choice too, and takes an earlier consent back from now on."""
    if version != CONSENT_VERSIONS[purpose]:
        raise ConsentVersionUnknown(version)
    return Consent.objects.create(visitor=visitor, purpose=purpose, version=version, is_granted=is_granted)


def has_consent(visitor: Visitor, *, purpose: ConsentPurpose = ConsentPurpose.IMPROVEMENT) -> bool:
    """Whether consent holds now; never asked means no."""
    newest = visitor.consents.filter(purpose=purpose).order_by("-id").values_list("is_granted", flat=True).first()
    return bool(newest)
