"""A harness adapter: how one coding-agent harness is started, and what it says of itself afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from controller.domain.launch import LaunchContext, LaunchContract
from controller.domain.outcome import SelfReport
from controller.domain.usage import Dialect


class HarnessAdapter(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def image(self) -> str:
        """The name of its baked container image."""
        ...

    @property
    def dialect(self) -> Dialect: ...

    def launch(self, context: LaunchContext) -> LaunchContract: ...

    def self_report(self, files: Mapping[str, bytes], log: bytes) -> SelfReport:
        """From untrusted bytes; anything unreadable is None, never an error."""
        ...
