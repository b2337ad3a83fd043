"""One adapter per harness: how it is started, pointed at the meter, and what it reports about itself.

Input: a `LaunchContext` (prompt, meter address, run token, model, settings). Output: a `LaunchContract`, and afterwards
a `SelfReport` from the files and the log the harness left. Adapters are pure: they start nothing and read nothing.

Invariants: every model the harness might call is the lane's; retries, updates, telemetry and tools that only a provider
can run are off; the run token is in `env` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from controller.errors import UnknownHarness
from controller.harnesses.codex import CodexCli
from controller.harnesses.mini_swe_agent import MiniSweAgent
from controller.ports.harness import HarnessAdapter

HARNESSES: Final[Mapping[str, HarnessAdapter]] = MappingProxyType(
    {adapter.name: adapter for adapter in (CodexCli(), MiniSweAgent())}
)


def unknown_harness(name: str) -> UnknownHarness:
    """The error for a harness that has no adapter; it names those that have one."""
    return UnknownHarness(f"harness {name!r} is not known; known harnesses: {', '.join(sorted(HARNESSES))}")


__all__ = ["HARNESSES", "unknown_harness"]
