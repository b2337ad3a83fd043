"""Upload named artifacts under a write-only, write-once grant, straight through the Unix socket.

The server acknowledges only what is durable, and answers the same for equal bytes, so a lost answer is safely retried.
"""

from __future__ import annotations

import socket
import time

ANSWER_BYTES_MAX = 1 << 16
TIMEOUT_SECONDS = 60.0
PAUSE_SECONDS = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)


class UploadRefused(Exception):
    """The server will not take this artifact, or could not be reached in any try."""


def put(socket_path: str, attempt_id: str, name: str, token: str, data: bytes) -> None:
    """Upload one artifact. Returns when it is acknowledged; raises UploadRefused otherwise."""
    status = 0
    for pause in (*PAUSE_SECONDS, None):
        status = _try(socket_path, f"/results/{attempt_id}/{name}", token, data)
        if status in (200, 201):
            return
        if 400 <= status < 500 and status not in (408, 429):
            break
        if pause is not None:
            time.sleep(pause)
    raise UploadRefused(f"{name}: the result service answered {status}")


def ask(connection: socket.socket, path: str) -> None:
    """Send a GET over an open connection."""
    connection.sendall(_head("GET", path, ()))


def answered(connection: socket.socket) -> int:
    """Status of the answer; 0 when there is none."""
    return _status(_answer(connection))


def _try(socket_path: str, path: str, token: str, data: bytes) -> int:
    headers = (
        f"Authorization: Bearer {token}",
        f"Content-Length: {len(data)}",
        "Content-Type: application/octet-stream",
    )
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(TIMEOUT_SECONDS)
    try:
        connection.connect(socket_path)
        try:
            connection.sendall(_head("PUT", path, headers))
            connection.sendall(data)
        except BrokenPipeError:
            pass  # a server that refuses early answers before it has read everything
        return _status(_answer(connection))
    except OSError:
        return 0
    finally:
        connection.close()


def _head(method: str, path: str, headers: tuple[str, ...]) -> bytes:
    lines = (f"{method} {path} HTTP/1.1", "Host: fairtrial", "Connection: close", *headers, "", "")
    return "\r\n".join(lines).encode("ascii")


def _answer(connection: socket.socket) -> bytes:
    answer = b""
    while len(answer) < ANSWER_BYTES_MAX:
        chunk = connection.recv(4096)
        if not chunk:
            break
        answer += chunk
    return answer


def _status(answer: bytes) -> int:
    words = answer.split(b"\r\n", 1)[0].split(b" ")
    if len(words) >= 2 and words[0].startswith(b"HTTP/1.") and len(words[1]) == 3 and words[1].isdigit():
        return int(words[1])
    return 0
