"""A TCP server on a free loopback port, in threads of its own."""

from __future__ import annotations

import socketserver
import threading


class Loopback(socketserver.ThreadingTCPServer):
    """Serves from the start until `stop`; connections that are open then are left to their threads."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler: type[socketserver.BaseRequestHandler], host: str = "127.0.0.1") -> None:
        super().__init__((host, 0), handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"

    def stop(self) -> None:
        """Accept nothing more."""
        self.shutdown()
        self.server_close()
