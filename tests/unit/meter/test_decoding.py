"""A compressed answer is read within bounds, whether or not a header announces it."""

from __future__ import annotations

import gzip
import zlib

import pytest

from controller.meter.decoding import DECODED_BYTES_MAX, RATIO_CHECKED_FROM, RATIO_MAX, STEP_BYTES, Decoder

TEXT = b"".join(b'data: {"n": %d}\n\n' % number for number in range(10_000))


def decoded(raw: bytes, *, announced: str = "", size: int = 1_000) -> bytes:
    decoder = Decoder(announced)
    parts = [piece for start in range(0, len(raw), size) for piece in decoder.feed(raw[start : start + size])]
    return b"".join([*parts, decoder.end()])


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("size", [1, 2, 7, 2**20])
@pytest.mark.parametrize("announced", ["", "identity", "gzip", "X-GZIP", "br", "zstd"])
def test_gzip_and_zlib_are_known_by_their_first_bytes(announced: str, size: int) -> None:
    assert decoded(gzip.compress(TEXT), announced=announced, size=size) == TEXT
    assert decoded(zlib.compress(TEXT), announced=announced, size=size) == TEXT


@pytest.mark.parametrize("announced", ["", "identity", "gzip"])
@pytest.mark.parametrize("plain", [b"", b"{", b"{}", b"data: x\n\n", b"\xef\xbb\xbf{}", b"\n\n: x\n\n"])
def test_what_is_not_compressed_stays_as_it_is(plain: bytes, announced: str) -> None:
    assert decoded(plain, announced=announced, size=1) == plain


def test_both_meanings_of_deflate_are_read() -> None:
    assert decoded(zlib.compress(TEXT), announced="deflate", size=3) == TEXT
    assert decoded(raw_deflate(TEXT), announced="deflate", size=3) == TEXT


def test_what_zlib_holds_back_at_the_bound_of_a_step_is_not_lost() -> None:
    # Runs end a few bytes beyond a step, where all input is taken and some output is not given yet.
    for extra in range(1, 300):
        assert len(decoded(raw_deflate(b"a" * (STEP_BYTES + extra)), announced="deflate")) == STEP_BYTES + extra


@pytest.mark.parametrize("level", [1, 9])
def test_members_one_after_the_other_are_one_answer(level: int) -> None:
    raw = b"".join(gzip.compress(TEXT[start : start + 999], level) for start in range(0, len(TEXT), 999))
    assert decoded(raw, size=10) == decoded(raw, size=2**20) == TEXT


def test_events_are_given_as_soon_as_the_server_flushes_them() -> None:
    packer, decoder = zlib.compressobj(wbits=16 + zlib.MAX_WBITS), Decoder()
    for number in range(5):
        event = b"data: %d\n\n" % number
        wire = packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH)
        assert b"".join(decoder.feed(wire)) == event


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "x" * 500])
def test_an_encoding_that_is_not_read_is_named(encoding: str) -> None:
    with pytest.raises(ValueError, match=f"encoded as '{encoding[:20]}'"):
        decoded(b"\x8b\x02\x80hello\x03", announced=encoding)


def test_damage_is_named() -> None:
    whole = bytearray(gzip.compress(TEXT))
    whole[len(whole) // 2] ^= 0xFF
    with pytest.raises(ValueError, match="damaged"):
        decoded(bytes(whole))
    with pytest.raises(ValueError, match="damaged"):
        decoded(gzip.compress(b"{}") + b"more, not a member")


def test_a_bomb_is_refused_and_never_held() -> None:
    bomb = gzip.compress(b"\0" * 2**25)
    decoder, given, largest = Decoder(), 0, 0
    with pytest.raises(ValueError, match="decompresses to more than"):
        for piece in decoder.feed(bomb):
            given, largest = given + len(piece), max(largest, len(piece))
    # Deflate expands at most 1,032 times, so what was refused is known long before it is expanded.
    assert largest <= STEP_BYTES and given <= max(RATIO_CHECKED_FROM, len(bomb) * RATIO_MAX)


def test_an_answer_without_end_is_refused() -> None:
    # Compresses 100 times, as a stream of equal events does, so that only its length speaks against it.
    packer, decoder = zlib.compressobj(1, wbits=16 + zlib.MAX_WBITS), Decoder()
    block = b"".join(b"data: %d\n\n" % (number % 7) for number in range(100_000))
    given = 0
    with pytest.raises(ValueError, match=str(DECODED_BYTES_MAX)):
        for _ in range(DECODED_BYTES_MAX // len(block) + 2):
            for piece in decoder.feed(packer.compress(block) + packer.flush(zlib.Z_SYNC_FLUSH)):
                given += len(piece)
    assert given <= DECODED_BYTES_MAX
