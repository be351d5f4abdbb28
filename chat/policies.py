"""Which version answers, and where it is served: live, canary and pinned versions by name (rule 6).

`settle_version` decides for a conversation, `served_versions` tells the engine's keeper what must be up, `endpoint_of`
turns a name into an address through the directory that the keeper writes to Redis.
"""

import asyncio
import hashlib
import json
import time
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Literal
from weakref import WeakKeyDictionary

import aiohttp
from django.conf import settings
from django.db import transaction
from tokenizers import Tokenizer

from chat.models import Conversation, PolicyVersion
from chat.models.conversations import ConversationState
from chat.models.learning import VersionKind, VersionOrigin, VersionState
from chat.models.statements import Select
from chat.prompting import CountTokens, estimate_tokens
from chat.store import ENDPOINTS_KEY, RedisError, redis_here
from rubric import (
    EncoderClient,
    EncoderError,
    Endpoint,
    EngineUnreachable,
    HttpChatModel,
    open_client,
    prompts_sha256,
)

DIRECTORY_AGE_S = 1.0
ServedKind = Literal["base", "adapter", "operator"]


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionToServe:
    """A version the engine must have up; `folder` is empty for an engine's own model."""

    name: str
    folder: str
    kind: ServedKind


_live: Select[PolicyVersion] = Select(
    lambda kind: PolicyVersion.objects.filter(kind=kind, state=VersionState.LIVE)[:1], kind=str
)
_by_id: Select[PolicyVersion] = Select(lambda version: PolicyVersion.objects.filter(pk=version), version=int)


def live_version(kind: VersionKind) -> PolicyVersion | None:
    """The one live version of a kind; None before the first start was finished."""
    return _live.first(kind=str(kind))


def settle_version(conversation: Conversation, *, now: datetime) -> str:
    """Pin the conversation to a version; the name where it moved to another one just now, else "".

    A conversation keeps its version until it has been idle for 30 minutes; a version marked unsafe is left at once.
    The caller saves the row.
    """
    if conversation.policy_id is not None and not conversation._state.fields_cache.get("policy"):
        conversation.policy = _by_id.first(version=conversation.policy_id)
    pinned = conversation.policy
    is_idle = now - conversation.last_activity_at >= settings.RAPPORT_IDLE_BEFORE_VERSION_CHANGE
    if pinned is not None and pinned.state != VersionState.UNSAFE and not is_idle:
        return ""
    live = live_version(VersionKind.POLICY)
    if live is None or live == pinned:
        return ""
    conversation.policy = live
    conversation.policy_since = now
    conversation.assignment_probability = 1.0
    return live.name if pinned is not None else ""


def served_versions() -> list[VersionToServe]:
    """Every policy that must answer now: live, canary, and what open conversations are pinned to."""
    pinned = Conversation.objects.filter(state=ConversationState.OPEN, policy__isnull=False).values("policy_id")
    rows = PolicyVersion.objects.filter(kind=VersionKind.POLICY).exclude(state=VersionState.UNSAFE)
    wanted = rows.filter(state__in=[VersionState.LIVE, VersionState.CANARY]) | rows.filter(pk__in=pinned)
    return [_to_serve(version) for version in wanted.distinct().order_by("id")]


def _to_serve(version: PolicyVersion) -> VersionToServe:
    if version.origin == VersionOrigin.OPERATOR:
        return VersionToServe(name=version.name, folder="", kind="operator")
    if version.origin == VersionOrigin.BASE:
        return VersionToServe(name=version.name, folder=version.folder, kind="base")
    return VersionToServe(name=version.name, folder=version.folder, kind="adapter")


class EndpointDirectory:
    """The keeper's directory as this process last read it; a Redis outage leaves the last answer standing."""

    def __init__(self) -> None:
        self._rows: dict[str, Endpoint] = {}
        self._read_at_s = float("-inf")

    async def find(self, name: str) -> Endpoint:
        """The endpoint of a version. Raises EngineUnreachable where it is not served."""
        if time.monotonic() - self._read_at_s > DIRECTORY_AGE_S or name not in self._rows:
            await self._read()
        endpoint = self._rows.get(name)
        if endpoint is None:
            raise EngineUnreachable(base_url=name or "no version", reason="the engine does not serve this version")
        return endpoint

    async def _read(self) -> None:
        try:
            rows = await redis_here().hgetall(ENDPOINTS_KEY)
        except (RedisError, OSError):
            return
        if not rows:  # a Redis that was restarted knows nothing until the keeper's next round
            return
        self._rows = {str(name): Endpoint.from_json(row) for name, row in rows.items()}
        self._read_at_s = time.monotonic()


directory = EndpointDirectory()
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()


async def model_of(name: str) -> HttpChatModel:
    """The model behind a version's name, over this loop's one HTTP client. Raises EngineUnreachable."""
    return HttpChatModel(await directory.find(name), client_here())


def client_here() -> aiohttp.ClientSession:
    """The running loop's one HTTP client, opened where there is none; `close_client_here` closes it."""
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        _clients[loop] = open_client()
    return _clients[loop]


async def close_client_here() -> None:
    """Close the running loop's HTTP client; called when the loop is about to end."""
    client = _clients.pop(asyncio.get_running_loop(), None)
    if client is not None:
        await client.close()


@cache
def token_counter() -> CountTokens:
    """Counts tokens with the model's own tokenizer where its folder is here, else by an upper estimate."""
    file = Path(settings.RAPPORT_MODEL_FOLDER or "/nowhere") / "tokenizer.json"
    if not file.is_file():
        file = file.parent / "hf" / "tokenizer.json"
    if not file.is_file():
        return estimate_tokens
    tokenizer = Tokenizer.from_file(str(file))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


# --- the versions that a fresh installation begins with ------------------------------------------------------------


def name_of(prefix: str, facts: dict[str, str]) -> str:
    """`<prefix>-<hash12>` of the facts that make a version what it is."""
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return f"{prefix}-{digest[:12]}"


def read_manifest(folder: Path) -> dict[str, str]:
    """The hashes of a converted model, as text; {} where there is no folder (an engine's own model)."""
    file = folder / "manifest.json"
    if not file.is_file():
        return {}
    content = json.loads(file.read_text())
    return {key: str(value) for key, value in content.items() if isinstance(value, str | int | float)}


class JudgeUnknown(Exception):
    """Nothing says which judge the encoder process serves, and none is live; the sentence says what to do."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"The encoder at {where} names no judge. Start it (or remove the encoder's folder in the cache, so that it "
            "is made anew) and run `manage.py bootstrap` again, or set RAPPORT_JUDGE=model."
        )


def served_judge() -> str:
    """`judge-<hash12>` as the encoder process serves it: by its folder's manifest where it is ours, else as it says.

    "" where it is away or serves none.
    """
    if settings.RAPPORT_ENCODER_FOLDER:
        return read_manifest(Path(settings.RAPPORT_ENCODER_FOLDER)).get("judge_version", "")
    try:
        return asyncio.run(_ask_for_judge())
    except EncoderError:
        return ""


async def _ask_for_judge() -> str:
    async with EncoderClient(settings.RAPPORT_ENCODER_URL, timeout_s=settings.RAPPORT_JUDGE_TIMEOUT_S) as client:
        return (await client.health()).judge_version


def ensure_base_versions() -> list[PolicyVersion]:
    """Make the base policy, its rubric generator and its judge live, once per model; earlier base rows retire.

    A trained version that is live stays live. Returns the live rows of the three kinds. Raises JudgeUnknown where the
    encoder shall judge, names no judge, and none is live; a live one stays.
    """
    encoder_judge = served_judge() if settings.RAPPORT_JUDGE == "encoder" else ""
    folder = Path(settings.RAPPORT_MODEL_FOLDER) if settings.RAPPORT_MODEL_FOLDER else None
    manifest = read_manifest(folder) if folder else {}
    own_model = {"engine": settings.RAPPORT_ENGINE, "url": settings.RAPPORT_ENGINE_URL, "model": settings.RAPPORT_MODEL}
    facts = manifest if manifest else own_model
    policy_name = name_of("policy", facts)
    origin = VersionOrigin.BASE if manifest else VersionOrigin.OPERATOR
    with transaction.atomic():
        _make_live(
            VersionKind.POLICY,
            policy_name,
            origin=origin,
            folder=str(folder or ""),
            config=dict(facts),
        )
        served = {"implementation": "model", "served_by": policy_name, "prompts": prompts_sha256()}
        _make_live(VersionKind.GENERATOR, name_of("rubric", served), origin=origin, folder="", config=served)
        if settings.RAPPORT_JUDGE == "model":
            _make_live(VersionKind.JUDGE, name_of("judge", served), origin=origin, folder="", config=served)
        elif encoder_judge:
            _make_live(
                VersionKind.JUDGE,
                encoder_judge,
                origin=VersionOrigin.BASE,
                folder="",
                config={"implementation": "encoder"},
            )
        elif live_version(VersionKind.JUDGE) is None:
            raise JudgeUnknown(settings.RAPPORT_ENCODER_FOLDER or settings.RAPPORT_ENCODER_URL)
    return [version for kind in VersionKind if (version := live_version(kind))]


def _make_live(
    kind: VersionKind, name: str, *, origin: VersionOrigin, folder: str, config: dict[str, str]
) -> PolicyVersion:
    live = live_version(kind)
    # The name is the content's hash; the folder is only where it lies today (a cache may be cleaned and filled again).
    PolicyVersion.objects.filter(name=name, origin=origin).exclude(folder=folder).update(folder=folder)
    if live is not None and (live.name == name or live.origin == VersionOrigin.TRAINED):
        live.refresh_from_db()
        return live
    unsafe = PolicyVersion.objects.filter(name=name, state=VersionState.UNSAFE).first()
    if unsafe is not None:  # somebody judged it: a new start must not bring it back
        return live or unsafe
    if live is not None:
        live.state = VersionState.RETIRED
        live.save(update_fields=["state"])
    version, _ = PolicyVersion.objects.update_or_create(
        name=name,
        defaults={
            "kind": kind,
            "origin": origin,
            "folder": folder,
            "config": config,
            "base_sha256": config.get("base_sha256", ""),
            "state": VersionState.LIVE,
        },
    )
    return version
