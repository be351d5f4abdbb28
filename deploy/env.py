"""The environment of a Rapport process as one frozen value; `deploy.settings` and the engine processes read it here.

Every variable is described in `docs/operations.md`; a test keeps the two in step.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

EngineName = Literal["llamacpp", "vllm", "remote"]
JudgeName = Literal["encoder", "model"]
ENGINES: tuple[EngineName, ...] = ("llamacpp", "vllm", "remote")
JUDGES: tuple[JudgeName, ...] = ("encoder", "model")
CHECKOUT = Path(__file__).resolve().parent.parent


class EnvironmentInvalid(Exception):
    """A variable of the environment cannot be used; the sentence says which, and what it may be."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """Settings that differ between machines. URLs and folders; times and limits are Django settings."""

    cache: Path
    data: Path
    front: Path
    database_url: str
    redis_url: str
    host: str
    port: int
    secret_key: str
    is_debug: bool
    allowed_hosts: tuple[str, ...]
    origins: tuple[str, ...]
    engine: EngineName
    engine_url: str
    engine_model: str
    engine_key: str
    model: str
    model_folder: str
    encoder_url: str
    encoder_folder: str  # "" where the encoder is not ours: then its address is asked what it serves
    judge: JudgeName
    staff_webhook: str
    staff_email: str


def _one_of_engines(value: str) -> EngineName:
    for name in ENGINES:
        if value == name:
            return name
    raise EnvironmentInvalid(f"RAPPORT_ENGINE is {value!r}; it may be one of: {', '.join(ENGINES)}.")


def _one_of_judges(value: str) -> JudgeName:
    for name in JUDGES:
        if value == name:
            return name
    raise EnvironmentInvalid(f"RAPPORT_JUDGE is {value!r}; it may be one of: {', '.join(JUDGES)}.")


def _port(value: str) -> int:
    if not value.isdigit() or not 0 < int(value) < 65536:
        raise EnvironmentInvalid(f"RAPPORT_PORT is {value!r}; it must be a number from 1 to 65535.")
    return int(value)


def _list(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def cache_folder(env: Mapping[str, str]) -> Path:
    """Where environments, converted models and built pages live (RAPPORT_CACHE)."""
    if env.get("RAPPORT_CACHE"):
        return Path(env["RAPPORT_CACHE"]).expanduser().resolve()
    base = env.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "rapport"


def read_environment(env: Mapping[str, str] | None = None) -> Environment:
    """The environment as a value. Raises EnvironmentInvalid with a sentence for a person."""
    env = os.environ if env is None else env
    data = Path(env.get("RAPPORT_DATA") or CHECKOUT / "var").expanduser().resolve()
    engine = _one_of_engines(env.get("RAPPORT_ENGINE", "llamacpp"))
    port = _port(env.get("RAPPORT_PORT", "8000"))
    if engine == "remote" and not env.get("RAPPORT_ENGINE_URL"):
        raise EnvironmentInvalid("RAPPORT_ENGINE is remote: RAPPORT_ENGINE_URL must name an OpenAI-compatible address.")
    return Environment(
        cache=cache_folder(env),
        data=data,
        front=Path(env.get("RAPPORT_FRONT") or CHECKOUT / "frontend" / "dist").resolve(),
        database_url=env.get("DATABASE_URL") or f"sqlite:///{data / 'db.sqlite3'}",
        redis_url=env.get("REDIS_URL") or "redis://127.0.0.1:6379/0",
        host=env.get("RAPPORT_HOST", "127.0.0.1"),
        port=port,
        secret_key=env.get("RAPPORT_SECRET_KEY", ""),
        is_debug=env.get("RAPPORT_DEBUG", "") == "1",
        allowed_hosts=_list(env.get("RAPPORT_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")),
        origins=_list(env.get("RAPPORT_ORIGINS", f"http://localhost:{port},http://127.0.0.1:{port}")),
        engine=engine,
        engine_url=env.get("RAPPORT_ENGINE_URL", ""),
        engine_model=env.get("RAPPORT_ENGINE_MODEL", ""),
        engine_key=env.get("RAPPORT_ENGINE_KEY", ""),
        model=env.get("RAPPORT_MODEL", ""),
        model_folder=env.get("RAPPORT_MODEL_FOLDER", ""),
        encoder_url=env.get("RAPPORT_ENCODER_URL") or "http://127.0.0.1:8011",
        encoder_folder="" if env.get("RAPPORT_ENCODER_URL") else env.get("RAPPORT_ENCODER_FOLDER", ""),
        judge=_one_of_judges(env.get("RAPPORT_JUDGE", "encoder")),
        staff_webhook=env.get("RAPPORT_STAFF_WEBHOOK", ""),
        staff_email=env.get("RAPPORT_STAFF_EMAIL", ""),
    )
