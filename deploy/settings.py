"""Django settings of Rapport. What differs between machines comes from `deploy.env`; the rest is decided here.

Settings that begin with RAPPORT_ are our own; each is described in `docs/operations.md`.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from deploy.env import CHECKOUT, read_environment

ENVIRONMENT = read_environment()
BASE_DIR = CHECKOUT
DEBUG = ENVIRONMENT.is_debug
SECRET_KEY = ENVIRONMENT.secret_key
if not SECRET_KEY:
    secret_file = ENVIRONMENT.data / "secret_key"
    if not secret_file.exists():
        raise ImproperlyConfigured(
            f"No secret key: set RAPPORT_SECRET_KEY, or run `make run`, which writes one to {secret_file.name} once."
        )
    SECRET_KEY = secret_file.read_text().strip()

ALLOWED_HOSTS = list(ENVIRONMENT.allowed_hosts)
CSRF_TRUSTED_ORIGINS = list(ENVIRONMENT.origins)

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "chat",
    "training",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "chat.headers.ContentPolicy",
    "deploy.static_files.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "deploy.urls"
ASGI_APPLICATION = "deploy.asgi.application"
AUTH_USER_MODEL = "chat.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGIN_URL = "/staff/login/"
LOGIN_REDIRECT_URL = "/staff/"
LOGOUT_REDIRECT_URL = "/staff/login/"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]


def database_settings(url: str) -> dict[str, Any]:
    """`sqlite:///path` or `postgresql://user:password@host:port/name` as Django's settings.

    SQLite: WAL and IMMEDIATE, so that a read that turns into a write waits its turn instead of failing (B11). Its
    connections stay open: each hop into the database thread would open and close one, which costs more than the turn.
    PostgreSQL: psycopg's pool; a connection that the server closed is replaced before it is handed out (B5).
    """
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": unquote(parts.path[1:] if parts.path.startswith("//") else parts.path),
            "CONN_MAX_AGE": None,
            "OPTIONS": {
                "timeout": 20,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
        }
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured(f"DATABASE_URL begins with {parts.scheme!r}; use sqlite:/// or postgresql://.")
    query = dict(part.split("=", 1) for part in parts.query.split("&") if "=" in part)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(query.get("host", "") or parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"pool": {"min_size": 1, "max_size": 8, "timeout": 10}},
    }


DATABASES = {"default": database_settings(ENVIRONMENT.database_url)}

REDIS_URL = ENVIRONMENT.redis_url
CHANNEL_LAYERS = {"default": {"BACKEND": "chat.pubsub.PubSubLayer", "CONFIG": {"hosts": [REDIS_URL]}}}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True
STATIC_URL = "/static/"
STATIC_ROOT = ENVIRONMENT.data / "static"
STATICFILES_DIRS = [("front", str(ENVIRONMENT.front))] if Path(ENVIRONMENT.front).is_dir() else []
WHITENOISE_USE_FINDERS = True
EMAIL_BACKEND = (
    "django.core.mail.backends.console.EmailBackend" if DEBUG else "django.core.mail.backends.smtp.EmailBackend"
)

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 256 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["chat.api.permissions.DenyAll"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["chat.api.parsers.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "chat.api.errors.answer_error",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Rapport",
    "DESCRIPTION": "Conversations for visitors; review for staff.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_NAME_OVERRIDES": {},
}

CELERY_BROKER_URL = REDIS_URL
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A killed worker's task comes back within seconds instead of minutes (B14); the database decides what really runs.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
    "socket_timeout": 10.0,  # a broker that hangs: without it a publish waits for ever
    "socket_connect_timeout": 2.0,
}
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {"chat.tasks.grade_turn": {"queue": "judge"}}
CELERY_BEAT_SCHEDULE = {
    "grade-what-was-missed": {"task": "chat.tasks.grade_missed", "schedule": 30.0},
    "notify-alerts": {"task": "chat.tasks.notify_alerts", "schedule": 10.0},
    "retention": {"task": "chat.tasks.apply_retention", "schedule": 3600.0},
}

# --- our own --------------------------------------------------------------------------------------------------------
RAPPORT_ORIGINS = list(ENVIRONMENT.origins)
RAPPORT_ENCODER_URL = ENVIRONMENT.encoder_url
RAPPORT_ENCODER_FOLDER = ENVIRONMENT.encoder_folder
RAPPORT_JUDGE = ENVIRONMENT.judge
RAPPORT_ENGINE = ENVIRONMENT.engine
RAPPORT_CACHE = ENVIRONMENT.cache
RAPPORT_DATA = ENVIRONMENT.data
RAPPORT_MODEL = ENVIRONMENT.model
RAPPORT_MODEL_FOLDER = ENVIRONMENT.model_folder
RAPPORT_ENGINE_URL = ENVIRONMENT.engine_url
RAPPORT_STAFF_WEBHOOK = ENVIRONMENT.staff_webhook
RAPPORT_STAFF_EMAIL = ENVIRONMENT.staff_email
RAPPORT_VISITOR_TOKEN_AGE = timedelta(days=30)
RAPPORT_MESSAGES_PER_MINUTE = 20
RAPPORT_SITE_MESSAGES_PER_MINUTE = 1_200
RAPPORT_ADDRESS_MESSAGES_PER_MINUTE = 120
RAPPORT_ENGINE_QUEUE = 16
RAPPORT_REPLIES_PER_VISITOR = 2
RAPPORT_CONTEXT_TOKENS = 1_400
RAPPORT_REPLY_MAX_TOKENS = 220
RAPPORT_TEMPERATURE = 0.7
RAPPORT_CONNECT_S = 3.0
RAPPORT_FIRST_TOKEN_S = 45.0
RAPPORT_BETWEEN_TOKENS_S = 15.0
RAPPORT_WHOLE_REPLY_S = 180.0
RAPPORT_SCREEN_TIMEOUT_S = 1.5
RAPPORT_HEARTBEAT_S = 2.0
RAPPORT_STALE_AFTER_S = 6.0
RAPPORT_IDLE_SOCKET_S = 90.0
RAPPORT_SLOW_READER_S = 30.0
RAPPORT_IDLE_BEFORE_VERSION_CHANGE = timedelta(minutes=30)
RAPPORT_JUDGE_TIMEOUT_S = 20.0
RAPPORT_GRADE_DEADLINE_S = 90.0

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"()": "deploy.logs.QuietFormatter", "format": "%(levelname)s %(name)s %(message)s"}},
    "filters": {"readiness": {"()": "deploy.logs.ReadinessFilter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain", "filters": ["readiness"]}},
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "django.channels.server": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        # Two lines a task, a beat every ten seconds, a grading that yields every second; failures are warnings.
        "celery.beat": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
    },
}
