"""Server-sent events from bytes, however the network cut them.

Lines end in LF, CR or CRLF and in nothing else: U+2028 inside a JSON string is data, so `str.splitlines` is not used.
"""

from __future__ import annotations

from typing import Final, NamedTuple

EVENT_BYTES_MAX: Final = 16 * 2**20  # a terminal event of the Responses API repeats the whole answer
LINE_BYTES: Final = 8  # counted per line of data, so that lines without any have an end too


class SseEvent(NamedTuple):
    """One dispatched event: its name (empty when the stream gave none) and its data lines joined by LF."""

    name: str
    data: bytes


class SseParser:
    """Feed it chunks; it returns the events each chunk completed. Comments and unknown fields are dropped."""

    def __init__(self, *, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        self._max = event_bytes_max
        self._tail: list[bytes] = []
        self._tail_bytes = 0
        self._after_cr = False
        self._at_start = True
        self._name = ""
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Events completed by this chunk. Raises ValueError when one event exceeds the limit."""
        if not chunk:
            return []
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
        # A lone CR at the end of a chunk already ends its line; the LF of a split CRLF is dropped above.
        self._after_cr = chunk[-1:] == b"\r" if chunk else False
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *ended, rest = chunk.split(b"\n")
        events: list[SseEvent] = []
        for part in ended:
            line = part
            if self._tail:
                self._tail.append(part)
                line = b"".join(self._tail)
                self._tail, self._tail_bytes = [], 0
            self._line(line, events)
        if rest:
            self._tail.append(rest)
            self._tail_bytes += len(rest)
        if self._tail_bytes + self._data_bytes > self._max:
            raise ValueError(f"an event is longer than {self._max} bytes")
        return events

    def _line(self, line: bytes, events: list[SseEvent]) -> None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            if self._data:
                events.append(SseEvent(self._name, b"\n".join(self._data)))
            self._name, self._data, self._data_bytes = "", [], 0
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._data_bytes += len(value) + LINE_BYTES
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
