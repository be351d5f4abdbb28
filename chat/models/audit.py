"""Who did what: append-only, and held so by triggers on both databases."""

from typing import TYPE_CHECKING

from django.db import models

from chat.models.people import User

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor

TABLE = "chat_auditentry"
_RAISE = "BEGIN SELECT RAISE(ABORT, 'audit entries are final'); END"
_SQLITE_CREATE = (
    f"CREATE TRIGGER audit_no_update BEFORE UPDATE ON {TABLE} {_RAISE}",
    f"CREATE TRIGGER audit_no_delete BEFORE DELETE ON {TABLE} {_RAISE}",
)
_POSTGRES_CREATE = (
    "CREATE FUNCTION audit_is_final() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'audit entries are final'; END $$",
    f"CREATE TRIGGER audit_is_final BEFORE UPDATE OR DELETE ON {TABLE} FOR EACH ROW EXECUTE FUNCTION audit_is_final()",
    f"CREATE TRIGGER audit_is_whole BEFORE TRUNCATE ON {TABLE} FOR EACH STATEMENT EXECUTE FUNCTION audit_is_final()",
)
_SQLITE_DROP = ("DROP TRIGGER IF EXISTS audit_no_update", "DROP TRIGGER IF EXISTS audit_no_delete")
_POSTGRES_DROP = (
    f"DROP TRIGGER IF EXISTS audit_is_final ON {TABLE}",
    f"DROP TRIGGER IF EXISTS audit_is_whole ON {TABLE}",
    "DROP FUNCTION IF EXISTS audit_is_final()",
)


def create_triggers(_apps: object, editor: "BaseDatabaseSchemaEditor") -> None:
    """Make audit entries final; called by the migration."""
    for statement in _SQLITE_CREATE if editor.connection.vendor == "sqlite" else _POSTGRES_CREATE:
        editor.execute(statement)


def drop_triggers(_apps: object, editor: "BaseDatabaseSchemaEditor") -> None:
    """Undo `create_triggers` (for a migration backwards)."""
    for statement in _SQLITE_DROP if editor.connection.vendor == "sqlite" else _POSTGRES_DROP:
        editor.execute(statement)


class AuditEntry(models.Model):
    """One deed of a member of staff or of the product; ids and counts, never what people wrote.

    The actor is kept by id and name, not as a foreign key: an entry outlives the account it speaks of.
    """

    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=150)
    verb = models.CharField(max_length=40)
    subject = models.CharField(max_length=120)
    facts = models.JSONField(default=dict)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.actor_name} {self.verb} {self.subject}"


def record(verb: str, subject: str, *, actor: User | None, facts: dict[str, str | int | float | bool]) -> AuditEntry:
    """Write an entry; `actor` None is the product itself."""
    return AuditEntry.objects.create(
        actor_id=actor.pk if actor else None,
        actor_name=actor.username if actor else "rapport",
        verb=verb,
        subject=subject,
        facts=facts,
    )
