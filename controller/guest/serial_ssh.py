"""Serve SSH over virtio serial ports. Installed into the machine image; standard library only, Python 3.9+.

Two ports. On the control port the host sends one line, `fairtrial/1 <nonce> <epoch ms> <hex seed>`. Before anything
else the guest sets its clock and mixes the seed into the kernel's generator: a machine restored from a warm state would
otherwise repeat the time and the randomness of every sibling. Then it ends any older SSH connection, empties the SSH
port, answers `fairtrial/1 ready <nonce>`, and runs `sshd -i` on the SSH port as soon as the host opens it. A line of
its own is needed because a serial port does not tell its reader that the host hung up and came back.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import sys
import time
from typing import Optional, Tuple

CONTROL_PORT = "fairtrial.control"
SSH_PORT = "fairtrial.ssh"
PORTS = "/sys/class/virtio-ports"
GREETING = b"fairtrial/1"
LINE_BYTES_MAX = 512
POLL_SECONDS = 0.03
OPEN_SECONDS_MAX = 30.0
RNDADDENTROPY = 0x40085203
RNDRESEEDCRNG = 0x5207
SSHD = ("/usr/sbin/sshd", "-i", "-e")


def open_port(wanted: str) -> Optional[int]:
    """A descriptor of the named port, found by name because the image runs no udev; None while it is not there."""
    for entry in sorted(os.listdir(PORTS)) if os.path.isdir(PORTS) else []:
        with open(os.path.join(PORTS, entry, "name"), encoding="ascii") as file:
            if file.read().strip() == wanted:
                return os.open("/dev/" + entry, os.O_RDWR)
    return None


def parse_greeting(line: bytes) -> Optional[Tuple[bytes, int, bytes]]:
    """`(nonce, epoch ms, seed)` of a greeting line, or None for anything else."""
    words = line.split(b" ")
    if len(words) != 4 or words[0] != GREETING or not words[2].isdigit() or len(words[2]) > 15:
        return None
    try:
        seed = bytes.fromhex(words[3].decode("ascii"))
    except ValueError:
        return None
    return (words[1], int(words[2]), seed) if len(seed) >= 32 else None


def read_line(port: int) -> Optional[bytes]:
    """One line without its newline; None when the host hangs up or sends too much."""
    line = b""
    while len(line) <= LINE_BYTES_MAX:
        byte = os.read(port, 1)
        if byte == b"":
            return None
        if byte == b"\n":
            return line
        line += byte
    return None


def is_open(port: int) -> bool:
    """True while the host holds its end of the port open."""
    poll = select.poll()
    poll.register(port, 0)
    return not any(event & select.POLLHUP for _, event in poll.poll(0))


def wait_until_open(port: int, seconds: float) -> bool:
    """Wait for the host; False when it does not come in time."""
    deadline = time.monotonic() + seconds
    while not is_open(port):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def drain(port: int) -> None:
    """Throw away what an earlier connection left in the port, and leave it blocking."""
    os.set_blocking(port, False)
    try:
        while os.read(port, 4096) != b"":
            pass
    except BlockingIOError:
        pass
    os.set_blocking(port, True)


def renew(epoch_ms: int, seed: bytes) -> None:
    """Set the clock and reseed the kernel's random generator."""
    time.clock_settime(time.CLOCK_REALTIME, epoch_ms / 1000)
    random = os.open("/dev/urandom", os.O_WRONLY)
    try:
        fcntl.ioctl(random, RNDADDENTROPY, struct.pack("ii", len(seed) * 8, len(seed)) + seed)
        fcntl.ioctl(random, RNDRESEEDCRNG)
    finally:
        os.close(random)


def end(child: Optional[int]) -> None:
    """End an older connection with everything it has not detached."""
    if child is not None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def start_sshd(port: int) -> int:
    """`sshd -i` on the port; returns its process id."""
    child = os.fork()
    if child == 0:
        os.dup2(port, 0)
        os.dup2(port, 1)
        os.execv(SSHD[0], SSHD)  # noqa: S606
    return child


def serve(control: int, port: int) -> None:
    """Answer greetings for ever; each replaces the SSH connection before it."""
    child: Optional[int] = None
    while True:
        if not wait_until_open(control, OPEN_SECONDS_MAX):
            continue
        line = read_line(control)
        greeting = None if line is None else parse_greeting(line)
        if greeting is None:
            time.sleep(POLL_SECONDS)
            continue
        nonce, epoch_ms, seed = greeting
        renew(epoch_ms, seed)
        end(child)
        child = None
        drain(port)
        os.write(control, GREETING + b" ready " + nonce + b"\n")
        if wait_until_open(port, OPEN_SECONDS_MAX):
            child = start_sshd(port)


def main() -> int:
    """Serve until the machine goes away. Exit code 1 while the ports are not there yet; systemd starts us again."""
    control, port = open_port(CONTROL_PORT), open_port(SSH_PORT)
    if control is None or port is None:
        time.sleep(POLL_SECONDS)
        return 1
    serve(control, port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
