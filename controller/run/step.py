"""Push the order, run the container, and read the artifacts back from the store."""

from __future__ import annotations

import base64
import binascii
import io
import json
import marshal
import tarfile
import zipfile
from functools import cache
from importlib import resources
from importlib.util import MAGIC_NUMBER, source_hash
from typing import Final, TypeVar

from pydantic import ValidationError

from controller.domain.ids import AttemptId, sha256_digest
from controller.domain.limits import ArtifactLimits
from controller.domain.receipt import Collected, ExitReport, IsolationReceipt, RunOrder, RunResult
from controller.domain.record import field_faults
from controller.errors import SandboxLost
from controller.guest.shim import REPORT_SCHEMA
from controller.ports.containers import ContainerSpec, Mount
from controller.ports.ledger import Artifacts
from controller.ports.pool import Sandbox
from controller.run import rules

SHIM_MODULES: Final = (
    "__init__",
    "harvest",
    "probes",
    "read_regular",
    "readback",
    "relay",
    "shim",
    "supervise",
    "upload",
)
SHIM_PATH: Final = "/run/fairtrial/order/shim.pyz"
SHIM_START: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); from controller.guest.shim import main; sys.exit(main())"
)
SHIM_ARGV: Final = ("/usr/bin/python3", "-I", "-S", "-c", SHIM_START, SHIM_PATH)
PUSH_SECONDS_MAX: Final = 300.0

# Run by the machine's root: $1 is the attempt. A machine may say otherwise where its scratch disk and its way out are,
# and which limits it does not enforce; one that lists any is fit for rehearsals only, and the receipt says so.
# An order that is already there is left alone, so that a controller that starts again finds what it left.
PREPARE: Final = """set -eu
base="${FAIRTRIAL_SCRATCH:-/scratch/attempt}/$1"
if [ ! -e "$base/ready" ]; then
  rm -rf "$base"
  mkdir -p "$base"
  tar -x -C "$base" -f -
  mkdir "$base/workspace" "$base/home" "$base/state"
  printf '%s' "${FAIRTRIAL_UNENFORCED:-}" > "$base/order/unenforced"
  chmod 0700 "$base/order" "$base/state"
  chown -R "${FAIRTRIAL_OWNER:-runner:runner}" "$base"
  : > "$base/ready"
else
  cat > /dev/null
fi
printf '%s\\n' "$base" "${FAIRTRIAL_EGRESS:-/run/fairtrial/egress.sock}"
cat "$base/state/status" 2> /dev/null || :
"""

Parsed = TypeVar("Parsed", IsolationReceipt, ExitReport)


def execute(sandbox: Sandbox, order: RunOrder) -> RunResult:
    """Carry the order out and wait for its end; its artifacts are then in the store, or the result says why not.

    Safe to call again for the same machine: an order that has ended is not started again, one that runs is waited for.
    Raises SandboxLost when the machine or its engine failed, or the shim could not do its part.
    """
    argv = ("sh", "-c", PREPARE, "prepare", order.attempt_id)
    prepared = sandbox.exec(argv, stdin=order_archive(order), timeout_seconds=PUSH_SECONDS_MAX)
    lines = prepared.stdout.decode("utf-8", "replace").splitlines()
    if prepared.exit_code != 0 or len(lines) < 2:
        raise SandboxLost(f"{order.attempt_id}: the order could not be pushed: {_text(prepared.stderr)}")
    words = lines[2].split() if len(lines) > 2 else []
    if words[:1] == ["ended"]:
        result = RunResult(exit_code=int(words[1]), oom_killed=False, output="")
    else:
        with sandbox.containers() as containers:
            deadline = float(order.limits.agent_seconds + rules.OVERHEAD_SECONDS_MAX)
            ended = containers.run(container_spec(order, lines[0], lines[1]), timeout_seconds=deadline)
        result = RunResult(exit_code=ended.exit_code, oom_killed=ended.oom_killed, output=_text(ended.output))
    fault = rules.shim_fault(result.exit_code)
    if fault is not None:
        raise SandboxLost(f"{order.attempt_id}: {fault}: {result.output or 'it said nothing'}")
    return result


def container_spec(order: RunOrder, base: str, egress_socket: str) -> ContainerSpec:
    """The container of one attempt: its order read-only, its disk fresh, one socket that leads out."""
    mounts = (
        Mount(source=f"{base}/order", target="/run/fairtrial/order", writable=False),
        Mount(source=f"{base}/state", target="/run/fairtrial/state", writable=True),
        Mount(source=egress_socket, target="/run/fairtrial/egress.sock", writable=True),
        Mount(source=f"{base}/workspace", target="/workspace", writable=True),
        Mount(source=f"{base}/home", target="/home/agent", writable=True),
        Mount(source=f"{base}/order/resolv.conf", target="/etc/resolv.conf", writable=False),
        Mount(source=f"{base}/order/hosts", target="/etc/hosts", writable=False),
    )
    return ContainerSpec(
        name=order.attempt_id,
        image=order.image,
        argv=SHIM_ARGV,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        mounts=mounts,
        limits=order.limits,
        seccomp_profile=f"{base}/order/seccomp.json",
    )


def order_archive(order: RunOrder) -> bytes:
    """The tar of an order's directory: the shim, what it is to do, the base, and names that resolve nowhere."""
    files = {
        "order/order.json": json.dumps(rules.order_json(order), sort_keys=True).encode(),
        "order/shim.pyz": shim_archive(),
        "order/workspace.tar": order.workspace_tar,
        "order/resolv.conf": b"",
        "order/hosts": b"127.0.0.1 localhost\n",
        "order/seccomp.json": resources.files("controller.run").joinpath("seccomp.json").read_bytes(),
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.mode = 0o444 if name.endswith(("hosts", "resolv.conf")) else 0o400
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


@cache
def shim_archive() -> bytes:
    """The shim as one file to import from: sources, and their bytecode for a Python like ours.

    Any other Python passes over the bytecode, by its magic number. Compiling takes seconds in an emulated machine.
    """
    out = io.BytesIO()
    package = resources.files("controller.guest")
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("controller/__init__.py"), b"")
        for module in SHIM_MODULES:
            source = package.joinpath(f"{module}.py").read_bytes()
            path = f"controller/guest/{module}.py"
            archive.writestr(zipfile.ZipInfo(path), source)
            archive.writestr(zipfile.ZipInfo(f"{path}c"), _bytecode(source, path))
    return out.getvalue()


def _bytecode(source: bytes, path: str) -> bytes:
    """What a `.pyc` file holds whose source need not be looked at again (PEP 552)."""
    code = marshal.dumps(compile(source, path, "exec", dont_inherit=True))
    return MAGIC_NUMBER + (1).to_bytes(4, "little") + source_hash(source) + code


def collect(artifacts: Artifacts, attempt_id: AttemptId, limits: ArtifactLimits) -> Collected:
    """What the attempt handed in, parsed strictly. A piece that is absent or malformed is named in `missing`."""
    sizes = rules.artifact_sizes(limits)
    there = {stored.name for stored in artifacts.list(attempt_id)}
    raw = {name: artifacts.read(attempt_id, name, bytes_max=sizes[name]) for name in sizes if name in there}
    missing = [f"{name}: not handed in" for name in sizes if name not in there]
    receipt = _parsed(IsolationReceipt, raw, rules.RECEIPT, missing)
    if receipt is not None and receipt.attempt_id != attempt_id:
        missing.append(f"{rules.RECEIPT}: it is the receipt of {receipt.attempt_id[:80]!r}")
        receipt = None
    report = _parsed(ExitReport, raw, rules.LAST_ARTIFACT, missing)
    return Collected(
        receipt=receipt,
        receipt_digest=sha256_digest(raw[rules.RECEIPT]) if rules.RECEIPT in raw else None,
        exit=report.exit if report else None,
        relay_exit=report.relay_exit if report else None,
        tree=raw.get(rules.TREE),
        log=raw.get(rules.LOG, b""),
        reports=_reports(raw, missing),
        missing=tuple(missing),
    )


def _parsed(kind: type[Parsed], raw: dict[str, bytes], name: str, missing: list[str]) -> Parsed | None:
    if name not in raw:
        return None
    try:
        return kind.model_validate_json(raw[name])
    except ValidationError as error:
        missing.append(f"{name}: {field_faults(error)[0]}")
        return None


def _reports(raw: dict[str, bytes], missing: list[str]) -> dict[str, bytes]:
    if rules.REPORT not in raw:
        return {}
    try:
        fields = json.loads(raw[rules.REPORT])
        if fields["schema_version"] != REPORT_SCHEMA:
            raise ValueError(f"it must be {REPORT_SCHEMA}")
        return {str(path): base64.b64decode(text, validate=True) for path, text in fields["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error) as error:
        missing.append(f"{rules.REPORT}: {error}")
        return {}


def _text(data: bytes) -> str:
    return data[-2000:].decode("utf-8", "replace").strip()
