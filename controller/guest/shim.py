"""The first process of a harness container: prove the walls, run the harness once, hand in what it left.

    order  ->  relay  ->  read back limits  ->  probe as the harness's user  ->  receipt
           ->  harness, at most `agent_seconds`  ->  kill everything  ->  walk the workspace  ->  upload

Exit codes: 0 everything is handed in; 96 this order was started before; 97 a limit or a wall is not what it must be, so
the harness was not started; 98 the result service did not take an artifact; 99 the order can't be carried out.
"""

from __future__ import annotations

import binascii
import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from controller.guest import harvest, probes, readback, relay, supervise, upload
from controller.guest.read_regular import open_regular

ORDER_DIR = "/run/fairtrial/order"
STATUS = "/run/fairtrial/state/status"
SOCKET = "/run/fairtrial/egress.sock"
WORKSPACE, HOME = "/workspace", "/home/agent"
AGENT_UID, RELAY_UID = 1000, 1001
RELAY_PORT = 8080
DISK = "disk_bytes"  # an upper bound; every other wall must be found exactly as expected

ORDER_SCHEMA, RECEIPT_SCHEMA = "fairtrial.order/1", "fairtrial.receipt/1"
EXIT_SCHEMA, REPORT_SCHEMA = "fairtrial.exit/1", "fairtrial.self-report/1"
STARTED, ENDED = b"started    \n", b"ended %5d\n"
DONE, STARTED_BEFORE, MISMATCH, UPLOAD_FAILED, BROKEN = 0, 96, 97, 98, 99

PROBE_SECONDS = 1.5
ALLOWED_SECONDS_MAX = 30.0
SETUP_SECONDS_MAX = 60.0
KILL_SECONDS_MAX = 60.0
COMMIT_DATE = "2000-01-01T00:00:00Z"


class Broken(Exception):
    """The order can't be carried out."""


class Phases:
    """How long each part took, in whole milliseconds."""

    def __init__(self) -> None:
        self.ms: dict[str, int] = {}
        self._since = time.monotonic()

    def end(self, name: str) -> None:
        now = time.monotonic()
        self.ms[name] = int((now - self._since) * 1000)
        self._since = now


def main() -> int:
    """Carry out the order of this container; the exit code says what became of it."""
    if os.getpid() != 1:
        print("the shim runs as the first process of a container only", file=sys.stderr)
        return BROKEN
    try:
        status = os.open(STATUS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return STARTED_BEFORE
    os.write(status, STARTED)
    os.fsync(status)
    code = BROKEN
    try:
        with open(os.path.join(ORDER_DIR, "order.json"), encoding="utf-8") as file:
            order = json.load(file)
        if order.get("schema_version") != ORDER_SCHEMA:
            raise Broken(f"this shim carries out {ORDER_SCHEMA}")
        code = carry_out(order)
    except upload.UploadRefused as error:
        code = UPLOAD_FAILED
        print(error, file=sys.stderr)
    except (Broken, OSError, KeyError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    # In place: a full disk can't refuse it, because the block is already there.
    os.pwrite(status, ENDED % code, 0)
    os.fsync(status)
    return code


def carry_out(order: dict[str, Any]) -> int:
    """The order from receipt to upload. Raises UploadRefused, Broken or OSError."""

    def hand_in(name: str, data: bytes) -> None:
        upload.put(SOCKET, order["attempt_id"], name, order["upload_token"], data)

    phases = Phases()
    relay_pid = start_relay()
    receipt = prove(order, phases)
    hand_in("receipt.json", encode(receipt))
    if receipt["mismatches"]:
        return MISMATCH
    phases.end("receipt")
    run = order["contract"]
    as_agent(lambda: write_home(run["files"]), SETUP_SECONDS_MAX)
    log = supervise.BoundedLog(order["log_bytes_max"])
    started = time.monotonic()
    pid, output = supervise.start(
        run["argv"], run["env"], uid=AGENT_UID, directory=WORKSPACE, stdin=run["stdin"].encode("utf-8")
    )
    code, others = supervise.watch(pid, output, log, seconds=order["agent_seconds"])
    wall_ms = int((time.monotonic() - started) * 1000)
    phases.end("harness")
    peaks = readback.cgroup_peaks()
    if not supervise.kill_everyone(KILL_SECONDS_MAX):
        raise Broken("a process of the harness can't be killed")
    supervise.drain(output, log, chunks_max=1024)
    phases.end("kill")
    limits = harvest.Limits(order["tree_bytes_max"], order["tree_entries_max"], order["file_bytes_max"])
    tree, tree_truncated = harvest.harvest(WORKSPACE, limits)
    phases.end("harvest")
    hand_in("tree.jsonl", tree)
    hand_in("harness.log", log.data())
    hand_in("self-report.json", encode(reports(run["report_paths"], order["report_bytes_max"])))
    phases.end("upload")
    ended = {
        "exit_code": code,
        "timed_out": code is None,
        "wall_ms": wall_ms,
        **peaks,
        "log_truncated": log.is_truncated,
        "tree_truncated": tree_truncated,
    }
    relay_exit = others.get(relay_pid)
    hand_in(
        "exit.json",
        encode({"schema_version": EXIT_SCHEMA, "exit": ended, "relay_exit": relay_exit, "phases_ms": phases.ms}),
    )
    return DONE


def start_relay() -> int:
    """The loopback port that leads to the socket, served by a child under a user of its own. Returns its pid."""
    listener = relay.listen(RELAY_PORT)
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            supervise.become(RELAY_UID)
            relay.serve(listener, SOCKET)
        finally:
            os._exit(1)
    listener.close()
    return pid


def prove(order: dict[str, Any], phases: Phases) -> dict[str, Any]:
    """The isolation receipt: what holds inside this container, read back and tried out."""
    home = readback.entries(HOME)
    leftovers = readback.entries(WORKSPACE)
    for directory in (WORKSPACE, HOME):
        os.chown(directory, AGENT_UID, AGENT_UID)
    limits: dict[str, Any] = dict(readback.cgroup_limits())
    limits[DISK] = readback.disk_bytes(WORKSPACE)
    network = readback.network()
    phases.end("read-back")
    tried = as_agent(lambda: try_out(order["probes"]), SETUP_SECONDS_MAX)
    phases.end("probes")
    found = {**limits, **network, **tried["walls"], "home": home, "workspace": leftovers, "allowed": tried["allowed"]}
    unenforced = (readback.read_text(os.path.join(ORDER_DIR, "unenforced")) or "").split()
    expected = {name: value for name, value in order["expected"].items() if name not in unenforced}
    receipt = {
        "schema_version": RECEIPT_SCHEMA,
        "attempt_id": order["attempt_id"],
        "found": found,
        "probes": tried["probes"],
        "unenforced": unenforced,
        "mismatches": mismatches(expected, found, tried["probes"]),
    }
    if not receipt["mismatches"]:
        fill_workspace()
        phases.end("workspace")
    receipt["phases_ms"] = dict(phases.ms)
    return receipt


def try_out(wanted: list[dict[str, Any]]) -> dict[str, Any]:
    """What the harness's user is, what it can reach, and whether the one allowed path answers it."""
    allowed = 0
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.settimeout(ALLOWED_SECONDS_MAX)
        with contextlib.suppress(OSError):
            connection.connect(("127.0.0.1", RELAY_PORT))
            upload.ask(connection, "/healthz")  # the answer comes from far; the probes need not wait for it
        outcomes = probes.run(wanted, PROBE_SECONDS)
        with contextlib.suppress(OSError):
            allowed = upload.answered(connection)
    return {"walls": readback.process_walls(), "probes": outcomes, "allowed": allowed}


def mismatches(expected: dict[str, Any], found: dict[str, Any], tried: list[dict[str, Any]]) -> list[str]:
    """Everything that is not as ordered. The controller draws the same list from the same receipt."""
    faults = [
        f"{name}: expected {json.dumps(value)}, found {json.dumps(found.get(name))}"
        for name, value in sorted(expected.items())
        if found.get(name) != value and name != DISK
    ]
    if DISK in expected and found[DISK] > expected[DISK]:
        faults.append(f"{DISK}: expected at most {expected[DISK]}, found {found[DISK]}")
    for probe in tried:
        if probe["outcome"] != "refused":
            faults.append(f"probe {probe['name']}: {probe['outcome']}, {probe['detail']}")
    return faults


def fill_workspace() -> None:
    """Unpack the base as the harness's user, as one commit without history unless the archive brings its own."""
    archive = os.open(os.path.join(ORDER_DIR, "workspace.tar"), os.O_RDONLY)

    def unpack() -> None:
        os.dup2(archive, 0)
        os.execv("/bin/tar", ["tar", "-x", "-C", WORKSPACE, "--no-same-owner", "-f", "-"])  # noqa: S606

    as_agent(unpack, SETUP_SECONDS_MAX)
    os.close(archive)
    if os.path.isdir(os.path.join(WORKSPACE, ".git")):
        return
    script = "git init -q -b main . && git add -A && git commit -q --allow-empty -m base"
    identity = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in
                (("NAME", "base"), ("EMAIL", "base@invalid"), ("DATE", COMMIT_DATE))}  # fmt: skip
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", **identity}

    def commit() -> None:
        os.chdir(WORKSPACE)
        os.execve("/bin/sh", ["sh", "-c", script], env)  # noqa: S606

    as_agent(commit, SETUP_SECONDS_MAX)


def write_home(files: dict[str, str]) -> None:
    """The contract's files, below the clean home."""
    os.umask(0o077)
    for path, text in sorted(files.items()):
        target = os.path.join(HOME, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "x", encoding="utf-8") as file:
            file.write(text)


def as_agent(action: Callable[[], Any], seconds: float) -> Any:
    """Run `action` in a child as the harness's user and return what it returned, through JSON.

    Raises Broken when it fails or takes longer than `seconds`.
    """
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(source)
            supervise.become(AGENT_UID)
            with os.fdopen(sink, "wb") as out:
                out.write(json.dumps(action()).encode("ascii"))
            code = 0
        except BaseException as error:  # whatever happens, this child must not run the shim's code
            os.write(2, f"fairtrial: {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)
    os.close(sink)
    answer = b""
    deadline = time.monotonic() + seconds
    with os.fdopen(source, "rb", buffering=0) as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                break
            chunk = pipe.read(1 << 16)
            if not chunk:
                break
            answer += chunk
    ended = wait_until(pid, deadline)
    if ended != 0:
        raise Broken(f"a step as the harness's user ended with {ended}: the time was over, or see above")
    return json.loads(answer) if answer else None


def wait_until(pid: int, deadline: float) -> int | None:
    """Exit code of a child; it is killed when it is still there at the deadline (None)."""
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def reports(paths: list[str], bytes_max: int) -> dict[str, Any]:
    """The harness's own account of itself: raw bytes by path, files that are absent, odd or too large left out."""
    files: dict[str, str] = {}
    room = bytes_max
    for path in paths:
        try:
            with os.fdopen(open_regular(os.path.join(HOME, path)), "rb") as file:
                data = file.read(room + 1)
        except OSError:
            continue
        if len(data) <= room:
            room -= len(data)
            files[path] = binascii.b2a_base64(data, newline=False).decode("ascii")
    return {"schema_version": REPORT_SCHEMA, "files": files}


def encode(value: dict[str, Any]) -> bytes:
    """JSON with sorted keys, ASCII only, one line."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n"
