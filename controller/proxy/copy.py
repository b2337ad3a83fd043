"""What is read of an answer while it passes: a copy, from which the usage is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import structlog

from controller.errors import UnpricedUsage
from controller.meter.decoding import Decoder
from controller.meter.dialects import READERS, Reader
from controller.meter.sse import SseParser
from controller.meter.wire_json import document

ANSWER_BYTES_READ_MAX: Final = 64 * 2**20  # of an answer that is not streamed; a longer one passes but is not priced
EVENT_STREAM: Final = "text/event-stream"
log = structlog.get_logger("meter")


class Copy:
    """Reads a copy of the answer as it passes. A fault here ends the reading, never the passing."""

    def __init__(self, dialect: str, headers: Mapping[str, str]) -> None:
        self.reader: Reader | None = READERS[dialect]()
        self.fault = ""
        self._dialect = dialect
        self._decoder = Decoder(headers.get("Content-Encoding", ""))
        self._body = bytearray()
        media_type = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        self._sse = SseParser() if media_type == EVENT_STREAM else None
        if media_type not in (EVENT_STREAM, "application/json", "") and not media_type.endswith("+json"):
            self._fail(f"the answer is {media_type[:60]!r}, neither JSON nor an event stream")

    def feed(self, chunk: bytes) -> None:
        """Read one chunk."""
        if self.reader is None:
            return
        try:
            for piece in self._decoder.feed(chunk):
                self._take(self.reader, piece)
        except Exception as error:
            self._failed(error)

    def end(self) -> None:
        """The answer is whole."""
        if self.reader is None:
            return
        try:
            self._take(self.reader, self._decoder.end())
            if self._sse is None:
                self._read_body(self.reader)
        except Exception as error:
            self._failed(error)

    def _take(self, reader: Reader, piece: bytes) -> None:
        if self._sse is not None:
            for name, data in self._sse.feed(piece):
                if data:
                    reader.event(name, data)
            return
        self._body += piece
        if len(self._body) > ANSWER_BYTES_READ_MAX:
            raise ValueError(f"it is longer than {ANSWER_BYTES_READ_MAX} bytes")

    def _read_body(self, reader: Reader) -> None:
        payload = document(self._body)
        # A Gemini stream that was not asked for as events is one array with the chunks as its elements.
        is_stream = isinstance(payload, list) and self._dialect == "gemini"
        for part in payload if is_stream else (payload,):
            if not isinstance(part, dict):
                raise ValueError("it is not a JSON object")
            reader.body(part)

    def _failed(self, error: Exception) -> None:
        if isinstance(error, ValueError | RecursionError | UnpricedUsage):
            self._fail(f"the answer can't be read: {error}")
        else:
            # A defect of ours must not take the answer from the client.
            log.error("defect", exc_info=error)
            self._fail(f"the meter failed to read the answer ({type(error).__name__})")

    def _fail(self, fault: str) -> None:
        self.reader, self.fault, self._body = None, fault[:500], bytearray()
