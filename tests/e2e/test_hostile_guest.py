"""Hostile scripts in place of a harness, in real containers: none escapes, forges, reads a secret, stops the shim."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from controller.domain.limits import SpendLimits
from controller.domain.outcome import EndKind
from controller.domain.receipt import ProbeOutcome
from controller.domain.tree_stream import parse_tree_stream
from controller.domain.usage import AttemptAccount
from controller.errors import SandboxLost
from controller.run import execute, judge_end
from tests.world.harness_box import BASE, LIMITS, TOKEN, HarnessBox, Outcome, harness_box

pytestmark = pytest.mark.vm

FORK_BOMB = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try:
        os.fork()
    except OSError:
        pass
"""

REACH = """
import socket, sys
for family, host, port in ((2, "169.254.169.254", 80), (2, "10.0.2.2", 22), (2, "10.0.2.100", 8080),
                           (2, "1.1.1.1", 53), (2, "127.0.0.1", 22), (10, "2606:4700:4700::1111", 443)):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            sock = socket.socket(family, kind)
            sock.settimeout(2)
            sock.connect((host, port))
            if kind == socket.SOCK_STREAM or host != "127.0.0.1":
                print("REACHED", host, port)
        except OSError as error:
            print("refused", host, port, error)
try:
    print("REACHED", socket.getaddrinfo("example.com", 80))
except OSError as error:
    print("refused name", error)
"""

FORGE = """
import socket
body = b'{"schema_version":"fairtrial.exit/1"}'
for token in ("rt_run-token", "up_guess", ""):
    for name in ("exit.json", "receipt.json", "tree.jsonl"):
        lines = (f"PUT /results/ATTEMPT/{name} HTTP/1.1", "Host: x", f"Authorization: Bearer {token}",
                 "Connection: close", f"Content-Length: {len(body)}", "", "")
        sock = socket.create_connection(("127.0.0.1", 8080))
        sock.sendall("\\r\\n".join(lines).encode() + body)
        print(name, sock.recv(100).split(b"\\r\\n")[0].decode())
"""

TRICKS = r"""
ln -s /run/fairtrial/order/order.json order-link; ln -s ../../etc/shadow src/shadow; ln -s . loop
mkfifo pipe; ln a.py twin; mkdir -p nested/.git && echo x > nested/.git/config; mkdir .GIT && echo x > .GIT/config
python3 -c "
import os, socket
open(b'bad\xff', 'w').close()
open('back\\\\slash', 'w').close()
socket.socket(socket.AF_UNIX).bind('sock')
"
echo secret > locked; chmod 000 locked; mkdir closed; echo in > closed/file; chmod 000 closed
mkdir deep; cd deep; for n in $(seq 100); do mkdir d; cd d; done; echo x > bottom
"""


@pytest.fixture(scope="module", params=["podman", "qemu"])
def box(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HarnessBox]:
    with harness_box(request.param, tmp_path_factory.mktemp("box")) as made:
        yield made


def end_of(outcome: Outcome) -> EndKind:
    account = AttemptAccount.model_validate({"attempt_id": "a", "requests": (), "refusals": (), "open": False})
    return judge_end(outcome.collected, outcome.mismatches, account, SpendLimits())[0]


def test_a_quiet_harness_hands_in_everything(box: HarnessBox) -> None:
    outcome = box.run('cat; echo; id -u; git log --format=%s; echo new > new.txt; echo "{}" > ~/report.json')
    assert outcome.log.splitlines() == ["the prompt", "1000", "base"]
    assert outcome.collected.tree is not None
    harvested = parse_tree_stream(outcome.collected.tree, LIMITS)
    assert {path: file.data for path, file in harvested.tree.items()} == {**BASE, "new.txt": b"new\n"}
    assert outcome.collected.reports == {"report.json": b"{}\n"}
    assert end_of(outcome) is EndKind.NORMAL
    receipt = outcome.collected.receipt
    assert receipt is not None
    assert receipt.refused == len(receipt.probes) >= 20


def test_a_container_and_an_order_are_used_once(box: HarnessBox) -> None:
    order = box.order("echo once")
    first = box.carry_out(order)
    again = box.carry_out(order)
    assert (first.result.exit_code, again.result.exit_code) == (0, 0)
    assert first.collected == again.collected


def test_the_hard_limit_ends_a_fork_bomb_and_leaves_no_process(box: HarnessBox) -> None:
    outcome = box.run(f"python3 -c '{FORK_BOMB}' & sleep 1000", seconds=5)
    assert end_of(outcome) is EndKind.TIMEOUT
    assert outcome.collected.exit is not None
    assert outcome.collected.exit.wall_ms >= 5000
    assert outcome.collected.relay_exit is None


def test_no_address_and_no_name_is_reached(box: HarnessBox) -> None:
    outcome = box.run(f"python3 -c '{REACH}'")
    assert "REACHED" not in outcome.log
    assert outcome.log.count("refused") >= 12


def test_artifacts_cannot_be_forged(box: HarnessBox) -> None:
    order = box.order("")
    script = FORGE.replace("ATTEMPT", order.attempt_id)
    contract = order.contract.model_copy(update={"argv": ("python3", "-c", script)})
    outcome = box.carry_out(order.model_copy(update={"contract": contract}))
    assert outcome.collected.missing == ()
    assert outcome.log.count("403") == 9
    assert end_of(outcome) is EndKind.NORMAL


def test_the_upload_token_is_not_readable(box: HarnessBox) -> None:
    outcome = box.run(
        "cat /run/fairtrial/order/* /run/fairtrial/state/* /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/1/mem;"
        "ls -la /run/fairtrial/order; grep -r up_ /run /tmp /etc 2>&1; cat /proc/1/fd/* ; echo end"
    )
    assert outcome.log.rstrip().endswith("end")
    assert TOKEN not in outcome.log
    assert "rt_run-token" in outcome.log


def test_the_harness_cannot_end_or_stop_the_shim_or_the_relay(box: HarnessBox) -> None:
    others = "for n in $(seq 2 200); do [ $n = $$ ] || kill -9 $n; done; kill -9 -1"  # -1 spares the one who asks
    outcome = box.run(f"kill -9 1; kill -STOP 1; kill -TERM 1; {others}; kill -9 $$")
    assert outcome.collected.exit is not None
    assert outcome.collected.exit.exit_code == 137
    assert outcome.collected.relay_exit is None
    assert end_of(outcome) is EndKind.HARNESS_CRASH


def test_a_daemon_does_not_outlive_the_harness(box: HarnessBox) -> None:
    outcome = box.run("(setsid nohup sh -c 'sleep 2; echo late > /workspace/late' &) ; setsid sleep 500 & exit 0")
    assert outcome.collected.tree is not None
    assert "late" not in parse_tree_stream(outcome.collected.tree, LIMITS).tree
    assert end_of(outcome) is EndKind.NORMAL


def test_tricks_in_the_workspace_are_named_and_followed_nowhere(box: HarnessBox) -> None:
    outcome = box.run(TRICKS)
    assert outcome.collected.tree is not None
    assert TOKEN.encode() not in outcome.collected.tree
    harvested = parse_tree_stream(outcome.collected.tree, LIMITS)
    assert harvested.tree["order-link"].data == b"/run/fairtrial/order/order.json"
    assert harvested.tree["src/shadow"].data == b"../../etc/shadow"
    assert harvested.tree["locked"].data == b"secret\n"
    assert harvested.tree["closed/file"].data == b"in\n"
    kinds = {special.path: special.kind for special in harvested.specials}
    assert kinds["pipe"] == "fifo"
    assert kinds["sock"] == "socket"
    assert kinds["a.py"] == kinds["twin"] == "hardlink"
    assert kinds["nested/.git"] == "nested-git"
    assert {"hex:" + b"bad\xff".hex(), "hex:" + b"back\\slash".hex(), "hex:" + b".GIT".hex()} <= kinds.keys()


def test_a_flood_of_output_is_cut_and_the_end_is_kept(box: HarnessBox) -> None:
    outcome = box.run("head -c 30000000 /dev/zero | tr '\\0' x; echo; echo the end")
    assert outcome.collected.exit is not None
    assert outcome.collected.exit.log_truncated
    assert len(outcome.collected.log) <= LIMITS.log_bytes_max
    assert outcome.log.endswith("the end\n")


def test_a_report_that_is_a_link_is_left_out(box: HarnessBox) -> None:
    assert box.run("ln -s /etc/passwd ~/report.json").collected.reports == {}


def test_memory_beyond_the_limit_kills_the_harness_and_not_the_shim(box: HarnessBox) -> None:
    script = "python3 -c 'b = []\nwhile True: b.append(bytearray(2**24))'"
    outcome = box.run(script, limits={"memory_bytes": 2**28})
    assert outcome.collected.exit is not None
    assert outcome.collected.exit.exit_code == 137
    assert (outcome.collected.exit.oom_kills or 0) >= 1
    assert end_of(outcome) is EndKind.HARNESS_CRASH


def test_an_oversized_workspace_is_a_truncated_tree(box: HarnessBox) -> None:
    outcome = box.run(f"head -c {LIMITS.file_bytes_max + 1} /dev/zero > zz-big")
    assert outcome.collected.tree is not None
    harvested = parse_tree_stream(outcome.collected.tree, LIMITS)
    assert (harvested.truncated, set(harvested.tree)) == (True, set(BASE))


def test_without_its_one_way_out_the_harness_is_not_started(box: HarnessBox) -> None:
    box.far_end.health = 503
    try:
        outcome = box.carry_out(box.order("echo started > /workspace/started"))
    finally:
        box.far_end.health = 200
    assert outcome.result.exit_code == 97
    assert outcome.mismatches == ("allowed: expected 200, found 503",)
    assert outcome.collected.exit is None
    assert end_of(outcome) is EndKind.INFRASTRUCTURE


def test_a_name_that_resolves_is_a_hole(box: HarnessBox) -> None:
    outcome = box.carry_out(box.order("true", probe_names=("localhost",)))
    assert outcome.mismatches == ("probe name-localhost: reached, 127.0.0.1",)
    assert outcome.collected.receipt is not None
    hole = ProbeOutcome(name="name-localhost", kind="name", outcome="reached", detail="127.0.0.1")
    assert hole in outcome.collected.receipt.probes


def test_an_order_that_died_half_way_is_not_started_again(box: HarnessBox) -> None:
    order = box.order("echo twice")
    box.carry_out(order)
    status = f"${{FAIRTRIAL_SCRATCH:-/scratch/attempt}}/{order.attempt_id}/state/status"
    assert box.sandbox.exec(["sh", "-c", f'echo started > "{status}"']).exit_code == 0
    with pytest.raises(SandboxLost, match="started before"):
        box.carry_out(order)


def test_a_full_disk_does_not_stop_the_uploads(box: HarnessBox) -> None:
    if box.isolation.value == "container":
        pytest.skip("the podman pool does not bound the disk")
    outcome = box.run("fallocate -l 30G .git/fill; cat /dev/zero > .git/rest; df /workspace; true")
    assert " 100% " in outcome.log
    assert outcome.collected.tree is not None
    assert set(parse_tree_stream(outcome.collected.tree, LIMITS).tree) == set(BASE)


def test_a_container_that_outlived_its_controller_is_waited_for(box: HarnessBox) -> None:
    if box.isolation.value == "vm":
        pytest.skip("an SSH connection does not survive a fork; the podman pool opens one per call")
    order = box.order("sleep 12; echo done")
    controller = os.fork()
    if controller == 0:
        try:
            execute(box.sandbox, order)
        finally:
            os._exit(0)
    status = f"/scratch/attempt/{order.attempt_id}/state/status"
    waiting = f'for i in $(seq 600); do test -e "{status}" && exit 0; sleep 0.1; done; exit 1'
    assert box.sandbox.exec(["sh", "-c", waiting], timeout_seconds=90).exit_code == 0
    os.kill(controller, signal.SIGKILL)
    os.waitpid(controller, 0)
    outcome = box.carry_out(order)
    assert (outcome.result.exit_code, outcome.log) == (0, "done\n")
