"""Events of a conversation as staff may see them live: redacted, like the transcript page. No clock, no socket.

Whole messages are redacted at once. A running reply is shown sentence by sentence: what cannot be found by somebody's
name yet ("my name is An") might be in the next token, so the open sentence is held back. Texts that do not fit (a
follower who came in the middle, a gap) wait for `reply.finished`.
"""

import re

import orjson

from chat.redaction import Ledger, redact
from rubric import JsonObject

_SENTENCE_ENDS = re.compile(r"[.!?…][\"'”’)\]]*(?=\s)|\n")
_WITH_MESSAGE = frozenset({"message.accepted", "message.changed", "reply.finished"})


class ShownEvents:
    """One follower's view of one conversation; `ledger` knows the names that were said before."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._raw: dict[str, str] = {}
        self._shown: dict[str, str] = {}

    def show(self, frame: str) -> JsonObject | None:
        """The event to send, or None where there is nothing to show (yet)."""
        event = orjson.loads(frame)
        kind = event.get("type")
        if kind == "reply.delta":
            return self._show_delta(event)
        if kind in _WITH_MESSAGE:
            self._forget(str(event["message"]["id"]))
            event["message"]["text"] = redact(event["message"]["text"], ledger=self._ledger).text
        return dict(event)

    def _show_delta(self, event: JsonObject) -> JsonObject | None:
        message_id, offset, text = str(event["message_id"]), event["offset"], str(event["text"])
        raw = self._raw.get(message_id, "")
        if not isinstance(offset, int) or offset > len(raw):
            return None
        self._raw[message_id] = raw = raw[:offset] + text
        ends = list(_SENTENCE_ENDS.finditer(raw))
        shown = self._shown.get(message_id, "")
        redacted = redact(raw[: ends[-1].end()], ledger=self._ledger).text if ends else ""
        if len(redacted) <= len(shown) or not redacted.startswith(shown):
            return None
        self._shown[message_id] = redacted
        return {"type": "reply.delta", "message_id": message_id, "offset": len(shown), "text": redacted[len(shown) :]}

    def _forget(self, message_id: str) -> None:
        self._raw.pop(message_id, None)
        self._shown.pop(message_id, None)
