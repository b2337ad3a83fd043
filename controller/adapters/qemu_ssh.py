"""The channel into a machine: SSH over two virtio serial ports, so that no TCP port is opened on either side."""

from __future__ import annotations

import base64
import contextlib
import io
import logging
import select
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast

import paramiko
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    SSHCertificateBuilder,
    SSHCertificateType,
    load_ssh_private_key,
)

from controller.adapters.qemu_process import connect_socket
from controller.errors import SandboxLost
from controller.ports.clock import Clock
from controller.ports.entropy import Entropy
from controller.ports.pool import ExecResult

GREETING: Final = b"fairtrial/1"
CONTROL_SOCKET, SSH_SOCKET = "control.sock", "ssh.sock"
SEED_BYTES: Final = 64
BANNER: Final = b"SSH-2.0-"
NOISE_BYTES_MAX: Final = 2**20  # a serial port queues far less
LINE_BYTES_MAX: Final = 256
CERTIFICATE_SECONDS: Final = 60 * 60  # longer than any attempt; the certificate opens one machine, through one socket
HANDSHAKE_SECONDS: Final = 60.0  # an emulated machine on a busy host takes a few seconds
KEEPALIVE_SECONDS: Final = 5  # traffic towards the machine wakes a serial port that has missed a notification
STUCK_SECONDS: Final = 10.0  # past a command's own time: then the connection itself is stuck
CHUNK_BYTES: Final = 2**15
ENGINE_SOCKET: Final = "/run/user/1000/engine.sock"

logging.getLogger("paramiko").setLevel(logging.CRITICAL)  # its tracebacks are ours to report, as SandboxLost


class Credentials:
    """What opens machines of one image: its certificate authority and its pinned host key."""

    def __init__(self, ca_key: Path, host_key: Path) -> None:
        self._ca = load_ssh_private_key(ca_key.read_bytes(), None)
        kind, encoded = host_key.read_text(encoding="ascii").split()[:2]
        self.host_key = paramiko.PKey.from_type_string(kind, base64.b64decode(encoded))

    def issue(self, *, at_seconds: int) -> paramiko.PKey:
        """A fresh key with a certificate for root until an hour from now."""
        if not isinstance(self._ca, Ed25519PrivateKey):
            raise SandboxLost("the image's certificate authority is not an Ed25519 key")
        key = Ed25519PrivateKey.generate()
        certificate = (
            SSHCertificateBuilder()
            .public_key(key.public_key())
            .serial(1)
            .type(SSHCertificateType.USER)
            .key_id(b"fairtrial controller")
            .valid_principals([b"root"])
            .valid_after(at_seconds - CERTIFICATE_SECONDS)
            .valid_before(at_seconds + CERTIFICATE_SECONDS)
            .sign(self._ca)
        )
        private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
        pkey = paramiko.Ed25519Key.from_private_key(io.StringIO(private))
        pkey.load_certificate(certificate.public_bytes().decode())
        return pkey


class Channel:
    """One SSH connection to one machine; commands run in parallel over it. Every failure is SandboxLost."""

    def __init__(
        self,
        directory: Path,
        credentials: Credentials,
        clock: Clock,
        entropy: Entropy,
        is_ours: Callable[[], bool] = lambda: True,
    ) -> None:
        """`is_ours` is asked before every connection, so that a stale holder never reaches its successor's machine."""
        self._is_ours = is_ours
        self._directory = directory
        self._credentials = credentials
        self._clock = clock
        self._entropy = entropy
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._transport: paramiko.Transport | None = None

    def connect(self, *, timeout_seconds: float) -> None:
        """Renew the machine's clock and entropy, then open SSH. Does nothing when the channel is open.

        Raises SandboxLost when the machine does not answer in time.
        """
        with self._lock:
            if self._transport is not None and self._transport.is_active():
                return
            self._close()
            if not self._is_ours():
                raise SandboxLost(f"{self._directory.name}: the machine is gone, or a newer holder has its name")
            try:
                self._open(timeout_seconds)
            except (OSError, EOFError, paramiko.SSHException) as error:
                self._close()
                raise SandboxLost(f"{self._directory.name}: the machine does not answer ({error})") from error

    def close(self) -> None:
        """Close the connection; the machine stays."""
        with self._lock:
            self._close()

    def session(self) -> paramiko.Channel:
        """A new channel on the open connection. Raises SandboxLost when it has broken."""
        self.connect(timeout_seconds=HANDSHAKE_SECONDS)
        assert self._transport is not None
        try:
            return self._transport.open_session(timeout=HANDSHAKE_SECONDS)
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise SandboxLost(f"{self._directory.name}: the channel broke ({error})") from error

    def exec(self, command: str, *, stdin: bytes, timeout_seconds: float, output_bytes_max: int) -> ExecResult:
        """Run a shell command line as root. Raises SandboxLost when the machine is gone or the time is over."""
        deadline = self._clock.monotonic_seconds() + timeout_seconds
        channel = self.session()
        try:
            with _cut_when_stuck(channel, timeout_seconds + STUCK_SECONDS):
                channel.exec_command(command)
                exchange = _Exchange(channel, stdin, output_bytes_max)
                while not exchange.step():
                    if self._clock.monotonic_seconds() > deadline:
                        raise SandboxLost(
                            f"{self._directory.name}: `{command[:60]}` took more than {timeout_seconds:g} s"
                        )
                return exchange.result()
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise SandboxLost(f"{self._directory.name}: the channel broke ({error})") from error

    def _open(self, timeout_seconds: float) -> None:
        deadline = self._clock.monotonic_seconds() + timeout_seconds
        self._control = connect_socket(self._directory, CONTROL_SOCKET, timeout_seconds)
        nonce = self._entropy.token_bytes(8).hex().encode()
        seed = self._entropy.token_bytes(SEED_BYTES).hex().encode()
        self._control.sendall(b"%s %s %d %s\n" % (GREETING, nonce, self._clock.now(), seed))
        ready = b"%s ready %s" % (GREETING, nonce)
        while _read_line(self._control) != ready:
            if self._clock.monotonic_seconds() > deadline:
                raise TimeoutError("no answer to the greeting")
        stream = connect_socket(self._directory, SSH_SOCKET, timeout_seconds)
        stream.settimeout(timeout_seconds)
        transport = paramiko.Transport(cast(socket.socket, FromBanner(stream)))
        self._transport = transport
        transport.start_client(timeout=timeout_seconds)
        if transport.get_remote_server_key() != self._credentials.host_key:
            raise paramiko.SSHException("the machine's host key is not the one pinned at bake")
        transport.auth_timeout = timeout_seconds
        transport.auth_publickey("root", self._credentials.issue(at_seconds=self._clock.now() // 1000))
        transport.set_keepalive(KEEPALIVE_SECONDS)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None
        if self._control is not None:
            self._control.close()
            self._control = None


def engine_stream(channel: Channel) -> paramiko.Channel:
    """A byte stream to the rootless container engine's socket. Raises SandboxLost."""
    stream = channel.session()
    try:
        with _cut_when_stuck(stream, HANDSHAKE_SECONDS, close=False):
            stream.exec_command(f"exec socat - UNIX-CONNECT:{ENGINE_SOCKET}")
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise SandboxLost(f"the container engine can't be reached ({error})") from error
    return stream


@contextlib.contextmanager
def _cut_when_stuck(channel: paramiko.Channel, seconds: float, *, close: bool = True) -> Iterator[None]:
    """Close the connection when the block, and the closing of the channel, are not over in time.

    paramiko waits without a limit for the answer to a request and for room to write; the end of the connection is what
    ends such a wait, as SSHException or EOFError.
    """
    cut = threading.Timer(seconds, channel.get_transport().close)
    cut.daemon = True
    cut.start()
    try:
        yield
    finally:
        if close:
            channel.close()
        cut.cancel()


class _Exchange:
    """The bytes of one command in both directions, bounded."""

    def __init__(self, channel: paramiko.Channel, stdin: bytes, output_bytes_max: int) -> None:
        self._channel = channel
        self._stdin = memoryview(stdin)
        self._max = output_bytes_max
        self._stdout, self._stderr = bytearray(), bytearray()
        self._truncated = False
        self._open = True
        self._channel.settimeout(0.5)
        if not stdin:
            self._shut()

    def step(self) -> bool:
        """Move what can be moved, or wait a moment; True when the command has ended and all output is here."""
        moved = self._send()
        if self._channel.recv_ready():
            self._keep(self._stdout, self._channel.recv(CHUNK_BYTES))
            moved = True
        if self._channel.recv_stderr_ready():
            self._keep(self._stderr, self._channel.recv_stderr(CHUNK_BYTES))
            moved = True
        if moved:
            return False
        if self._channel.closed or (self._channel.exit_status_ready() and self._channel.eof_received):
            return not (self._channel.recv_ready() or self._channel.recv_stderr_ready())
        select.select([self._channel], [], [], 0.02 if self._channel.exit_status_ready() or self._stdin else 0.2)
        return False

    def result(self) -> ExecResult:
        """What the command said. Raises SSHException when the channel closed without an exit status."""
        if not self._channel.exit_status_ready() or (status := self._channel.recv_exit_status()) < 0:
            raise paramiko.SSHException("the command ended without an exit status")
        return ExecResult(
            exit_code=status, stdout=bytes(self._stdout), stderr=bytes(self._stderr), truncated=self._truncated
        )

    def _send(self) -> bool:
        if not self._stdin or not self._channel.send_ready():
            return False
        if self._channel.closed or self._channel.exit_status_ready():
            self._stdin = self._stdin[:0]
            return True
        sent = self._channel.send(bytes(self._stdin[:CHUNK_BYTES]))
        self._stdin = self._stdin[sent:]
        if not self._stdin:
            self._shut()
        return True

    def _shut(self) -> None:
        if self._open:
            self._open = False
            self._channel.shutdown_write()

    def _keep(self, into: bytearray, data: bytes) -> None:
        room = self._max - len(into)
        if len(data) > room:
            self._truncated = True
        into += data[:room]


class FromBanner:
    """A stream that begins at the SSH banner.

    What an earlier connection had queued in the serial port when its controller died comes first, and is nobody's.
    """

    def __init__(self, stream: socket.socket) -> None:
        """Raises EOFError when the machine hangs up, SSHException when nothing but noise comes."""
        self._stream = stream
        self._first = BANNER
        seen = b""
        for _ in range(NOISE_BYTES_MAX):
            byte = stream.recv(1)
            if byte == b"":
                raise EOFError("the machine hung up before its SSH banner")
            seen = (seen + byte)[-len(BANNER) :]
            if seen == BANNER:
                return
        raise paramiko.SSHException("no SSH banner in what the machine sends")

    def recv(self, count: int) -> bytes:
        """The next bytes, as of a socket."""
        if self._first:
            first, self._first = self._first[:count], self._first[count:]
            return first
        return self._stream.recv(count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _read_line(stream: socket.socket) -> bytes:
    line = b""
    while len(line) < LINE_BYTES_MAX:
        byte = stream.recv(1)
        if byte == b"":
            raise EOFError("the machine hung up")
        if byte == b"\n":
            return line
        line += byte
    return line
