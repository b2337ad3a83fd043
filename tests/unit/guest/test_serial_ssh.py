"""The greeting of the serial channel is parsed strictly; what an old connection left is thrown away."""

from __future__ import annotations

import os
import socket

import pytest

from controller.guest import serial_ssh

SEED = "ab" * 32


def test_a_greeting_gives_nonce_clock_and_seed() -> None:
    line = f"fairtrial/1 n0 1790000000000 {SEED}".encode()
    assert serial_ssh.parse_greeting(line) == (b"n0", 1_790_000_000_000, bytes.fromhex(SEED))


@pytest.mark.parametrize(
    "line",
    [
        "",
        f"fairtrial/2 n0 1790000000000 {SEED}",
        f"fairtrial/1 n0 -5 {SEED}",
        f"fairtrial/1 n0 {'9' * 16} {SEED}",
        "fairtrial/1 n0 1790000000000 abcd",
        f"fairtrial/1 n0 1790000000000 {'zz' * 32}",
        f"fairtrial/1 n0 1790000000000 {SEED} more",
    ],
)
def test_anything_else_is_no_greeting(line: str) -> None:
    assert serial_ssh.parse_greeting(line.encode()) is None


def test_lines_are_bounded_and_a_hang_up_is_seen() -> None:
    host, guest = socket.socketpair()
    with host, guest:
        host.sendall(b"one\n" + b"x" * 600)
        assert serial_ssh.read_line(guest.fileno()) == b"one"
        assert serial_ssh.read_line(guest.fileno()) is None
        serial_ssh.drain(guest.fileno())
        assert os.get_blocking(guest.fileno())
        assert serial_ssh.is_open(guest.fileno())
        host.close()
        assert not serial_ssh.is_open(guest.fileno())
        assert serial_ssh.read_line(guest.fileno()) is None
