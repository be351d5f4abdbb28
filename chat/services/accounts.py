"""Demo accounts, one per role, with passwords that are readable only in the answer of the call that made them."""

import secrets
from dataclasses import dataclass

from django.db import transaction

from chat.models import User
from chat.models.people import Role

PASSWORD_BYTES = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class NewAccount:
    """An account that was made just now; nobody can read the password again."""

    username: str
    role: Role
    password: str


def ensure_demo_accounts() -> tuple[NewAccount, ...]:
    """Make the account of each role that has none yet; accounts that exist are left as they are."""
    made = []
    for role in Role:
        with transaction.atomic():
            if User.objects.filter(username=f"demo-{role.value}").exists():
                continue
            password = secrets.token_urlsafe(PASSWORD_BYTES)
            User.objects.create_user(
                username=f"demo-{role.value}",
                password=password,
                role=role,
                display_name=f"Demo {role.label}",
                is_staff=role == Role.ADMIN,
                is_superuser=role == Role.ADMIN,
            )
        made.append(NewAccount(username=f"demo-{role.value}", role=role, password=password))
    return tuple(made)
