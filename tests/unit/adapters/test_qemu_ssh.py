"""A controller that takes up a machine reads past what the dead one left in the serial port."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import paramiko
import pytest

from controller.adapters.qemu_ssh import NOISE_BYTES_MAX, FromBanner


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
