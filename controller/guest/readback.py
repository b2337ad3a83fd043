"""Read every limit and every wall back from inside the container: what holds, not what was asked for."""

from __future__ import annotations

import os

CGROUP = "/sys/fs/cgroup"


def read_text(path: str, bytes_max: int = 1 << 16) -> str | None:
    """The start of a small kernel file without its last newline, or None when it can't be read."""
    try:
        with open(path, "rb") as file:
            return file.read(bytes_max).decode("ascii", "replace").rstrip("\n")
    except OSError:
        return None


def cgroup_limits(root: str = CGROUP) -> dict[str, str | None]:
    """cpu, memory, swap and process limits as the kernel prints them; None for one that can't be read.

    Control groups of version 1 are read too and told in the words of version 2.
    """
    if not os.path.exists(os.path.join(root, "cgroup.controllers")):
        return _limits_v1(root)
    return {
        "cpu_max": read_text(os.path.join(root, "cpu.max")),
        "memory_max": read_text(os.path.join(root, "memory.max")),
        "memory_swap_max": read_text(os.path.join(root, "memory.swap.max")),
        "pids_max": read_text(os.path.join(root, "pids.max")),
    }


def _limits_v1(root: str) -> dict[str, str | None]:
    quota = read_text(os.path.join(root, "cpu/cpu.cfs_quota_us"))
    period = read_text(os.path.join(root, "cpu/cpu.cfs_period_us"))
    memory = read_text(os.path.join(root, "memory/memory.limit_in_bytes"))
    both = read_text(os.path.join(root, "memory/memory.memsw.limit_in_bytes"))
    return {
        "cpu_max": None if quota is None or period is None else f"{quota} {period}",
        "memory_max": memory,
        "memory_swap_max": None if memory is None or both is None else str(int(both) - int(memory)),
        "pids_max": read_text(os.path.join(root, "pids/pids.max")),
    }


def cgroup_peaks(root: str = CGROUP) -> dict[str, int | None]:
    """Highest memory and process counts, and how often the kernel killed for memory; None where it doesn't say."""
    events = readings(os.path.join(root, "memory.events"))
    if not events:
        events = readings(os.path.join(root, "memory/memory.oom_control"))
    peak = read_text(os.path.join(root, "memory.peak")) or read_text(
        os.path.join(root, "memory/memory.max_usage_in_bytes")
    )
    return {
        "processes_peak": _number(
            read_text(os.path.join(root, "pids.peak")) or read_text(os.path.join(root, "pids/pids.peak"))
        ),
        "memory_peak_bytes": _number(peak),
        "oom_kills": _number(events.get("oom_kill")),
    }


def readings(path: str) -> dict[str, str]:
    """A kernel file of `name value` lines."""
    return dict(line.split(" ", 1) for line in (read_text(path) or "").splitlines() if " " in line)


def network(root: str = "/") -> dict[str, object]:
    """Interfaces, routes and resolvers of this network namespace. Routes of the loopback interface are no way out."""
    devices = (read_text(os.path.join(root, "proc/net/dev")) or "").splitlines()[2:]
    routes = (read_text(os.path.join(root, "proc/net/route")) or "").splitlines()[1:]
    routes_ipv6 = (read_text(os.path.join(root, "proc/net/ipv6_route")) or "").splitlines()
    resolver = (read_text(os.path.join(root, "etc/resolv.conf")) or "").splitlines()
    return {
        "interfaces": sorted(line.split(":", 1)[0].strip() for line in devices if ":" in line),
        "routes": len([line for line in routes if line.split()[:1] not in ([], ["lo"])])
        + len([line for line in routes_ipv6 if line.split()[-1:] not in ([], ["lo"])]),
        "resolvers": len([line for line in resolver if line.split()[:1] == ["nameserver"]]),
    }


def process_walls() -> dict[str, object]:
    """What the kernel says of the calling process: user, capabilities, whether it may gain any, system-call filter."""
    status = dict(line.split(":", 1) for line in (read_text("/proc/self/status") or "").splitlines() if ":" in line)
    return {
        "uid": os.getuid(),
        "gid": os.getgid(),
        "groups": len(os.getgroups()),
        "capabilities": status.get("CapEff", "?").strip(),
        "no_new_privs": status.get("NoNewPrivs", "?").strip(),
        "seccomp": status.get("Seccomp", "?").strip(),
    }


def disk_bytes(path: str) -> int:
    """Size of the file system that holds `path`."""
    status = os.statvfs(path)
    return status.f_frsize * status.f_blocks


def entries(path: str) -> list[str]:
    """What a directory that should be empty holds: at most 20 names."""
    return sorted(os.listdir(path))[:20]


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
