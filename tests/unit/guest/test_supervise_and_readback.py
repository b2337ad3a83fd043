"""The log keeps both ends, both kinds of control groups tell limits alike, probes report the kernel's word."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from controller.guest import probes, readback, supervise
from controller.guest.supervise import BoundedLog


def write(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


def test_a_short_log_is_kept_whole() -> None:
    log = BoundedLog(1000)
    log.add(b"a" * 500)
    log.add(b"b" * 300)
    assert (log.data(), log.is_truncated) == (b"a" * 500 + b"b" * 300, False)


@pytest.mark.parametrize("step", [1, 7, 333, 5000])
def test_a_long_log_keeps_both_ends_within_its_limit(step: int) -> None:
    whole = b"".join(b"%06d\n" % number for number in range(3000))
    log = BoundedLog(4096)
    for start in range(0, len(whole), step):
        log.add(whole[start : start + step])
    kept = log.data()
    assert len(kept) <= 4096
    assert log.is_truncated
    head, _, tail = kept.partition(b"\n[fairtrial: ")
    left_out, _, tail = tail.partition(b" bytes left out]\n")
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert int(left_out) == len(whole) - len(head) - len(tail)


def test_the_shim_kills_all_others_only_as_the_first_process() -> None:
    with pytest.raises(RuntimeError, match="first process"):
        supervise.kill_everyone(1.0)


def test_both_kinds_of_control_groups_tell_the_same(tmp_path: Path) -> None:
    expected = {"cpu_max": "300000 100000", "memory_max": "512", "memory_swap_max": "0", "pids_max": "64"}
    new = {"cpu.max": "300000 100000\n", "memory.max": "512\n", "memory.swap.max": "0\n", "pids.max": "64\n"}
    old = {
        "cpu/cpu.cfs_quota_us": "300000\n",
        "cpu/cpu.cfs_period_us": "100000\n",
        "memory/memory.limit_in_bytes": "512\n",
        "memory/memory.memsw.limit_in_bytes": "512\n",
        "pids/pids.max": "64\n",
    }
    assert readback.cgroup_limits(write(tmp_path / "new", {"cgroup.controllers": "", **new})) == expected
    assert readback.cgroup_limits(write(tmp_path / "old", old)) == expected
    assert set(readback.cgroup_limits(str(tmp_path / "none")).values()) == {None}


def test_peaks_are_none_where_the_kernel_does_not_count(tmp_path: Path) -> None:
    files = {"memory.peak": "9\n", "memory.events": "low 0\noom 1\noom_kill 2\n"}
    assert readback.cgroup_peaks(write(tmp_path, files)) == {
        "processes_peak": None,
        "memory_peak_bytes": 9,
        "oom_kills": 2,
    }


def test_interfaces_routes_and_resolvers_are_counted(tmp_path: Path) -> None:
    head = "Inter-|\n face |\n"
    files = {
        "proc/net/dev": head + "    lo: 0 0\n  eth0: 1 2\n",
        "proc/net/route": "Iface Destination\neth0 00000000\n",
        "proc/net/ipv6_route": "00 00 lo\n00 00 eth0\n",
        "etc/resolv.conf": "# none\nnameserver 9.9.9.9\n",
    }
    found = readback.network(write(tmp_path, files))
    assert found == {"interfaces": ["eth0", "lo"], "routes": 2, "resolvers": 1}


def test_a_probe_tells_a_refusal_from_an_answer() -> None:
    with socket.socket() as listener, socket.socket() as closed:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        closed.bind(("127.0.0.1", 0))
        wanted = [
            {"name": "open", "kind": "tcp", "host": "127.0.0.1", "port": listener.getsockname()[1]},
            {"name": "shut", "kind": "tcp", "host": "127.0.0.1", "port": closed.getsockname()[1]},
            {"name": "name", "kind": "name", "host": "localhost", "port": 0},
        ]
        found = {row["name"]: (row["outcome"], row["detail"]) for row in probes.run(wanted, 1.0)}
    assert found["open"][0] == "reached"
    assert found["shut"] == ("refused", "ECONNREFUSED")
    assert found["name"][0] == "reached"


def test_silence_is_not_a_refusal() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        wanted = [{"name": "udp", "kind": "udp", "host": "127.0.0.1", "port": silent.getsockname()[1]}]
        assert probes.run(wanted, 0.05)[0]["outcome"] == "silent"


def test_reading_a_kernel_file_that_is_absent_gives_none(tmp_path: Path) -> None:
    assert readback.read_text(str(tmp_path / "absent")) is None
    assert readback.entries(str(tmp_path)) == []
    assert readback.disk_bytes(str(tmp_path)) == os.statvfs(tmp_path).f_frsize * os.statvfs(tmp_path).f_blocks
