"""RFC 3161 against an authority of our own: only its stamp over these very bytes counts, with the time it signed."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from controller.adapters.timestamp_openssl import RESPONSE_BYTES_MAX, OpensslTimestamps, timestamp_request
from controller.errors import BadSignature, InvalidInput, MissingProgram
from tests.world.time_authority import TimeAuthority

DATA = b"fairtrial/round/demo\n5\n..."
FLIPS = 150  # of some 12,000 bits, drawn with a fixed seed; each costs two processes


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TimeAuthority:
    return TimeAuthority(tmp_path_factory.mktemp("tsa"))


@pytest.fixture(scope="module")
def response(authority: TimeAuthority) -> bytes:
    return authority.respond(timestamp_request(DATA))


def test_a_request_names_the_digest_and_is_always_the_same(tmp_path: Path) -> None:
    request = timestamp_request(DATA)
    assert request == timestamp_request(DATA)
    assert hashlib.sha256(DATA).digest() in request
    assert request != timestamp_request(DATA + b"x")


def test_the_authoritys_stamp_tells_the_time_it_signed(authority: TimeAuthority, response: bytes) -> None:
    at = OpensslTimestamps(authority.certificate).time_of(response, DATA)
    assert abs(at - authority.asked_at_ms) < 60_000
    assert OpensslTimestamps(authority.root).time_of(response, DATA) == at


def test_a_stamp_from_after_its_certificates_end_is_refused(tmp_path: Path) -> None:
    expired = TimeAuthority(tmp_path, days=-1, back_days=3)
    response = expired.respond(timestamp_request(DATA))
    with pytest.raises(BadSignature, match="not of the pinned authority"):
        OpensslTimestamps(expired.certificate).time_of(response, DATA)


def test_other_data_another_authority_and_no_response_at_all_are_refused(
    authority: TimeAuthority, response: bytes, tmp_path: Path
) -> None:
    stamps = OpensslTimestamps(authority.certificate)
    for wrong in (DATA + b"x", b"", DATA[:-1]):
        with pytest.raises(BadSignature, match="timestamp"):
            stamps.time_of(response, wrong)
    rival = TimeAuthority(tmp_path)
    with pytest.raises(BadSignature, match="not of the pinned authority"):
        OpensslTimestamps(rival.certificate).time_of(response, DATA)
    with pytest.raises(BadSignature, match="not of the pinned authority"):
        stamps.time_of(rival.respond(timestamp_request(DATA)), DATA)
    for nothing in (b"", b"\x30\x00", timestamp_request(DATA), b"x" * (RESPONSE_BYTES_MAX + 1), response[:-1]):
        with pytest.raises(BadSignature, match="timestamp"):
            stamps.time_of(nothing, DATA)


def _check_flips(authority: TimeAuthority, response: bytes, bits: Iterable[int]) -> None:
    """A bit outside of what is signed may be accepted; it then changes nothing."""
    stamps = OpensslTimestamps(authority.certificate)
    at, stated = stamps.time_of(response, DATA), _stated(authority, response)
    for bit in bits:
        changed = bytearray(response)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            found = stamps.time_of(bytes(changed), DATA)
        except BadSignature:
            continue
        assert bit // 8 not in stated
        assert found == at, f"bit {bit}"


def test_no_flipped_bit_changes_the_time_or_the_data(authority: TimeAuthority, response: bytes) -> None:
    """Two bits of each byte of the stated time and of the digest, and a sample of all others."""
    bits = {place * 8 + bit for place in _stated(authority, response) for bit in (0, 3)}
    _check_flips(authority, response, sorted(bits | set(Random(3161).sample(range(len(response) * 8), FLIPS))))


@pytest.mark.slow
def test_no_flipped_bit_of_all_changes_the_time_or_the_data(authority: TimeAuthority, response: bytes) -> None:
    _check_flips(authority, response, range(len(response) * 8))


def _stated(authority: TimeAuthority, response: bytes) -> list[int]:
    """The places of the digest and of the time."""
    return _places(response, hashlib.sha256(DATA).digest()) + _places(response, authority.stated_time(response))


def _places(response: bytes, part: bytes) -> list[int]:
    start = response.index(part)
    return list(range(start, start + len(part)))


def test_a_file_without_a_certificate_and_a_machine_without_openssl_are_named(
    tmp_path: Path, authority: TimeAuthority, response: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty.pem").write_text("")
    for path in (tmp_path / "empty.pem", tmp_path / "missing.pem"):
        with pytest.raises(InvalidInput, match=path.name):
            OpensslTimestamps(path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingProgram, match="openssl"):
        OpensslTimestamps(authority.certificate).time_of(response, DATA)


def test_the_world_has_the_same_openssl() -> None:
    assert subprocess.run(["openssl", "version"], capture_output=True, check=True).stdout.startswith(b"OpenSSL")
