"""A harness adapter: how one coding-agent harness at one version is started, and what it says of itself afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from controller.domain.launch import LaunchContext, LaunchContract, Shim
from controller.domain.outcome import SelfReport
from controller.domain.usage import Dialect


class HarnessAdapter(Protocol):
    """Pure: it starts nothing and reads nothing."""

    @property
    def name(self) -> str:
        """The slug by which plans name it."""
        ...

    @property
    def title(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def image(self) -> str:
        """The name of its baked container image, which is also that of its recipe."""
        ...

    @property
    def dialect(self) -> Dialect:
        """The provider API it speaks."""
        ...

    def check_settings(self, settings: Mapping[str, str]) -> None:
        """Raises InvalidPlan naming every setting that the harness does not know or whose value it can't take."""
        ...

    def shims(self, settings: Mapping[str, str]) -> tuple[Shim, ...]:
        """Our own code between it and the provider under these settings, for the manifest."""
        ...

    def launch(self, context: LaunchContext) -> LaunchContract:
        """How to start it for one attempt. Raises InvalidPlan for settings it does not know."""
        ...

    def self_report(self, files: Mapping[str, bytes], log: bytes) -> SelfReport:
        """What it says of itself: `files` by report path, `log` its standard output and error.

        Hostile bytes give an empty report, never an error: nothing depends on it.
        """
        ...
