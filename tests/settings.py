"""Django settings of the tests: a real Redis, SQLite in a file or the PostgreSQL of TEST_DATABASE_URL, short waits."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_folder = Path(tempfile.mkdtemp(prefix="rapport-tests-"))
(_folder / "static").mkdir()  # WhiteNoise warns of a folder that is not there
(_folder / "encoder").mkdir()
(_folder / "encoder" / "manifest.json").write_text('{"judge_version": "judge-00000000fade"}')
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
os.environ.update(
    RAPPORT_DATA=str(_folder),
    RAPPORT_SECRET_KEY="tests-only-" + "k" * 40,
    DATABASE_URL=os.environ.get("TEST_DATABASE_URL") or f"sqlite:///{_folder / 'db.sqlite3'}",
    RAPPORT_ENCODER_URL="http://127.0.0.1:9",  # nobody listens: a test brings its own encoder
    RAPPORT_ORIGINS="http://testserver,http://localhost:8000",
    RAPPORT_ALLOWED_HOSTS="testserver,localhost,127.0.0.1",
)
if "TEST_REDIS_URL" not in os.environ:
    from deploy.local.services import PrivateRedis

    _redis = PrivateRedis()
    _redis.start()
    atexit.register(_redis.remove)
    os.environ["TEST_REDIS_URL"] = _redis.url
os.environ["REDIS_URL"] = os.environ["TEST_REDIS_URL"]

from deploy.settings import *  # noqa: E402, F403
from deploy.settings import DATABASES  # noqa: E402

DATABASES["default"]["TEST"] = (
    {"NAME": str(_folder / "test.sqlite3")} if "sqlite" in DATABASES["default"]["ENGINE"] else {}
)
DATABASES["default"].get("OPTIONS", {}).pop("pool", None)  # a pool would keep the test database open after the tests
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
STATICFILES_DIRS = []
CELERY_TASK_ALWAYS_EAGER = False

RAPPORT_ENCODER_FOLDER = str(_folder / "encoder")  # what `bootstrap` reads the judge's name from
RAPPORT_HEARTBEAT_S = 0.2
RAPPORT_STALE_AFTER_S = 2.0
RAPPORT_FIRST_TOKEN_S = 2.0
RAPPORT_BETWEEN_TOKENS_S = 1.0
RAPPORT_WHOLE_REPLY_S = 8.0
RAPPORT_CONNECT_S = 0.5
RAPPORT_SCREEN_TIMEOUT_S = 1.0
RAPPORT_MESSAGES_PER_MINUTE = 500
RAPPORT_ADDRESS_MESSAGES_PER_MINUTE = 5_000
RAPPORT_SITE_MESSAGES_PER_MINUTE = 5_000
