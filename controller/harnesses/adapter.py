"""What all adapters share: the places inside a harness container, its environment, and the reading of settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from controller.domain.launch import Shim
from controller.errors import InvalidPlan

HOME: Final = "/home/agent"
BIN: Final = "/opt/harness/bin"
COUNT_MAX: Final = 10**12  # no attempt counts higher, and signed JSON holds no integer above 2**53
# What stands between every harness and its provider, whatever the harness.
CHANNEL: Final = (
    Shim(
        name="meter",
        does="forwards requests and answers; adds stream_options.include_usage to a streamed Chat request",
        status="qualified",
        basis="tests/e2e/test_meter_parity.py: whole conversations and their cache headers with and without it",
    ),
    Shim(
        name="relay",
        does="carries bytes from the container's loopback port to the meter, by way of the egress proxy",
        status="unqualified",
        basis="streams of bytes are compared in tests, whole conversations with a direct connection are not",
    ),
)


def base_environment() -> dict[str, str]:
    """The whole environment of a harness, before its adapter adds to it."""
    return {
        "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
        "HOME": HOME,
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "DO_NOT_TRACK": "1",
        "PYTHONDONTWRITEBYTECODE": "1",  # a harvested tree should hold the harness's edits, not caches of its checks
    }


def check_settings(harness: str, settings: Mapping[str, str], allowed: Mapping[str, tuple[str, ...]]) -> None:
    """Compares `settings` with the values `allowed` for each name. Raises InvalidPlan with every fault."""
    faults = []
    for name, value in sorted(settings.items()):
        if name not in allowed:
            known = ", ".join(sorted(allowed)) or "none"
            faults.append(f"settings.{name}: {harness} has no such setting; it knows: {known}")
        elif value not in allowed[name]:
            faults.append(f"settings.{name}: {value!r} is not one of {', '.join(allowed[name])}")
    if faults:
        raise InvalidPlan("\n".join(faults))


def reported_count(value: object) -> int | None:
    """A count that a harness reports, None for anything that can't be one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_MAX else None
