"""Bytes from a model server to events and text: the server-sent-event splitter and the joiner of broken characters.

Only `rubric.engine` calls this. Both parts are incremental: however the network cuts the bytes, the result is the
same. The splitter looks at bytes, never at decoded lines: U+2028, U+2029 and U+0085 inside JSON are text, not line
ends.
"""

from __future__ import annotations

import codecs
import re

from rubric.errors import EngineBroken

MAX_EVENT_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"
HELD = "\u200d\ufffd"  # a joiner, or half a character: only text that follows gives them a sense
_ODD = re.compile("[\ud800-\udfff\x00]")  # never passed on as they are


class EventSplitter:
    """Cut a byte stream into the payloads of its events; comments, names and ids are dropped.

    Lines end with LF, CR LF or CR; an event ends with an empty line; its `data` lines are joined by LF. A field
    `error`, which some servers use for a failure in mid-stream, is handed on like `data`.
    """

    __slots__ = ("_data", "_is_started", "_pending")

    def __init__(self) -> None:
        self._pending = b""  # an unfinished line
        self._data: list[bytes] = []  # finished data lines of an unfinished event
        self._is_started = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes, give the payloads of the events that they complete.

        Raises EngineBroken where one event grows past MAX_EVENT_BYTES.
        """
        buffered = self._pending + chunk if self._pending else chunk
        if not self._is_started:
            if len(buffered) < len(_BOM) and _BOM.startswith(buffered):
                self._pending = buffered
                return []
            self._is_started = True
            buffered = buffered.removeprefix(_BOM)
        if b"\r" in buffered:
            # A final CR may be half of a CR LF: it waits.
            held = b"\r" if buffered.endswith(b"\r") else b""
            buffered = buffered[: len(buffered) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n") + held
        *lines, self._pending = buffered.split(b"\n")
        payloads: list[bytes] = []
        for line in lines:
            if line:
                self._take(line)
            elif self._data:
                payloads.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data = []
        if len(self._pending) + sum(map(len, self._data)) > MAX_EVENT_BYTES:
            raise EngineBroken(reason=f"an event of more than {MAX_EVENT_BYTES} bytes")
        return payloads

    def _take(self, line: bytes) -> None:
        if line.startswith(b"data: "):
            self._data.append(line[6:])
            return
        name, _, value = line.partition(b":")
        if name in (b"data", b"error"):
            self._data.append(value.removeprefix(b" "))


class TextJoiner:
    """Make whole characters from deltas that may end inside one, whatever way a server breaks them.

    Two ways are mended: halves of a surrogate pair in two deltas, and bytes of a character in two tokens, where the
    bytes of the tokens are known. A trailing U+200D or U+FFFD is kept back until text follows and dropped at the end,
    as is any unfinished character. NUL, which databases refuse, becomes nothing; a lone surrogate becomes U+FFFD.
    """

    __slots__ = ("_decoder", "_high", "_is_inside", "_tail")

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_inside = False  # the decoder holds the first bytes of a character
        self._high = ""  # the first half of a surrogate pair
        self._tail = ""  # of HELD

    def feed(self, text: str, token_bytes: bytes | None = None) -> str:
        """Give the text that is now whole. `token_bytes`: what the tokens of this delta really are, where known."""
        if text.isascii() and "\0" not in text and not (self._is_inside or self._high or self._tail):
            return text
        if token_bytes is not None and (self._is_inside or "\ufffd" in text):
            text = self._decode(token_bytes)
        elif self._is_inside and text:
            text = self._decode(b"", is_final=True) + text
        return self._hold_back(self._join_halves(text))

    def _decode(self, raw: bytes, *, is_final: bool = False) -> str:
        text = self._decoder.decode(raw, is_final)
        self._is_inside = bool(self._decoder.getstate()[0])
        return text

    def _join_halves(self, text: str) -> str:
        if not text:
            return ""
        text = self._high + text
        self._high = ""
        if not _ODD.search(text):
            return text
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._high = text[:-1], text[-1]
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "")

    def _hold_back(self, text: str) -> str:
        if not text:
            return ""
        text = self._tail + text
        kept = text.rstrip(HELD)
        self._tail = text[len(kept) :]
        return kept
