"""The channel into a machine: what a dead controller left in the serial port, and a machine that answers nothing."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import paramiko
import pytest
from paramiko.common import AUTH_SUCCESSFUL, OPEN_SUCCEEDED

from controller.adapters import qemu_ssh
from controller.adapters.qemu_ssh import (
    CONTROL_SOCKET,
    GREETING,
    NOISE_BYTES_MAX,
    SSH_SOCKET,
    Channel,
    Credentials,
    FromBanner,
)
from controller.adapters.system_clock import SystemClock
from controller.adapters.system_entropy import SystemEntropy
from controller.errors import SandboxLost


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(10)
    yield ours, theirs
    ours.close()
    theirs.close()


@pytest.mark.parametrize("noise", [b"", b"\xe0\xff\x00", os.urandom(4096), b"SSH-2.0", b"SSH-SSH-2.", b"\r\n" * 300])
def test_noise_before_the_banner_is_skipped(noise: bytes, ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    theirs.sendall(noise + b"SSH-2.0-OpenSSH_9.2\r\nkex")
    stream = FromBanner(ours)
    assert stream.recv(4) == b"SSH-"
    assert stream.recv(100) == b"2.0-"
    assert stream.recv(100) == b"OpenSSH_9.2\r\nkex"


def test_a_machine_that_hangs_up_is_noticed(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    theirs.sendall(b"noise")
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(EOFError):
        FromBanner(ours)


def test_endless_noise_is_given_up() -> None:
    class Noise:
        read = 0

        def recv(self, count: int) -> bytes:
            self.read += count
            return b"x" * count

    noise = Noise()
    with pytest.raises(paramiko.SSHException):
        FromBanner(noise)  # type: ignore[arg-type]
    assert noise.read <= NOISE_BYTES_MAX


class MuteMachine(paramiko.ServerInterface):
    """A machine whose SSH opens sessions and then answers nothing, as when its serial port is stuck."""

    def __init__(self, directory: Path, key: paramiko.PKey) -> None:
        self.over = threading.Event()
        self.answered = False
        self._key = key
        self._threads = [
            threading.Thread(target=self._serve, args=(self._listen(directory / name), act), daemon=True)
            for name, act in ((CONTROL_SOCKET, self._greet), (SSH_SOCKET, self._speak))
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _listen(path: Path) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        return listener

    def _serve(self, listener: socket.socket, act: Callable[[socket.socket], None]) -> None:
        stream, _ = listener.accept()
        with listener, stream:
            act(stream)
            self.over.wait(60)

    def _greet(self, stream: socket.socket) -> None:
        _, nonce, *_ = stream.recv(1024).split()
        stream.sendall(b"%s ready %s\n" % (GREETING, nonce))

    def _speak(self, stream: socket.socket) -> None:
        transport = paramiko.Transport(stream)
        transport.add_server_key(self._key)
        transport.start_server(server=self)
        self.over.wait(60)
        transport.close()

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return int(AUTH_SUCCESSFUL)

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(OPEN_SUCCEEDED)

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self.over.wait(60)
        self.answered = True
        return False


class TrustAnyone:
    """Credentials without a certificate authority."""

    def __init__(self, key: paramiko.PKey) -> None:
        self.host_key = key

    def issue(self, *, at_seconds: int) -> paramiko.PKey:
        return self.host_key


def test_a_machine_that_never_answers_a_command_is_lost_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qemu_ssh, "STUCK_SECONDS", 0.0)
    key = paramiko.RSAKey.generate(2048)
    machine = MuteMachine(tmp_path, key)
    channel = Channel(tmp_path, cast(Credentials, TrustAnyone(key)), SystemClock(), SystemEntropy())
    try:
        with pytest.raises(SandboxLost, match="the channel broke"):
            channel.exec("true", stdin=b"", timeout_seconds=0.1, output_bytes_max=100)
        assert not machine.answered
    finally:
        machine.over.set()
        channel.close()
