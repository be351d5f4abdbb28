"""Demo accounts: one per role, a password only once."""

import pytest

from chat.models import User
from chat.models.people import Role
from chat.services.accounts import ensure_demo_accounts

pytestmark = pytest.mark.django_db


def test_one_account_per_role_with_its_own_random_password() -> None:
    made = ensure_demo_accounts()
    assert [account.role for account in made] == list(Role)
    assert len({account.password for account in made}) == len(made)
    for account in made:
        user = User.objects.get(username=account.username)
        assert user.check_password(account.password)
        assert user.role == account.role
        assert user.is_superuser == (account.role == Role.ADMIN)
        assert account.password not in user.password


def test_second_run_makes_nothing_and_leaves_passwords_alone() -> None:
    first = ensure_demo_accounts()
    assert ensure_demo_accounts() == ()
    assert User.objects.get(username=first[0].username).check_password(first[0].password)
