"""The log names errors by type and place and never repeats what somebody wrote (rule 10)."""

import io
import logging
import logging.config

import pytest
from django.conf import settings

from deploy.logs import QuietFormatter, ReadinessFilter, describe_error

SECRET = "my diary entry"


@pytest.fixture
def log() -> tuple[logging.Logger, io.StringIO]:
    stream = io.StringIO()
    log_to = logging.StreamHandler(stream)
    log_to.setFormatter(QuietFormatter("%(levelname)s %(name)s %(message)s"))
    log_to.addFilter(ReadinessFilter())
    logger = logging.Logger("test.quiet")  # not in the tree: nothing else hears of it
    logger.addHandler(log_to)
    return logger, stream


def fail_with_a_secret() -> None:
    try:
        dict[str, str]()[SECRET]
    except KeyError as error:
        raise ValueError(f"refused {SECRET!r}") from error


def test_exception_is_logged_by_type_and_place_without_its_message(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = log
    try:
        fail_with_a_secret()
    except ValueError:
        logger.exception("request failed path=%s", "/x")
    line = stream.getvalue()
    assert "request failed path=/x" in line
    assert "ValueError at test_logs.py:" in line
    assert "caused by KeyError at test_logs.py:" in line
    assert SECRET not in line


def test_failed_task_is_named_without_its_arguments(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = log
    context = {"name": "chat.tasks.x", "id": "7", "exc": f"ValueError({SECRET!r})", "args": f"[{SECRET!r}]"}
    logger.error("Task %(name)s[%(id)s] %(exc)s %(args)s", context)
    assert "chat.tasks.x" in stream.getvalue()
    assert SECRET not in stream.getvalue()


def test_readiness_that_fails_fills_no_log(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = log
    logger.error("%s: %s", "Service Unavailable", "/readyz")
    logger.error("%s: %s", "Service Unavailable", "/other")
    assert stream.getvalue().count("\n") == 1


def test_error_cycles_end() -> None:
    error = ValueError(SECRET)
    error.__cause__ = error
    assert describe_error(error) == "ValueError at unknown"


def test_settings_use_the_quiet_formatter() -> None:
    assert "deploy.logs.QuietFormatter" in str(settings.LOGGING["formatters"])
    logging.config.DictConfigurator(settings.LOGGING)
