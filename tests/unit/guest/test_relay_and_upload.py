"""Bytes pass the relay whole in both directions; an upload is retried until it is acknowledged or refused."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller.guest import relay, upload


def serve_unix(path: Path, answer: Callable[[socket.socket], None]) -> socket.socket:
    """A Unix socket whose connections are handled one after another until it is closed."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(8)

    def loop() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                answer(connection)

    threading.Thread(target=loop, daemon=True).start()
    return listener


def read_all(connection: socket.socket) -> bytes:
    data = b""
    while chunk := connection.recv(65536):
        data += chunk
    return data


@pytest.fixture
def relayed(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """Port and target of a relay that runs in a thread."""
    target = tmp_path / "target.sock"
    listener = relay.listen(0)
    relaying = relay.Relay(listener, str(target))
    stop = threading.Event()

    def loop() -> None:
        while not stop.is_set():
            relaying.step(0.05)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    yield listener.getsockname()[1], target
    stop.set()
    thread.join()
    listener.close()


def test_large_bodies_pass_both_ways_and_half_closing_is_kept(relayed: tuple[int, Path]) -> None:
    port, target = relayed
    body = bytes(range(256)) * 20_000
    server = serve_unix(target, lambda connection: connection.sendall(read_all(connection)[::-1]))
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(body)
        client.shutdown(socket.SHUT_WR)
        assert read_all(client) == body[::-1]
    server.close()


def test_many_streams_at_once(relayed: tuple[int, Path]) -> None:
    port, target = relayed
    server = serve_unix(target, lambda connection: connection.sendall(connection.recv(10)))
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(30)]
    for number, client in enumerate(clients):
        client.sendall(b"%d" % number)
    assert [read_all(client) for client in clients] == [b"%d" % number for number in range(30)]
    for client in clients:
        client.close()
    server.close()


def test_a_missing_target_closes_the_stream(relayed: tuple[int, Path]) -> None:
    with socket.create_connection(("127.0.0.1", relayed[0])) as client:
        assert read_all(client) == b""


def uploads(tmp_path: Path, answers: list[bytes], monkeypatch: pytest.MonkeyPatch) -> tuple[list[bytes], list[float]]:
    """Upload once against the given answers; returns the requests seen and the pauses taken."""
    seen: list[bytes] = []
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)

    def answer(connection: socket.socket) -> None:
        request = connection.recv(65536)
        while not request.endswith(b"the body"):
            request += connection.recv(65536)
        seen.append(request)
        connection.sendall(answers[len(seen) - 1])

    server = serve_unix(tmp_path / "s", answer)
    try:
        upload.put(str(tmp_path / "s"), "att-1", "exit.json", "up_token", b"the body")
    finally:
        server.close()
    return seen, pauses


def test_a_lost_answer_and_a_failing_disk_are_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [b"", b"HTTP/1.1 500 No\r\n\r\n", b"nonsense", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]
    seen, pauses = uploads(tmp_path, answers, monkeypatch)
    assert len(seen) == 4
    assert pauses == [0.2, 0.5, 1.0]
    assert seen[0].startswith(b"PUT /results/att-1/exit.json HTTP/1.1\r\n")
    assert b"Authorization: Bearer up_token\r\nContent-Length: 8\r\n" in seen[0]


def test_a_refusal_is_final(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(upload.UploadRefused, match=r"exit.json: the result service answered 403"):
        uploads(tmp_path, [b"HTTP/1.1 403 Forbidden\r\n\r\n"], monkeypatch)


def test_an_absent_service_is_given_up_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    with pytest.raises(upload.UploadRefused, match="answered 0"):
        upload.put(str(tmp_path / "absent"), "att-1", "a", "t", b"")
    assert len(pauses) == len(upload.PAUSE_SECONDS)
