"""What is read of an answer while it passes: a copy, from which the usage is taken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from controller.meter.dialects import READERS, Reader
from controller.meter.sse import SseParser

ANSWER_BYTES_READ_MAX: Final = 64 * 2**20  # of an answer that is not streamed; a longer one passes but is not priced


class Copy:
    """Reads a copy of the answer as it passes. A fault here ends the reading, never the passing."""

    def __init__(self, dialect: str, headers: Mapping[str, str]) -> None:
        self.reader: Reader | None = READERS[dialect]()
        self.fault = ""
        self._sse = SseParser() if headers.get("Content-Type", "").startswith("text/event-stream") else None
        self._body = bytearray()
        encoding = headers.get("Content-Encoding", "identity").lower()
        if encoding != "identity":
            self._fail(f"the answer is encoded as {encoding[:20]!r} although identity was asked for")

    def feed(self, chunk: bytes) -> None:
        """Read one chunk."""
        if self.reader is None:
            return
        try:
            if self._sse is None:
                self._body += chunk
                if len(self._body) > ANSWER_BYTES_READ_MAX:
                    raise ValueError(f"the answer is longer than {ANSWER_BYTES_READ_MAX} bytes")
                return
            for name, data in self._sse.feed(chunk):
                self.reader.event(name, data)
        except (ValueError, RecursionError) as error:
            self._fail(f"the answer can't be read: {error}")

    def end(self) -> None:
        """The answer is whole."""
        if self.reader is None or self._sse is not None:
            return
        try:
            payload = json.loads(self._body)
            if not isinstance(payload, dict):
                raise ValueError("it is not a JSON object")
            self.reader.body(payload)
        except (ValueError, RecursionError) as error:
            self._fail(f"the answer can't be read: {error}")

    def _fail(self, fault: str) -> None:
        self.reader, self.fault, self._body = None, fault[:500], bytearray()
