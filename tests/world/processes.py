"""The real services as child processes of a test, over Unix sockets in a short-named directory."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from controller.adapters.ledger_sqlite import SqliteLedger
from controller.adapters.system_clock import SystemClock
from controller.domain.ids import AttemptId, LogicalRunId
from controller.domain.instant import InstantMs
from controller.domain.limits import SpendLimits
from controller.domain.rate_card import RateBand, RateCard, RateRow
from controller.domain.usage import AttemptAccount, Dialect
from controller.ports.ledger import AttemptOpening

MODEL = "rehearsal-1"
DOLLAR = 1_000_000_000
CARD = RateCard(
    name="test",
    rows=(
        RateRow(
            provider="rehearsal",
            model=MODEL,
            source="invented",
            retrieved_on="2026-01-01",
            bands=(RateBand(over=0, nano_usd_per_million={"in": 4 * DOLLAR, "out": 20 * DOLLAR}),),
        ),
    ),
)
CALL_USD = "0.02"  # 3,000 tokens in and 400 out, which is what the scripted upstream reports
READY_SECONDS_MAX = 60.0


class Answer:
    """A response, read whole."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class UnixConnection(http.client.HTTPConnection):
    """An HTTP connection to a Unix socket."""

    def __init__(self, path: Path, timeout: float = 60.0) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def call(path: Path, method: str, target: str, *, body: bytes = b"", headers: dict[str, str] | None = None) -> Answer:
    """One request to a service's socket."""
    connection = UnixConnection(path)
    try:
        connection.request(method, target, body=body or None, headers=headers or {})
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()


def raw_call(path: Path, data: bytes, *, half_close: bool = False) -> bytes:
    """Bytes as they are; the first answer, or what came until the peer closed or fell silent."""
    answer = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(5.0)
        connection.connect(str(path))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(data)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(TimeoutError, ConnectionResetError):
            while not _whole(answer) and (part := connection.recv(65536)):
                answer += part
    return answer


def _whole(answer: bytes) -> bool:
    head, end, body = answer.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(end) and bool(lengths) and len(body) >= int(lengths[0])


@contextlib.contextmanager
def short_directory() -> Iterator[Path]:
    """A private directory whose name leaves room for a socket path."""
    path = Path(tempfile.mkdtemp(prefix="ft-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class ServiceProcess:
    """`controller.<package>.serve(config)` in a process of its own."""

    def __init__(self, package: str, config: Path) -> None:
        self._log = config.with_suffix(".log").open("ab")
        code = (
            "import sys; from pathlib import Path\n"
            "from controller.errors import FairtrialError\n"
            f"from controller.{package} import serve\n"
            "try: serve(Path(sys.argv[1]))\n"
            "except FairtrialError as error: print(error, file=sys.stderr); sys.exit(error.exit_code)\n"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, str(config)],
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=Path(__file__).parents[2],
        )
        self.log_path = config.with_suffix(".log")

    def wait_ready(self) -> None:
        """Return once the ready line was printed."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the service did not start: {self.log_path.read_text()[-2000:]}"
        assert json.loads(line) == {"ready": True}

    def kill(self) -> None:
        """SIGKILL, as a power cut would look to the other processes."""
        self.process.kill()
        self.process.wait()

    def stop_code(self) -> int:
        """The exit code of a process that ends by itself."""
        code = self.process.wait(timeout=60)
        self.stop()
        return code

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._log.close()
        return code


def opening(number: int = 1, *, dialect: Dialect = "openai_chat", key: str = "ok", **changes: Any) -> AttemptOpening:
    """Terms of attempt `number`, whose token is `token-<number>`."""
    terms: dict[str, Any] = {
        "attempt_id": AttemptId(f"att-{number}"),
        "logical_run_id": LogicalRunId(f"run-{number}"),
        "token_sha256": hashlib.sha256(f"token-{number}".encode()).hexdigest(),
        "provider": "rehearsal",
        "model": MODEL,
        "observed_models": (MODEL,),
        "rate_tier": "standard",
        "dialect": dialect,
        "provider_key_name": key,
        "limits": SpendLimits(),
        "expires_at": InstantMs(4_102_444_800_000),
    }
    return AttemptOpening(**(terms | changes))


class MeterRig:
    """A real meter in front of an upstream, with the controller's side of its ledger."""

    def __init__(self, directory: Path, upstream_url: str, **config: Any) -> None:
        self.directory = directory
        self.socket = directory / "meter.sock"
        (directory / "card.json").write_text(CARD.model_dump_json())
        self.config = directory / "meter.json"
        settings = {
            "schema_version": "fairtrial.meter/1",
            "socket": str(self.socket),
            "ledger": str(directory / "ledger.sqlite"),
            "rate_card": str(directory / "card.json"),
            "upstreams": {"rehearsal": upstream_url},
        }
        self.config.write_text(json.dumps(settings | config))
        self.ledger = SqliteLedger(directory / "ledger.sqlite", SystemClock())
        self.service = self.start()
        self._first = 0

    def fresh(self) -> None:
        """Let the attempts 1, 2, ... of the next test be new ones."""
        self._first += 100

    def open(self, number: int = 1, **terms: Any) -> None:
        """Open attempt `number` of this test."""
        self.ledger.open_attempt(opening(self._first + number, **terms))

    def token(self, number: int = 1) -> str:
        """The run token of attempt `number` of this test."""
        return f"token-{self._first + number}"

    def attempt_id(self, number: int = 1) -> AttemptId:
        """The id of attempt `number` of this test."""
        return AttemptId(f"att-{self._first + number}")

    def start(self) -> ServiceProcess:
        """Start the meter (again)."""
        self.service = ServiceProcess("proxy", self.config)
        self.service.wait_ready()
        return self.service

    def __enter__(self) -> MeterRig:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.service.stop()
        self.ledger.close()

    def chat(self, number: int = 1, *, target: str = "/v1/chat/completions", **body: Any) -> Answer:
        """One inference request of attempt `number`."""
        spoken = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 100}
        if target == "/v1/responses":
            spoken = {"input": [{"role": "user", "content": "hi"}], "max_output_tokens": 100}
        payload = {"model": MODEL} | spoken | body
        headers = {"Authorization": f"Bearer {self.token(number)}", "Content-Type": "application/json"}
        return call(self.socket, "POST", target, body=json.dumps(payload).encode(), headers=headers)

    def account(self, number: int = 1) -> AttemptAccount:
        """What the ledger says of attempt `number`."""
        return self.ledger.account(self.attempt_id(number))

    def settled_account(self, number: int = 1) -> AttemptAccount:
        """The account once no request is open."""
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline:
            account = self.account(number)
            if all(request.ended_at is not None for request in account.requests):
                return account
            time.sleep(0.01)
        raise AssertionError("a request stayed open")
