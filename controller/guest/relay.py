"""The one way out of the container: a loopback port whose every stream goes to one Unix socket.

It runs as a user of its own, so that the harness can neither kill nor read it, and holds no secret: tokens are checked
at the services behind the socket. One thread, no limit on streams but the container's own.
"""

from __future__ import annotations

import selectors
import socket

BUFFER_BYTES = 1 << 16
QUEUE_SECONDS = 0.02


class Stream:
    """Two sockets and the bytes that wait to be written to each. A side that ends is half-closed on the other side."""

    def __init__(self, selector: selectors.BaseSelector, near: socket.socket, far: socket.socket) -> None:
        self._selector = selector
        self._sides = (near, far)
        self._waiting: dict[socket.socket, bytearray] = {near: bytearray(), far: bytearray()}
        self._ended: set[socket.socket] = set()
        self._shut: set[socket.socket] = set()
        self._interest: dict[socket.socket, int] = {near: 0, far: 0}
        self.is_open = True
        self._update()

    def handle(self, side: socket.socket, events: int) -> None:
        """Move what can be moved. Raises OSError when a side is gone; the caller then closes the stream."""
        peer = self._peer(side)
        if events & selectors.EVENT_READ and side not in self._ended:
            data = side.recv(BUFFER_BYTES)
            if data:
                self._waiting[peer] += data
            else:
                self._ended.add(side)
            self._flush(peer)
        if events & selectors.EVENT_WRITE:
            self._flush(side)
        if len(self._ended) == 2 and not any(self._waiting.values()):
            self.close()
        else:
            self._update()

    def close(self) -> None:
        """Close both sides; safe to call twice."""
        self.is_open = False
        for side in self._sides:
            if self._interest[side]:
                self._selector.unregister(side)
                self._interest[side] = 0
            side.close()

    def _peer(self, side: socket.socket) -> socket.socket:
        return self._sides[1] if side is self._sides[0] else self._sides[0]

    def _flush(self, side: socket.socket) -> None:
        waiting = self._waiting[side]
        try:
            while waiting:
                del waiting[: side.send(waiting)]
        except BlockingIOError:
            return
        if self._peer(side) in self._ended and side not in self._shut:
            self._shut.add(side)
            side.shutdown(socket.SHUT_WR)

    def _update(self) -> None:
        for side in self._sides:
            wanted = 0
            if side not in self._ended and len(self._waiting[self._peer(side)]) < BUFFER_BYTES:
                wanted |= selectors.EVENT_READ
            if self._waiting[side]:
                wanted |= selectors.EVENT_WRITE
            if wanted == self._interest[side]:
                continue
            if self._interest[side] and wanted:
                self._selector.modify(side, wanted, (self, side))
            elif wanted:
                self._selector.register(side, wanted, (self, side))
            else:
                self._selector.unregister(side)
            self._interest[side] = wanted


def listen(port: int) -> socket.socket:
    """A listening socket on 127.0.0.1; port 0 lets the kernel choose."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    return listener


class Relay:
    """Every connection of a listening socket, relayed to the Unix socket `target`."""

    def __init__(self, listener: socket.socket, target: str) -> None:
        self._listener = listener
        self._target = target
        self._selector = selectors.DefaultSelector()
        self._queued: list[socket.socket] = []  # accepted, while the queue of the target is full
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, None)

    def step(self, timeout: float | None) -> None:
        """Wait for events once, at most `timeout` seconds, and act on them."""
        queued, self._queued = self._queued, []
        for near in queued:
            self._connect(near)
        if self._queued:
            timeout = QUEUE_SECONDS if timeout is None else min(timeout, QUEUE_SECONDS)
        for key, events in self._selector.select(timeout):
            if key.data is None:
                self._accept()
                continue
            stream, side = key.data
            if not stream.is_open:
                continue
            try:
                stream.handle(side, events)
            except BlockingIOError:
                continue
            except OSError:
                stream.close()

    def _accept(self) -> None:
        try:
            near, _ = self._listener.accept()
        except OSError:
            return
        near.setblocking(False)
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connect(near)

    def _connect(self, near: socket.socket) -> None:
        far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        far.setblocking(False)
        try:
            far.connect(self._target)
        except BlockingIOError:
            far.close()
            self._queued.append(near)
        except OSError:
            far.close()
            near.close()
        else:
            Stream(self._selector, near, far)


def serve(listener: socket.socket, target: str) -> None:
    """Relay until the process is killed."""
    relay = Relay(listener, target)
    while True:
        relay.step(None)
