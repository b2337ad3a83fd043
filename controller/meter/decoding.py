"""The copy of a compressed answer, made readable within bounds.

We ask for identity, but some providers and their edges compress all the same, also without a header that says so. The
first bytes decide: neither JSON nor an event stream can begin like gzip or zlib.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

DECODED_BYTES_MAX: Final = 64 * 2**20
RATIO_MAX: Final = 256  # events compress 10 to 100 times; a bomb comes close to deflate's own limit of 1,032
RATIO_CHECKED_FROM: Final = 2**20
STEP_BYTES: Final = 2**16
GZIP_MAGIC: Final = b"\x1f\x8b"
READABLE: Final = ("", "identity", "gzip", "x-gzip", "deflate")


class Decoder:
    """Feed it the bytes that arrived; it yields them decoded, in pieces of at most `STEP_BYTES` when compressed."""

    def __init__(self, announced: str = "") -> None:
        self._announced = announced.strip().lower()
        self._head = b""
        self._window_bits = 0
        self._inflate: zlib._Decompress | None = None
        self._plain = False
        self._taken = 0
        self._given = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Decode one chunk. Raises ValueError for an encoding that can't be read, damage, or a bomb."""
        if self._plain:
            yield chunk
            return
        if self._inflate is None:
            chunk = self._head + chunk
            self._head = b""
            if len(chunk) < 2:
                self._head = chunk
                return
            self._inflate = self._opened(chunk)
            if self._inflate is None:
                self._plain = True
                yield chunk
                return
        yield from self._inflated(chunk)

    def end(self) -> bytes:
        """What was held back because it was too short to tell its encoding."""
        return self._head

    def _opened(self, head: bytes) -> zlib._Decompress | None:
        if head.startswith(GZIP_MAGIC):
            self._window_bits = 16 + zlib.MAX_WBITS
        elif head[0] & 0x8F == 0x08 and int.from_bytes(head[:2], "big") % 31 == 0:
            self._window_bits = zlib.MAX_WBITS
        elif self._announced not in READABLE:
            raise ValueError(f"it is encoded as {self._announced[:20]!r} although identity was asked for")
        elif self._announced == "deflate":
            self._window_bits = -zlib.MAX_WBITS  # what some servers mean by deflate
        else:
            return None
        return zlib.decompressobj(self._window_bits)

    def _inflated(self, chunk: bytes) -> Iterator[bytes]:
        self._taken += len(chunk)
        piece = b""
        while chunk or len(piece) == STEP_BYTES:
            if self._inflate is None or self._inflate.eof:
                # Servers that compress piece by piece write one member after the other.
                self._inflate = zlib.decompressobj(self._window_bits)
            try:
                piece = self._inflate.decompress(chunk, STEP_BYTES)
            except zlib.error as error:
                raise ValueError(f"its compression is damaged ({error})") from None
            self._given += len(piece)
            limit = min(DECODED_BYTES_MAX, max(RATIO_CHECKED_FROM, self._taken * RATIO_MAX))
            if self._given > limit:
                raise ValueError(f"it decompresses to more than {limit} bytes, which {self._taken} should not")
            if piece:
                yield piece
            chunk = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
