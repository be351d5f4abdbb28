"""The driver for any other OpenAI-compatible address: it serves its own model, and only that.

What such a server can do is asked once, at start, by small real requests; what is missing is switched off by
`EngineFeatures` and named by the keeper. Trained versions cannot be served there.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Final

import aiohttp
import orjson

from deploy.engines.driver import EngineCounters, EngineHealth, ServedVersion
from deploy.engines.errors import EngineStartFailed, VersionUnservable
from deploy.engines.health import ask_one_token
from deploy.engines.template import ASSISTANT_FIRST, SYSTEM_FIRST, TWO_USERS
from rubric import (
    Completion,
    Deadlines,
    Endpoint,
    EngineError,
    EngineFeatures,
    EngineRefused,
    HttpChatModel,
    JsonObject,
    Sampling,
    TemplateNeeds,
    Transcript,
)

_DEADLINES: Final = Deadlines(connect_s=5.0, whole_s=60.0)
_PLAIN: Final = Sampling(max_tokens=1, temperature=0.0, wants_logprobs=False)
_COLOUR: Final = Transcript.of(("user", "Describe the sea in one sentence."))
_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"is_blue": {"type": "boolean"}},
    "required": ["is_blue"],
    "additionalProperties": False,
}


class RemoteDriver:
    """One address of somebody else's. `model` may be "" where the server names exactly one."""

    def __init__(self, *, base_url: str, model: str, api_key: str, client: aiohttp.ClientSession) -> None:
        self._base_url = base_url.rstrip("/").removesuffix("/v1")
        self._model = model
        self._api_key = api_key
        self._client = client
        self._endpoint: Endpoint | None = None

    async def ensure(self, version: ServedVersion) -> Endpoint:
        """See EngineDriver; the first call asks the server what it can do."""
        if version.kind == "adapter":
            raise VersionUnservable(name=version.name, reason="trained versions need the engine llamacpp or vllm")
        if self._endpoint is None:
            self._endpoint = await self._probe()
        return self._endpoint

    async def renew(self, version: ServedVersion) -> Endpoint:
        """See EngineDriver: nothing here can restart it, it may have become another server meanwhile."""
        self._endpoint = None
        return await self.ensure(version)

    async def adopt(self, version: ServedVersion, endpoint: Endpoint) -> bool:
        """See EngineDriver: a new keeper asks again."""
        return False

    async def is_serving(self, name: str) -> bool:
        """See EngineDriver."""
        return self._endpoint is not None

    async def retire(self, name: str) -> None:
        """See EngineDriver: there is nothing to stop."""

    async def health(self, endpoint: Endpoint) -> EngineHealth:
        """See EngineDriver."""
        return await ask_one_token(endpoint, self._client)

    async def counters(self, endpoint: Endpoint) -> EngineCounters | None:
        """See EngineDriver: no common place for them."""
        return None

    async def close(self) -> None:
        """See EngineDriver."""

    async def _probe(self) -> Endpoint:
        """Raises EngineError where even a plain question gets no answer."""
        endpoint = Endpoint(
            base_url=self._base_url,
            model=self._model or await self._only_model(),
            driver="remote",
            api_key=self._api_key,
        )
        await self._ask(endpoint, _COLOUR, sampling=_PLAIN)
        features = EngineFeatures(
            logprobs=await self._has_logprobs(endpoint),
            token_ids=await self._has_token_ids(endpoint),
            schema=await self._has_schema(endpoint),
        )
        needs = TemplateNeeds(
            folds_system=await self._refuses(endpoint, SYSTEM_FIRST),
            merges_roles=await self._refuses(endpoint, TWO_USERS),
            starts_with_user=await self._refuses(endpoint, ASSISTANT_FIRST),
        )
        return replace(endpoint, features=features, template=needs)

    async def _only_model(self) -> str:
        headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        limits = aiohttp.ClientTimeout(total=10.0)
        try:
            async with self._client.get(f"{self._base_url}/v1/models", headers=headers, timeout=limits) as answer:
                names = [str(row["id"]) for row in (await answer.json())["data"]]
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError) as error:
            raise EngineStartFailed(name="remote", reason=f"it lists no models ({type(error).__name__})") from error
        if len(names) != 1:
            raise EngineStartFailed(name="remote", reason=f"it has {len(names)} models: set RAPPORT_ENGINE_MODEL")
        return names[0]

    async def _ask(
        self, endpoint: Endpoint, transcript: Transcript, *, sampling: Sampling, schema: JsonObject | None = None
    ) -> Completion:
        model = HttpChatModel(endpoint, self._client)
        request_id = f"probe-{uuid.uuid4().hex[:12]}"
        (answer,) = await model.complete(
            transcript, sampling=sampling, deadlines=_DEADLINES, request_id=request_id, schema=schema
        )
        return answer

    async def _ask_for_logprobs(self, endpoint: Endpoint) -> Completion | None:
        asking = replace(endpoint, features=EngineFeatures(logprobs=True))
        try:
            return await self._ask(asking, _COLOUR, sampling=Sampling(max_tokens=1, temperature=0.0))
        except EngineError:
            return None

    async def _has_logprobs(self, endpoint: Endpoint) -> bool:
        answer = await self._ask_for_logprobs(endpoint)
        return answer is not None and any(value is not None for value in answer.logprobs)

    async def _has_token_ids(self, endpoint: Endpoint) -> bool:
        answer = await self._ask_for_logprobs(endpoint)
        return answer is not None and bool(answer.token_ids)

    async def _has_schema(self, endpoint: Endpoint) -> bool:
        """A question that no model answers with this object unless it is held to it."""
        sampling = Sampling(max_tokens=48, temperature=0.0, wants_logprobs=False)
        try:
            answer = await self._ask(endpoint, _COLOUR, sampling=sampling, schema=_SCHEMA)
            value = orjson.loads(answer.text)
        except (EngineError, orjson.JSONDecodeError):
            return False
        return isinstance(value, dict) and value.keys() == {"is_blue"}

    async def _refuses(self, endpoint: Endpoint, transcript: Transcript) -> bool:
        try:
            await self._ask(endpoint, transcript, sampling=_PLAIN)
        except EngineRefused as error:
            return error.status in (400, 422, 500)
        return False
