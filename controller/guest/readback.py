"""Read every limit and every wall back from inside the container: what holds, not what was asked for."""

from __future__ import annotations

import os

CGROUP = "/sys/fs/cgroup"
CGROUP_V1 = {"memory_max": "memory/memory.limit_in_bytes", "pids_max": "pids/pids.max"}


def read_text(path: str, bytes_max: int = 1 << 16) -> str | None:
    """The start of a small kernel file without its last newline, or None when it can't be read."""
    try:
        with open(path, "rb") as file:
            return file.read(bytes_max).decode("ascii", "replace").rstrip("\n")
    except OSError:
        return None


def cgroup_limits(root: str = CGROUP) -> dict[str, str | None]:
    """cpu, memory, swap and process limits as the kernel prints them; None for one that can't be read."""
    limits = {
        "cpu_max": read_text(os.path.join(root, "cpu.max")),
        "memory_max": read_text(os.path.join(root, "memory.max")),
        "memory_swap_max": read_text(os.path.join(root, "memory.swap.max")),
        "pids_max": read_text(os.path.join(root, "pids.max")),
    }
    for name, path in CGROUP_V1.items():
        if limits[name] is None:
            limits[name] = read_text(os.path.join(root, path))
    return limits


def cgroup_peaks(root: str = CGROUP) -> dict[str, int | None]:
    """Highest memory and process counts, and how often the kernel killed for memory; None where it doesn't say."""
    events = dict(
        line.split(" ", 1)
        for line in (read_text(os.path.join(root, "memory.events")) or "").splitlines()
        if " " in line
    )
    return {
        "processes_peak": _number(read_text(os.path.join(root, "pids.peak"))),
        "memory_peak_bytes": _number(read_text(os.path.join(root, "memory.peak"))),
        "oom_kills": _number(events.get("oom_kill")),
    }


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
