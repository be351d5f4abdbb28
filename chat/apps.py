"""The Django app of conversations."""

from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "chat"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from chat import tasks  # noqa: F401 - a web process must know them too: a finished reply is handed to grading
        from chat.checks import register_checks
        from chat.models.learning import versions_changed
        from chat.store import wake_keeper

        register_checks()
        versions_changed.connect(wake_keeper)
