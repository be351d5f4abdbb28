"""Staff accounts. Visitors are rows of their own (`sites.Visitor`) and never log in here."""

from django.contrib.auth.models import AbstractUser
from django.db import models


class Role(models.TextChoices):
    """What a person may do; there are no teams. Each role stands alone, except that `admin` may do everything."""

    REVIEWER = "reviewer", "Reviewer"
    LEAD = "lead", "Lead"
    TRAINER = "trainer", "Trainer"
    PROMOTER = "promoter", "Promoter"
    ADMIN = "admin", "Admin"


# Who may open conversations at all, and who may see them unredacted (every such look is audited).
REVIEW_ROLES = frozenset({Role.REVIEWER, Role.LEAD, Role.ADMIN})
REVEAL_ROLES = frozenset({Role.LEAD, Role.ADMIN})


class User(AbstractUser):
    """A member of staff with one role; no role means no access beyond logging in."""

    role = models.CharField(max_length=16, choices=Role.choices, blank=True)
    display_name = models.CharField(max_length=80, blank=True)

    @property
    def may_review(self) -> bool:
        return self.is_active and (self.is_superuser or self.role in REVIEW_ROLES)

    @property
    def may_reveal(self) -> bool:
        return self.is_active and (self.is_superuser or self.role in REVEAL_ROLES)

    @property
    def shown_name(self) -> str:
        """The name that visitors and colleagues see."""
        return self.display_name or self.get_full_name() or self.username
