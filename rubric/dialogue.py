"""The frozen value that models see: who said what, in order.

`chat` makes a `Transcript` from rows, the workshop makes one from episode files; generators, judges and the engine
client read it. Nothing here knows of databases, of rubrics or of how a prompt is rendered.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

JOINT = "\n\n"  # between the texts of two utterances that `merged` makes one


class Role(StrEnum):
    """Who speaks; the values are the role names of the chat-completions wire."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Utterance:
    """One speaker's one text."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation, or the part of it that a model is shown; oldest utterance first."""

    utterances: tuple[Utterance, ...]

    @classmethod
    def of(cls, *turns: tuple[Role | str, str]) -> Self:
        """Build from (role, text) pairs: `Transcript.of(("user", "hi"), ("assistant", "hello"))`.

        Raises ValueError for a role that is none of `Role`.
        """
        return cls(tuple(Utterance(Role(role), text) for role, text in turns))

    def __len__(self) -> int:
        return len(self.utterances)

    def __iter__(self) -> Iterator[Utterance]:
        return iter(self.utterances)

    @property
    def last_user(self) -> str:
        """The visitor's newest text; "" where the visitor has said nothing."""
        return next((said.text for said in reversed(self.utterances) if said.role is Role.USER), "")

    def merged(self) -> Transcript:
        """Join neighbouring utterances of one role by a blank line, since many chat templates demand alternation.

        `(user a)(user b)(assistant c)` becomes `(user a\\n\\nb)(assistant c)`.
        """
        joined: list[Utterance] = []
        for said in self.utterances:
            if joined and joined[-1].role is said.role:
                joined.append(Utterance(said.role, joined.pop().text + JOINT + said.text))
            else:
                joined.append(said)
        return Transcript(tuple(joined))

    @property
    def sha256(self) -> str:
        """Hash of the canonical JSON `[["user","hi"],...]` (ASCII escapes, so that lone surrogates have a hash too)."""
        rows = [[said.role.value, said.text] for said in self.utterances]
        canonical = json.dumps(rows, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()
