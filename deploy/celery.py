"""The Celery app: `celery -A deploy worker --beat`. Its log is ours (`deploy.logs`), so that no task argument leaks."""

import logging.config
import os
import warnings
from typing import Any

from celery import Celery
from celery.exceptions import SecurityWarning
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
# It warns a worker that runs as root, as in a container, of pickled messages; ours takes JSON alone.
warnings.filterwarnings("ignore", category=SecurityWarning)
app = Celery("rapport")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def use_our_logging(**_: Any) -> None:
    """Celery sets up no logging of its own once this is connected."""
    from django.conf import settings

    logging.config.dictConfig(settings.LOGGING)
