"""The ASGI door: HTTP to Django, sockets to the consumers. Started by uvicorn."""

import os

from django.core.asgi import get_asgi_application

from deploy.celery import app as celery_app

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
http = get_asgi_application()  # loads the apps; what follows needs them

from channels.routing import ProtocolTypeRouter  # noqa: E402

from chat.routing import lifespan, sockets  # noqa: E402

application = ProtocolTypeRouter({"http": http, "websocket": sockets, "lifespan": lifespan})
__all__ = ["application", "celery_app"]
