"""Isolation probes: try every way out as the harness's own user, and report what the kernel answered.

A probe is `{"name", "kind", "host", "port"}`; an outcome is `refused` (with the kernel's error), `reached`, or `silent`
when nothing came back in time. Silence is not a refusal: it means that something let the packet leave.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
RTM_NEWROUTE, NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE, NLMSG_ERROR = 24, 1, 4, 0x400, 2
ICMP_ECHO, ICMPV6_ECHO = 8, 128
VSOCK_HOST_CID = 2
PACKET = 17

Outcome = tuple[str, str]


def run(probes: list[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
    """Every probe's outcome, in order. Those that wait for an answer wait together, at most `seconds`."""
    results: dict[int, Outcome] = {}
    waiting: dict[int, tuple[int, socket.socket]] = {}
    for index, probe in enumerate(probes):
        if probe["kind"] not in ("tcp", "udp", "icmp"):
            results[index] = _guarded(KINDS[probe["kind"]], probe)
            continue
        outcome, sock = _send(probe)
        if sock is None:
            results[index] = outcome
        else:
            waiting[sock.fileno()] = (index, sock)
    _collect(waiting, results, probes, time.monotonic() + seconds)
    return [
        {"name": probe["name"], "kind": probe["kind"], "outcome": results[index][0], "detail": results[index][1]}
        for index, probe in enumerate(probes)
    ]


def error_name(error: OSError) -> str:
    """`ENETUNREACH` and the like."""
    return errno.errorcode.get(error.errno or 0, type(error).__name__)


def _send(probe: dict[str, Any]) -> tuple[Outcome, socket.socket | None]:
    """Start a probe that may have to wait. The kernel's refusal comes at once when there is no way out."""
    host, kind = probe["host"], probe["kind"]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = None
    try:
        if kind == "icmp":
            protocol = socket.IPPROTO_ICMPV6 if family == socket.AF_INET6 else socket.IPPROTO_ICMP
            sock = socket.socket(family, socket.SOCK_DGRAM, protocol)
        else:
            sock = socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
        sock.setblocking(False)
        sock.connect((host, probe.get("port", 0)))
        if kind == "tcp":
            sock.close()
            return ("reached", "connected"), None
        echo = ICMPV6_ECHO if family == socket.AF_INET6 else ICMP_ECHO
        sock.send(struct.pack("!BBHHH", echo, 0, 0, 1, 1) if kind == "icmp" else b"\0" * 12)
        return ("silent", "sent"), sock
    except BlockingIOError:
        return ("silent", "connecting"), sock
    except OSError as error:
        if sock is not None:
            sock.close()
        return ("refused", error_name(error)), None


def _collect(
    waiting: dict[int, tuple[int, socket.socket]],
    results: dict[int, Outcome],
    probes: list[dict[str, Any]],
    deadline: float,
) -> None:
    while waiting:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        connecting = [number for number, (index, _) in waiting.items() if probes[index]["kind"] == "tcp"]
        answering = [number for number in waiting if number not in connecting]
        readable, writable, _ = select.select(answering, connecting, [], left)
        for number in (*readable, *writable):
            index, sock = waiting.pop(number)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            results[index] = ("refused", errno.errorcode.get(code, str(code))) if code else ("reached", "answered")
            sock.close()
    for index, sock in waiting.values():
        results[index] = ("silent", "no answer")
        sock.close()


def _guarded(attempt: Callable[[dict[str, Any]], Outcome], probe: dict[str, Any]) -> Outcome:
    try:
        return attempt(probe)
    except OSError as error:
        return "refused", error_name(error)


def _name(probe: dict[str, Any]) -> Outcome:
    found = socket.getaddrinfo(probe["host"], probe.get("port") or 443)
    return "reached", str(found[0][4][0])


def _raw(probe: dict[str, Any]) -> Outcome:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    return "reached", "a raw socket was opened"


def _packet(probe: dict[str, Any]) -> Outcome:
    socket.socket(PACKET, socket.SOCK_RAW, 0).close()
    return "reached", "a packet socket was opened"


def _vsock(probe: dict[str, Any]) -> Outcome:
    sock = socket.socket(getattr(socket, "AF_VSOCK", 40), socket.SOCK_STREAM)
    try:
        sock.settimeout(1.0)
        sock.connect((VSOCK_HOST_CID, probe["port"]))
    except socket.timeout:
        return "silent", "no answer"
    finally:
        sock.close()
    return "reached", "connected"


def _route(probe: dict[str, Any]) -> Outcome:
    """Ask the kernel for a default route through loopback; it must answer that this process may not."""
    loopback = struct.pack("=HHI", 8, 4, 1)
    body = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, 254, 4, 253, 1, 0) + loopback
    flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as sock:
        sock.settimeout(1.0)
        sock.sendto(struct.pack("=IHHII", 16 + len(body), RTM_NEWROUTE, flags, 1, 0) + body, (0, 0))
        answer = sock.recv(4096)
    kind, code = struct.unpack_from("=H", answer, 4)[0], struct.unpack_from("=i", answer, 16)[0]
    if kind != NLMSG_ERROR:
        return "silent", f"message {kind}"
    return ("reached", "a route was added") if code == 0 else ("refused", errno.errorcode.get(-code, str(code)))


def _user_namespace(probe: dict[str, Any]) -> Outcome:
    """In a child of its own, because success would change this process."""
    child = os.fork()
    if child == 0:
        library = ctypes.CDLL(None, use_errno=True)
        failed = library.unshare(CLONE_NEWUSER | CLONE_NEWNET)
        os._exit(ctypes.get_errno() % 256 if failed else 0)
    _, status = os.waitpid(child, 0)
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else errno.EPERM
    return ("reached", "a namespace was made") if code == 0 else ("refused", errno.errorcode.get(code, str(code)))


KINDS = {
    "name": _name,
    "raw": _raw,
    "packet": _packet,
    "vsock": _vsock,
    "route": _route,
    "userns": _user_namespace,
}
