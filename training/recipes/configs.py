"""Reads the configuration of a recipe: one YAML file into frozen dataclasses, and what no recipe may name.

Every recipe reads its file through here. A key that its dataclass does not have, or one that is missing, is an error by
name. Whatever names the examiner or its weights is refused to all recipes but the examiner's own: what was trained with
the examiner in view can no longer be examined by it.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

import yaml

from rubric import RubricError

EXAMINER: Final = "examiner"
T = TypeVar("T")


class ConfigInvalid(RubricError):
    """A configuration cannot be used; `problem` names the key, never a value."""

    def __init__(self, *, path: Path, problem: str) -> None:
        super().__init__(f"{path.name} is no configuration of this recipe: {problem}.")
        self.path = path
        self.problem = problem


class ExaminerRefused(ConfigInvalid):
    """The configuration of another recipe names the examiner, which must not help to train what it examines."""

    def __init__(self, *, path: Path, recipe: str, place: str) -> None:
        problem = f"{place} names the examiner, which no recipe but its own may load (this is {recipe!r}); take it out"
        super().__init__(path=path, problem=problem)
        self.recipe = recipe
        self.place = place


def read_table(path: Path, *, recipe: str) -> dict[str, Any]:
    """The file as it is. Raises ExaminerRefused, ConfigInvalid, and OSError where it cannot be opened."""
    try:
        raw = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigInvalid(path=path, problem="it is no YAML") from error
    if recipe != EXAMINER and (place := _names_examiner(raw, place="the file")):
        raise ExaminerRefused(path=path, recipe=recipe, place=place)
    if not isinstance(raw, dict):
        raise ConfigInvalid(path=path, problem="it is no table")
    return raw


def read_config(path: Path, kind: type[T], *, recipe: str) -> T:
    """The file as a `kind`, with the keys of its dataclasses and no others. Raises as `read_table` does."""
    built: T = _build(kind, read_table(path, recipe=recipe), path=path, place="the file")
    return built


def _names_examiner(value: object, *, place: str) -> str | None:
    """The first place, key or value, with the examiner's name; None where there is none."""
    if isinstance(value, str):
        return place if EXAMINER in value.casefold() else None
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if EXAMINER in str(key).casefold():
                return f"a key of {place}"
            if found := _names_examiner(inner, place=str(key)):
                return found
    if isinstance(value, list):
        return next((found for inner in value if (found := _names_examiner(inner, place=place))), None)
    return None


def _build(kind: Any, raw: object, *, path: Path, place: str) -> Any:
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _dataclass(kind, raw, path=path, place=place)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is tuple and isinstance(raw, list):
        kinds = [parts[0]] * len(raw) if parts[1:] == (...,) else parts
        if len(kinds) == len(raw):
            return tuple(_build(one, inner, path=path, place=place) for one, inner in zip(kinds, raw, strict=True))
    elif origin in {dict, Mapping} and isinstance(raw, dict):
        return {key: _build(parts[1], inner, path=path, place=f"{place}.{key}") for key, inner in raw.items()}
    elif origin in {types.UnionType} and raw is None and type(None) in parts:
        return None
    elif kind is float and type(raw) in {int, float}:
        return float(raw)  # type: ignore[arg-type] # just checked
    elif isinstance(kind, type) and origin is None and type(raw) is kind:
        return raw
    raise ConfigInvalid(path=path, problem=f"{place} has a value of another kind")


def _dataclass(kind: type[Any], raw: object, *, path: Path, place: str) -> Any:
    if not isinstance(raw, dict):
        raise ConfigInvalid(path=path, problem=f"{place} is no table")
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    if unknown := sorted(map(str, raw.keys() - fields.keys())):
        raise ConfigInvalid(path=path, problem=f"{place} has the unknown key {unknown[0]!r}")
    needed = {
        name
        for name, field in fields.items()
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    if missing := sorted(needed - raw.keys()):
        raise ConfigInvalid(path=path, problem=f"{place} lacks the key {missing[0]!r}")
    hints = get_type_hints(kind)
    return kind(**{name: _build(hints[name], inner, path=path, place=name) for name, inner in raw.items()})
