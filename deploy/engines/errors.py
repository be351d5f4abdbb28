"""Named errors of the engine side; each says which model, version or rule it is about."""

from __future__ import annotations

from rubric import RubricError


class EngineSetupError(RubricError):
    """Something that the operator must see: a model, an adapter or a server cannot be used as it is."""


class ModelUnusable(EngineSetupError):
    """A model folder cannot be converted or served; `reason` says what is missing and what to do."""

    def __init__(self, *, model: str, reason: str) -> None:
        super().__init__(f"The model {model} cannot be used: {reason}.")
        self.model = model
        self.reason = reason


class AdapterRefused(EngineSetupError):
    """An adapter breaks a rule; it never reaches a server. `rule` is one of `deploy.engines.adapters.RULES`."""

    def __init__(self, *, name: str, rule: str, detail: str) -> None:
        super().__init__(f"The adapter {name} is refused ({rule}): {detail}.")
        self.name = name
        self.rule = rule
        self.detail = detail


class EngineStartFailed(EngineSetupError):
    """A model server did not come up, or not with what was asked of it."""

    def __init__(self, *, name: str, reason: str) -> None:
        super().__init__(f"The engine for {name} did not start: {reason}.")
        self.name = name
        self.reason = reason


class VersionUnservable(EngineSetupError):
    """The driver cannot serve this kind of version at all (an adapter on somebody else's server, say)."""

    def __init__(self, *, name: str, reason: str) -> None:
        super().__init__(f"The version {name} cannot be served here: {reason}.")
        self.name = name
        self.reason = reason
