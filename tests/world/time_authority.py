"""A time authority on this machine: a root, a certificate for time stamping, and `openssl ts -reply`."""

from __future__ import annotations

import re
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_CONFIG = """
[tsa]
default_tsa = here
[here]
serial = {directory}/serial
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
ordering = yes
ess_cert_id_alg = sha256
"""


class TimeAuthority:
    """Stamps whatever it is asked to, as the standard says. Its key and certificates are made for it alone."""

    def __init__(self, directory: Path, *, days: int = 30, back_days: int = 1) -> None:
        self._directory = directory
        self.root, self.certificate = directory / "root.pem", directory / "tsa.pem"
        now = datetime.now(UTC)
        span = (now - timedelta(days=back_days), now + timedelta(days=days))
        root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        root = _certificate("root", root_key, "root", root_key, span, ca=True)
        own = _certificate("authority", key, "root", root_key, span, ca=False)
        self.root.write_bytes(root.public_bytes(Encoding.PEM))
        self.certificate.write_bytes(own.public_bytes(Encoding.PEM))
        (directory / "tsa.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        (directory / "serial").write_text("01\n")
        (directory / "tsa.conf").write_text(_CONFIG.format(directory=directory))
        self.asked_at_ms = 0

    def respond(self, request: bytes) -> bytes:
        """The response to a request, now."""
        (self._directory / "request.tsq").write_bytes(request)
        self.asked_at_ms = time.time_ns() // 1_000_000
        command = ["openssl", "ts", "-reply", "-config", "tsa.conf", "-queryfile", "request.tsq"]
        command += ["-signer", "tsa.pem", "-inkey", "tsa.key", "-chain", "root.pem"]
        return subprocess.run(command, cwd=self._directory, capture_output=True, check=True).stdout

    def stated_time(self, response: bytes) -> bytes:
        """The bytes of the time inside a response: `20261130233010Z`, the first GeneralizedTime of it."""
        match = re.search(rb"\x18[\x0f-\x17](\d{14}(?:\.\d+)?Z)", response)
        assert match is not None
        return match.group(1)


def _certificate(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    span: tuple[datetime, datetime],
    *,
    ca: bool,
) -> x509.Certificate:
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(span[0])
        .not_valid_after(span[1])
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if not ca:
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING])
        builder = builder.add_extension(usage, critical=True)
    return builder.sign(issuer_key, hashes.SHA256())
