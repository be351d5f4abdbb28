"""What every driver promises, and the values that go between drivers, keeper and launcher.

A driver turns a version into an endpoint of one kind of model server. It is never trusted about its own health: the
keeper asks for a real token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from rubric import Endpoint

VersionKind = Literal["base", "adapter", "operator"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedVersion:
    """A version that must answer: its name is never reused; `folder` is None for an engine's own model."""

    name: str
    folder: Path | None
    kind: VersionKind


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineHealth:
    """Whether one endpoint gave a real token with a finite log-probability; `detail` says what it gave instead."""

    is_well: bool
    detail: str
    took_ms: float


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineCounters:
    """The server's own counts: all tokens generated since its start (running replies included), and busy slots."""

    generated_tokens: int
    busy_slots: int


class EngineDriver(Protocol):
    """One kind of model server."""

    async def ensure(self, version: ServedVersion) -> Endpoint:
        """Serve the version, now or already, and give its endpoint. Raises EngineSetupError or EngineError."""

    async def renew(self, version: ServedVersion) -> Endpoint:
        """Bring back a version that is dead or not well, with whatever restart that takes. Raises like `ensure`."""

    async def adopt(self, version: ServedVersion, endpoint: Endpoint) -> bool:
        """Take over what an earlier keeper served, if it still runs and gives a real token."""

    async def is_serving(self, name: str) -> bool:
        """Whether its process runs and was told to serve this version; cheap, and no statement about health."""

    async def retire(self, name: str) -> None:
        """Stop serving a version once its running replies have ended; unknown names are no error."""

    async def health(self, endpoint: Endpoint) -> EngineHealth:
        """Ask for a real token."""

    async def counters(self, endpoint: Endpoint) -> EngineCounters | None:
        """The server's counts; None where it keeps none."""

    async def close(self) -> None:
        """Let go of what this driver holds here; what it serves goes on."""


class Launcher(Protocol):
    """Whoever starts, watches and ends processes: circus in the product, plain subprocesses in tests."""

    async def start(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Start a process; one that runs under this name is replaced. Whoever asked for it watches over it."""

    async def stop(self, name: str) -> None:
        """End it and forget it; unknown names are no error."""

    async def is_alive(self, name: str) -> bool:
        """Whether a process runs under this name now."""

    async def names(self) -> frozenset[str]:
        """Everything that this launcher was asked to start and not to stop."""
