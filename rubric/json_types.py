"""The shapes that JSON can take: annotations for whatever crosses a wire or a file as JSON.

Called by every module that parses or builds JSON. `JsonObject` is what a parsed document usually is; `Sequence`
stands beside `list` nowhere, because `json.loads` and `orjson.loads` make lists only.
"""

from __future__ import annotations

from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]
