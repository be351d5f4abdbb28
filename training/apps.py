"""The Django app of snapshots, runs and their evidence."""

from django.apps import AppConfig


class TrainingConfig(AppConfig):
    name = "training"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from training.erasure import join_erasures

        join_erasures()
