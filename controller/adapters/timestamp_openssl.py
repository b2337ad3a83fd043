"""RFC 3161 timestamps by OpenSSL's `ts` program, which every machine we know has. Nothing is sent anywhere."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from controller.domain.instant import InstantMs
from controller.errors import BadSignature, InvalidInput, MissingProgram
from controller.ports.named_files import read_named

RESPONSE_BYTES_MAX: Final = 64 * 2**10  # with the authority's certificates, a response is 5 KiB
CERTIFICATES_BYTES_MAX: Final = 2**20
_SECONDS_MAX: Final = 30.0  # it takes 10 ms
_TIME: Final = re.compile(
    r"^Time stamp: ([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)(?:\.(\d{1,9}))? (\d{4}) GMT$", re.MULTILINE
)


def timestamp_request(data: bytes) -> bytes:
    """What to send to an authority: the SHA-256 of the data, with the wish for its certificate. Always the same bytes.

    Raises MissingProgram.
    """
    return _openssl("-query", "-digest", hashlib.sha256(data).hexdigest(), "-sha256", "-cert", "-no_nonce").stdout


class OpensslTimestamps:
    """The TimeAuthority port for the authority whose certificates are in a PEM file: its own, or its root's."""

    def __init__(self, certificates: Path) -> None:
        """Raises InvalidInput for a file that can't be read or holds no certificate."""
        try:
            self._pem = read_named(certificates, bytes_max=CERTIFICATES_BYTES_MAX)
        except OSError as error:
            raise InvalidInput(f"{certificates}: {error.strerror}") from error
        if b"-----BEGIN CERTIFICATE-----" not in self._pem:
            raise InvalidInput(f"{certificates}: holds no PEM certificate")

    def time_of(self, response: bytes, data: bytes) -> InstantMs:
        """See the port. The certificate is judged at the time of the stamp: it may have expired since.

        Raises BadSignature, MissingProgram.
        """
        if len(response) > RESPONSE_BYTES_MAX:
            raise BadSignature(f"timestamp: {len(response)} bytes are more than a response has")
        with tempfile.TemporaryDirectory(prefix="fairtrial-ts-") as name:
            reply, trusted = Path(name) / "response.tsr", Path(name) / "trusted.pem"
            reply.write_bytes(response)
            trusted.write_bytes(self._pem)
            at = _stated_time(_openssl("-reply", "-in", str(reply), "-text"))
            # A pinned certificate need not be a root, and time stands still at the stamp.
            done = _openssl(
                *("-verify", "-digest", hashlib.sha256(data).hexdigest(), "-in", str(reply)),
                *("-CAfile", str(trusted), "-partial_chain", "-attime", str(at // 1000)),
            )
        if done.returncode != 0 or b"Verification: OK" not in done.stdout:
            reason = done.stderr.decode(errors="replace").strip().splitlines()
            raise BadSignature(f"timestamp: not of the pinned authority for this data: {reason[-1] if reason else ''}")
        return at


def _stated_time(done: subprocess.CompletedProcess[bytes]) -> InstantMs:
    """The time that the response itself states; worth something only once its signature is checked."""
    matches = _TIME.findall(done.stdout.decode(errors="replace"))
    if done.returncode != 0 or len(matches) != 1:
        raise BadSignature("timestamp: not one RFC 3161 response with a time")
    day_and_time, fraction, year = matches[0]
    try:
        moment = datetime.strptime(f"{day_and_time} {year}", "%b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    except ValueError as error:
        raise BadSignature("timestamp: states a time that does not exist") from error
    return InstantMs(int(moment.timestamp()) * 1000 + int(f"{fraction}000"[:3]))


def _openssl(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    # No configuration of this machine may add certificates or engines.
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "OPENSSL_CONF": os.devnull}
    try:
        return subprocess.run(
            ["openssl", "ts", *arguments], capture_output=True, env=environment, timeout=_SECONDS_MAX, check=False
        )
    except FileNotFoundError as error:
        raise MissingProgram("openssl: needed for RFC 3161 timestamps, and not installed") from error
    except subprocess.TimeoutExpired as error:
        raise BadSignature(f"timestamp: OpenSSL found no answer in {_SECONDS_MAX:.0f} seconds") from error
