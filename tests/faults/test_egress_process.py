"""Envoy, the meter and the result API in a row: the allowed forms work, and every other form is refused."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from controller.adapters.artifacts_fs import FsArtifacts
from controller.adapters.egress_envoy import EgressProxy
from controller.adapters.flows import load_flows
from controller.adapters.services import healthy
from controller.adapters.system_clock import SystemClock
from controller.domain.ids import AttemptId, sha256_digest
from controller.domain.instant import InstantMs
from controller.errors import InvalidInput
from controller.ports.ledger import UploadGrant
from tests.world.processes import (
    CALL_USD,
    MODEL,
    MeterRig,
    ServiceProcess,
    UnixConnection,
    call,
    raw_call,
    short_directory,
)
from tests.world.upstream import ScriptedUpstream

FLOWS = load_flows(Path(__file__).parents[2] / "policies" / "network" / "flows.toml")
READY_SECONDS_MAX = 60.0


@dataclass
class Chain:
    """Everything a harness can reach, and what stands behind it."""

    socket: Path
    meter: MeterRig
    artifacts: FsArtifacts
    upstream: ScriptedUpstream
    access_log: Path


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with ScriptedUpstream() as upstream, short_directory() as directory, MeterRig(directory, upstream.url) as meter:
        results = directory / "results.json"
        paths = {"artifacts": str(directory / "files"), "grants": str(directory / "grants.sqlite")}
        results.write_text(json.dumps(paths | {"socket": str(directory / "results.sock")}))
        api = ServiceProcess("api", results)
        api.wait_ready()
        listen = directory / "egress.sock"
        proxy = EgressProxy(FLOWS, listen=listen, meter=meter.socket, results=directory / "results.sock")
        config = proxy.write(directory / "envoy.json")
        proxy.validate(config)
        log = directory / "access.log"
        with log.open("wb") as out:
            envoy = subprocess.Popen(proxy.argv(config), stdout=out)
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not healthy(listen):
            assert time.monotonic() < deadline and envoy.poll() is None, log.read_text()
            time.sleep(0.05)
        artifacts = FsArtifacts(directory / "files", directory / "grants.sqlite", SystemClock())
        yield Chain(listen, meter, artifacts, upstream, log)
        envoy.terminate()
        envoy.wait(timeout=30)
        assert api.stop() == 0
        artifacts.close()
        assert not healthy(listen)


def test_inference_streams_through_and_settles(chain: Chain) -> None:
    chain.meter.open(1, key="long+stall")
    connection = UnixConnection(chain.socket)
    body = json.dumps({"model": MODEL, "messages": [], "stream": True})
    connection.request("POST", "/v1/chat/completions", body, {"Authorization": "Bearer token-1"})
    response = connection.getresponse()
    first = response.read(50)  # arrives while the provider still holds the rest back
    assert first.startswith(b"data: ")
    chain.upstream.hold.set()
    assert response.read().endswith(b"data: [DONE]\n\n")
    connection.close()
    assert chain.meter.settled_account(1).requests[0].usd == CALL_USD


def test_an_upload_passes_and_is_acknowledged(chain: Chain) -> None:
    grant = UploadGrant(
        attempt_id=AttemptId("att-7"),
        token_sha256=hashlib.sha256(b"up").hexdigest(),
        name="tree.jsonl",
        bytes_max=8 * 2**20,
        expires_at=InstantMs(4_102_444_800_000),
    )
    chain.artifacts.grant((grant,))
    data = b"x" * (6 * 2**20)
    headers = {"Authorization": "Bearer up"}
    answer = call(chain.socket, "PUT", "/results/att-7/tree.jsonl", body=data, headers=headers)
    assert (answer.status, answer.json()) == (200, {"digest": sha256_digest(data), "bytes": len(data)})


def test_the_other_allowed_forms_answer(chain: Chain) -> None:
    chain.meter.open(2, dialect="anthropic")
    key = {"x-api-key": "token-2"}
    body = json.dumps({"model": MODEL, "messages": []}).encode()
    assert call(chain.socket, "HEAD", "/").status == 200
    assert call(chain.socket, "GET", "/healthz").json() == {"ok": True}
    assert call(chain.socket, "GET", "/v1/models?limit=1000", headers=key).status == 200
    assert call(chain.socket, "POST", "/v1/messages?beta=true", body=body, headers=key).status == 200
    assert call(chain.socket, "POST", "/v1/messages/count_tokens", body=body, headers=key).status == 200


KEY = b"Host: x\r\nAuthorization: Bearer token-3\r\n"
FORBIDDEN = {
    "connect": b"CONNECT api.example:443 HTTP/1.1\r\nHost: api.example:443\r\n\r\n",
    "connect to an allowed path": b"CONNECT /v1/messages HTTP/1.1\r\n" + KEY + b"\r\n",
    "absolute form": b"GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\n" + KEY + b"\r\n",
    "absolute form of an allowed path": b"GET http://x/v1/models HTTP/1.1\r\n" + KEY + b"\r\n",
    "unknown path": b"POST /v1/embeddings HTTP/1.1\r\n" + KEY + b"Content-Length: 2\r\n\r\n{}",
    "batches": b"POST /v1/messages/batches HTTP/1.1\r\n" + KEY + b"Content-Length: 2\r\n\r\n{}",
    "wrong method": b"GET /v1/messages HTTP/1.1\r\n" + KEY + b"\r\n",
    "delete": b"DELETE /v1/responses HTTP/1.1\r\n" + KEY + b"\r\n",
    "stored response": b"GET /v1/responses/resp_1 HTTP/1.1\r\n" + KEY + b"\r\n",
    "escaped slash": b"POST /v1%2fmessages HTTP/1.1\r\n" + KEY + b"Content-Length: 2\r\n\r\n{}",
    "escaped backslash": b"POST /v1%5cmessages HTTP/1.1\r\n" + KEY + b"Content-Length: 2\r\n\r\n{}",
    "dot segments out": b"GET /v1/models/../../healthz/x HTTP/1.1\r\n" + KEY + b"\r\n",
    "escaped dots": b"PUT /results/%2e%2e/tree.jsonl HTTP/1.1\r\n" + KEY + b"Content-Length: 0\r\n\r\n",
    "read a result": b"GET /results/att-7/tree.jsonl HTTP/1.1\r\n" + KEY + b"\r\n",
    "list results": b"GET /results/ HTTP/1.1\r\n" + KEY + b"\r\n",
    "upper case result": b"PUT /results/ATT/tree.jsonl HTTP/1.1\r\n" + KEY + b"Content-Length: 0\r\n\r\n",
    "deep result": b"PUT /results/att-7/a/b HTTP/1.1\r\n" + KEY + b"Content-Length: 0\r\n\r\n",
    "websocket": b"GET /v1/responses HTTP/1.1\r\n" + KEY + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    "http/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "http/1.0": b"GET /healthz HTTP/1.0\r\n\r\n",
    "options": b"OPTIONS * HTTP/1.1\r\n" + KEY + b"\r\n",
    "two lengths": b"POST /v1/messages HTTP/1.1\r\n" + KEY + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "length and chunked": b"POST /v1/messages HTTP/1.1\r\n"
    + KEY
    + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "header with an underscore": b"GET /v1/models HTTP/1.1\r\n" + KEY + b"x_api_key: token-3\r\n\r\n",
    "admin": b"GET /config_dump HTTP/1.1\r\n" + KEY + b"\r\n",
    "health of the meter": b"GET /healthz/ HTTP/1.1\r\n" + KEY + b"\r\n",
}


@pytest.mark.parametrize("form", sorted(FORBIDDEN))
def test_every_other_form_is_refused(chain: Chain, form: str) -> None:
    chain.meter.open(3, dialect="anthropic")
    before = len(chain.upstream.received)
    answer = raw_call(chain.socket, FORBIDDEN[form])
    status = int(answer.split(b" ", 2)[1])
    assert status in (400, 403, 404, 426), answer
    assert len(chain.upstream.received) == before
    assert not chain.meter.account(3).requests


def test_bodies_over_the_cap_of_their_flow_are_refused(chain: Chain) -> None:
    head = b"POST /v1/messages HTTP/1.1\r\n" + KEY + f"Content-Length: {33 * 2**20}\r\n\r\n".encode()
    answer = raw_call(chain.socket, head + b"x" * (33 * 2**20))
    assert answer.startswith(b"HTTP/1.1 413") or answer == b""
    assert not chain.meter.account(3).requests


def test_the_access_log_names_forms_and_no_secrets(chain: Chain) -> None:
    call(chain.socket, "GET", "/v1/models?limit=secret-in-query", headers={"x-api-key": "token-secret"})
    deadline = time.monotonic() + READY_SECONDS_MAX
    while b'"path":"/v1/models"' not in (log := chain.access_log.read_bytes()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert b"secret" not in log and b"token-" not in log
    first = json.loads(log.splitlines()[0])
    assert {"at", "method", "path", "status", "route"} <= set(first)


def test_a_wrong_configuration_is_refused_in_envoys_words(tmp_path: Path) -> None:
    proxy = EgressProxy(FLOWS, listen=tmp_path / "a", meter=tmp_path / "b", results=tmp_path / "c")
    config = tmp_path / "envoy.json"
    config.write_text(json.dumps(proxy.config() | {"surprise": True}))
    with pytest.raises(InvalidInput, match="surprise"):
        proxy.validate(config)
    with pytest.raises(InvalidInput, match="107"):
        EgressProxy(FLOWS, listen=tmp_path / ("x" * 120), meter=tmp_path / "b", results=tmp_path / "c")
